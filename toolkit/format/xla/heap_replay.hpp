#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Replays a trace. Calls the `Visitor` as `allocated(event, owner, shown)` and `freed(event, owner)`: `owner` is the buffer
/// whose size counts, `shown` the one that has its memory now.
template <class Visitor>
class heap_replay {
 public:
  heap_replay(const hlo_program& program, Visitor& visitor)
      : program_(program), visitor_(visitor), canonical_(program.buffers.size(), hlo_none), users_(program.buffers.size(), 0) {}

  /// Replays the events before index `end`.
  void run(const std::vector<hlo_heap_event>& events, std::size_t end) {
    std::uint32_t allocation = hlo_none;
    constexpr std::uint64_t usual_chain = 64;
    steps_left_ = (std::uint64_t{1} << 24) + usual_chain * events.size();
    for (std::size_t index = 0; index < end; ++index) {
      const hlo_heap_event& happened = events[index];
      if (happened.buffer == hlo_none) continue;
      const std::uint32_t own = program_.buffers[happened.buffer].allocation;
      if (allocation != hlo_none && own != allocation) raise("the events of one heap simulation belong to several allocations");
      allocation = own;
      step(index, happened);
    }
  }

 private:
  void step(std::size_t index, const hlo_heap_event& happened) {
    const std::uint32_t buffer = happened.buffer;
    switch (happened.kind) {
      case hlo_heap_event_kind::allocate:
        ++users_[root_of(buffer)];
        visitor_.allocated(index, buffer, buffer);
        break;
      case hlo_heap_event_kind::free: {
        const std::uint32_t root = root_of(buffer);
        if (--users_[root] < 0) raise("buffer " + std::to_string(program_.buffers[buffer].id) + " is freed more than once");
        if (users_[root] == 0) visitor_.freed(index, root);
        break;
      }
      case hlo_heap_event_kind::share: {
        if (happened.shared == hlo_none) break;
        check_is_behind(buffer, happened.shared);
        canonical_[buffer] = happened.shared;
        const std::uint32_t root = root_of(buffer);
        // A buffer whose memory had been freed is live again.
        if (++users_[root] == 1) visitor_.allocated(index, root, buffer);
        break;
      }
    }
  }

  [[nodiscard]] std::uint32_t root_of(std::uint32_t buffer) {
    for (; canonical_[buffer] != hlo_none; buffer = canonical_[buffer]) take_step();
    return buffer;
  }
  /// Bounds the cost of chains of shared memory in a hostile file.
  void take_step() {
    if (--steps_left_ == 0) raise("memory is shared through too many buffers");
  }

  /// No buffer may share its own memory, directly or through others.
  void check_is_behind(std::uint32_t buffer, std::uint32_t shared) {
    constexpr int longest = 4096;
    for (int length = 0; shared != hlo_none; shared = canonical_[shared], ++length) {
      take_step();
      if (shared == buffer) raise("buffer " + std::to_string(program_.buffers[buffer].id) + " shares its own memory");
      if (length == longest) raise("memory is shared through more than " + std::to_string(longest) + " buffers");
    }
  }

  const hlo_program& program_;
  Visitor& visitor_;
  std::vector<std::uint32_t> canonical_;
  std::vector<std::int32_t> users_;
  std::uint64_t steps_left_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
