#pragma once

#include <memprof/memprof.hpp>
#include <memprof/record/capture_drain.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/drain.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// What a program allocates and frees, in order: for real, through an allocator that is put before that of libtorch, and in a
/// capture, from the events themselves.

namespace recorded {

/// Bytes of a block that was allocated, or minus those of one that was freed.
using change = std::int64_t;
using changes = std::vector<change>;

/// What a number takes that becomes a tensor for a while, at most: a complex one of double precision.
inline constexpr std::int64_t scalar_bytes = 16;

[[nodiscard]] inline changes without_scalars(const changes& all) {
  changes kept;
  for (const change one : all) {
    if (one > scalar_bytes || one < -scalar_bytes) kept.push_back(one);
  }
  return kept;
}

struct totals {
  std::int64_t net = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;

  bool operator==(const totals&) const = default;
};

[[nodiscard]] inline totals totals_of(const changes& all) {
  totals result;
  for (const change one : all) {
    result.net += one;
    result.allocated += std::max<change>(one, 0);
    result.peak = std::max(result.peak, result.net);
  }
  return result;
}

// --- for real ---------------------------------------------------------------------------------------------------------

/// Forwards to libtorch's allocator of the CPU and writes down what happens between `start` and `stop`. Only frees of blocks that
/// were allocated in between count.
class cpu_allocations final : public c10::Allocator {
 public:
  static cpu_allocations& instance() {
    static auto* const allocator = new cpu_allocations;
    return *allocator;
  }

  void start() {
    const std::lock_guard guard{lock_};
    live_.clear();
    all_.clear();
    is_on_ = true;
  }
  changes stop() {
    const std::lock_guard guard{lock_};
    is_on_ = false;
    return std::exchange(all_, {});
  }
  [[nodiscard]] changes so_far() {
    const std::lock_guard guard{lock_};
    return all_;
  }

  c10::DataPtr allocate(std::size_t bytes) const { return const_cast<cpu_allocations*>(this)->forward(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return forward(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

 private:
  cpu_allocations() : next_(c10::GetAllocator(c10::kCPU)), next_deleter_(next_->raw_deleter()) {
    for (int priority = 0; priority < 256 && c10::GetAllocator(c10::kCPU) != this; ++priority) {
      c10::SetAllocator(c10::kCPU, this, static_cast<std::uint8_t>(priority));
    }
  }

  c10::DataPtr forward(std::size_t bytes) {
    c10::DataPtr block = next_->allocate(bytes);
    if (block.get() == nullptr) return block;
    (void)block.compare_exchange_deleter(next_deleter_, &free_block);
    const std::lock_guard guard{lock_};
    if (is_on_) {
      live_[block.get()] = static_cast<change>(bytes);
      all_.push_back(static_cast<change>(bytes));
    }
    return block;
  }

  static void free_block(void* address) {
    cpu_allocations& self = instance();
    {
      const std::lock_guard guard{self.lock_};
      if (const auto known = self.live_.find(address); self.is_on_ && known != self.live_.end()) {
        self.all_.push_back(-known->second);
        self.live_.erase(known);
      }
    }
    self.next_deleter_(address);
  }

  c10::Allocator* next_;
  c10::DeleterFnPtr next_deleter_;
  std::mutex lock_;
  bool is_on_ = false;
  std::unordered_map<void*, change> live_;
  changes all_;
};

// --- in a capture -----------------------------------------------------------------------------------------------------

/// Writes down the events of one space on their way into the ledger, until the end of the scope or of the capture.
class capture_events {
 public:
  explicit capture_events(const std::string& space) : space_(memprof::memory_space{space}.id()) {
    current() = this;
    memprof::registry& shared = memprof::abi_1::process_registry;
    const memprof::detail::control_guard control;
    shared.drain(shared);
    shared.drain = drain;
  }
  capture_events(const capture_events&) = delete;
  capture_events& operator=(const capture_events&) = delete;
  ~capture_events() { current() = nullptr; }

  /// Forgets what was until now: frees of earlier blocks do not count.
  void restart() {
    (void)so_far();
    live_.clear();
    all_.clear();
  }
  /// All up to now.
  [[nodiscard]] const changes& so_far() {
    memprof::registry& shared = memprof::abi_1::process_registry;
    const memprof::detail::control_guard control;
    if (shared.drain != nullptr) shared.drain(shared);
    return all_;
  }

  void apply(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring_id) {
    for (const memprof::extend::event* one = first; one != last; ++one) {
      if (one->space != space_) continue;
      const auto bytes = static_cast<change>(one->bytes);
      if (one->kind == memprof::extend::event_kind::allocate || one->kind == memprof::extend::event_kind::allocate_on_stream) {
        live_[one->address] = bytes;
        all_.push_back(bytes);
      }
      if (one->kind == memprof::extend::event_kind::deallocate ||
          one->kind == memprof::extend::event_kind::deallocate_on_stream) {
        // A free need not give the size, and one of a block from before is none.
        if (const auto known = live_.find(one->address); known != live_.end()) {
          all_.push_back(-known->second);
          live_.erase(known);
        }
      }
    }
    static_cast<memprof::detail::capture_state*>(memprof::abi_1::process_registry.capture)->apply(first, last, ring_id);
  }

 private:
  static capture_events*& current() {
    static capture_events* one = nullptr;
    return one;
  }
  static void drain(memprof::registry& shared) noexcept {
    if (current() == nullptr) return memprof::detail::drain_into_capture(shared);
    memprof::detail::drain_rings<memprof::detail::no_pauses>(shared, *current());
  }

  std::uint8_t space_;
  std::unordered_map<std::uint64_t, change> live_;
  changes all_;
};

}  // namespace recorded
