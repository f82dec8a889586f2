#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/record/clock.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A stream of a simulated device. Nothing runs on it.
struct simulated_stream {
  std::uint64_t handle = 0;
  std::uint32_t device = 0;
  unsigned flags = 0;
  int priority = 0;
};

/// The streams and the events that the program has made. Their handles are in sequence, so that runs repeat. Every call may be
/// made on any thread.
class simulated_streams {
 public:
  /// 0 if the system has no memory.
  [[nodiscard]] std::uint64_t make_stream(std::uint32_t device, unsigned flags, int priority) noexcept {
    const lock_guard guard{lock_};
    const std::uint64_t handle = step * ++made_;
    const live_blocks::insertion made = streams_.insert(handle);
    if (made.entry == nullptr) return 0;
    *made.entry = {handle, device, flags, static_cast<std::uint32_t>(priority)};
    return handle;
  }
  /// A stream of handle 0 if there is none.
  [[nodiscard]] simulated_stream stream(std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    const block* const found = streams_.at(handle);
    if (found == nullptr) return {};
    return {handle, static_cast<std::uint32_t>(found->bytes), static_cast<unsigned>(found->born_thread),
            static_cast<int>(static_cast<std::uint32_t>(found->owner))};
  }
  /// False if there is none of that handle; likewise below.
  [[nodiscard]] bool remove_stream(std::uint64_t handle) noexcept { return remove(streams_, handle); }

  /// 0 if the system has no memory.
  [[nodiscard]] std::uint64_t make_event() noexcept {
    const lock_guard guard{lock_};
    const std::uint64_t handle = step * ++made_;
    const live_blocks::insertion made = events_.insert(handle);
    if (made.entry == nullptr) return 0;
    *made.entry = {handle, 0, 0, 0};
    return handle;
  }
  [[nodiscard]] bool has_event(std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    return events_.at(handle) != nullptr;
  }
  /// It happens at once.
  [[nodiscard]] bool record_event(std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    const live_blocks::place found = events_.find(handle);
    if (found) found->bytes = static_cast<std::uint64_t>(monotonic_ns());
    return static_cast<bool>(found);
  }
  /// When it was recorded; 0: never, or there is none.
  [[nodiscard]] std::int64_t recorded_ns(std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    const block* const found = events_.at(handle);
    return found == nullptr ? 0 : static_cast<std::int64_t>(found->bytes);
  }
  [[nodiscard]] bool remove_event(std::uint64_t handle) noexcept { return remove(events_, handle); }

 private:
  static constexpr std::uint64_t step = 256;  // beyond the handles that CUDA gives a meaning: 1 and 2

  [[nodiscard]] bool remove(live_blocks& table, std::uint64_t handle) noexcept {
    const lock_guard guard{lock_};
    const live_blocks::place found = table.find(handle);
    if (found) table.erase(found);
    return static_cast<bool>(found);
  }

  futex_lock lock_;
  live_blocks streams_;
  live_blocks events_;
  std::uint64_t made_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
