#pragma once

#include "copy_watch.hpp"

#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/find_label.hpp>
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/open_operation.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <unordered_map>

namespace memprof_preload {

/// The operations and segments of a program that has a capture of its own by memprof: they are recorded here, too.
class program_operations {
 public:
  using listener_place = std::atomic<const memprof::abi_1::run_listener*>;

  /// Has a part of the program tell of them; this library is none. Never destroyed after that.
  void listen(listener_place& place) noexcept {
    if (&place == &memprof::abi_1::process_run_listener) return;
    only_ = this;
    static constexpr memprof::abi_1::run_listener listener{
        [](std::uint64_t id, const char* name, std::size_t length, std::uint16_t tag) noexcept {
          leave_if_copy();
          only_->begin(id, {name, length}, tag, 0);
        },
        [](std::uint64_t id, std::uint64_t adopted, const char* name, std::size_t length) noexcept {
          leave_if_copy();
          only_->begin(id, {name, length}, 0, only_->own_id(adopted));
        },
        [](std::uint64_t id) noexcept {
          leave_if_copy();
          only_->end(id);
        },
        [](const char* name, std::size_t length) noexcept {
          leave_if_copy();
          memprof::snapshot({name, length});
        }};
    place.store(&listener, std::memory_order_release);
  }

  [[nodiscard]] bool is_listening() const noexcept { return only_ != nullptr; }

  /// In the child of a `fork`: forgets what the parent had open. Another thread of it may have been in the middle of a change.
  void begin_in_child() noexcept {
    lock_.reset();
    new (&open_) std::unordered_map<std::uint64_t, begun_operation>;
  }

 private:
  struct begun_operation {
    memprof::extend::open_operation operation;
    std::uint32_t capture;
  };

  /// Hidden from recording, without signals, whose handlers may begin operations.
  struct held {
    explicit held(program_operations& of) noexcept : lock(of.lock_) {}
    memprof::detail::signal_guard no_signals;
    memprof::detail::recording_suppressor hidden;
    memprof::detail::lock_guard<memprof::detail::futex_lock> lock;
  };

  /// What the program's open operation is in this library's capture. One that has ended is known by its name alone: its thread
  /// and number are nobody's.
  [[nodiscard]] std::uint64_t own_id(std::uint64_t id) noexcept {
    if (memprof::detail::active_capture() == 0) return 0;
    const held whole{*this};
    const auto found = open_.find(id);
    if (found == open_.end()) return ~std::uint64_t{0};
    return memprof::detail::scope_address(found->second.operation.number, found->second.operation.thread);
  }

  /// `adopted`: as in `begin_operation`.
  void begin(std::uint64_t id, std::string_view name, std::uint16_t tag, std::uint64_t adopted) noexcept {
    namespace detail = memprof::detail;
    detail::thread_slot& self = memprof::abi_1::this_thread;
    begun_operation begun{{}, detail::active_capture()};
    if (begun.capture == 0 || self.doing().load(std::memory_order_relaxed) != detail::activity::idle) return;
    const memprof::extend::label own = detail::find_label(name);
    detail::begin_operation(begun.operation, self, own, tag, adopted);
    self.innermost_name = own;
    try {
      const held whole{*this};
      open_.insert_or_assign(id, begun);
    } catch (const std::exception&) {
      detail::end_operation(begun.operation, true);
    }
  }

  void end(std::uint64_t id) noexcept {
    if (memprof::detail::active_capture() == 0) return;  // also in a child that is not recorded, whose lock may be held
    begun_operation begun{};
    {
      const held whole{*this};
      const auto found = open_.find(id);
      if (found == open_.end()) return;
      begun = found->second;
      open_.erase(found);
    }
    memprof::detail::end_operation(begun.operation, memprof::detail::active_capture() == begun.capture);
  }

  inline static constinit program_operations* only_ = nullptr;
  memprof::detail::futex_lock lock_;
  std::unordered_map<std::uint64_t, begun_operation> open_;  ///< by the program's ids
};

}  // namespace memprof_preload
