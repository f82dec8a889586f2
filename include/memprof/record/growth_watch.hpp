#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/ledger/step_ends.hpp>
#include <memprof/profile/build_growing.hpp>
#include <memprof/profile/growth_rule.hpp>
#include <memprof/profile/owner_growth.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/growth_warning.hpp>
#include <memprof/record/handler_watch.hpp>
#include <memprof/record/process_memory.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string_view>

#include <unistd.h>

/// @file
/// Warns of growth while the program runs.

namespace memprof::inline MEMPROF_ABI::detail {

/// Decides at which snapshots a capture looks for growth: after as many as there must be steps, then whenever there were an
/// eighth more, so that looking costs little even in a long run. Two threads never look at the same time.
class growth_schedule {
 public:
  void restart(std::uint64_t steps) noexcept {
    seen_.store(0, std::memory_order_relaxed);
    next_.store(steps, std::memory_order_release);
  }
  /// Counts a snapshot. True if it is time to look; then call `finish`.
  [[nodiscard]] bool claim() noexcept {
    const std::uint64_t seen = seen_.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint64_t next = next_.load(std::memory_order_relaxed);
    // Acquire pairs with the release in `finish` and `restart`.
    return seen >= next && next_.compare_exchange_strong(next, never, std::memory_order_acquire);
  }
  void finish(bool has_looked) noexcept {
    const std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    // Release pairs with the acquire in `claim`.
    next_.store(has_looked ? seen + std::max<std::uint64_t>(1, seen / 8) : seen + 1, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint64_t> next_{never};
};

/// That of the active capture.
inline constinit growth_schedule process_growth_schedule{};

/// A text of at most 255 bytes, written from its end.
class text_tail {
 public:
  void prepend(char character) noexcept {
    if (begin_ != 0) text_[--begin_] = character;
  }
  void prepend(std::string_view text) noexcept {
    for (std::size_t at = text.size(); at-- > 0;) prepend(text[at]);
  }
  /// A name in a path, as `append_operation` spells it.
  void prepend_operation(std::string_view name) noexcept {
    separate();
    if (name.empty()) prepend("\\-");
    for (std::size_t at = name.size(); at-- > 0;) {
      prepend(name[at]);
      if (name[at] == '/' || name[at] == '\\') prepend('\\');
    }
  }
  void prepend_other_operations() noexcept {
    separate();
    prepend("\\other");
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data() + begin_, text_.size() - begin_}; }

 private:
  void separate() noexcept {
    if (begin_ != text_.size()) prepend('/');
  }

  std::array<char, 255> text_;
  std::size_t begin_ = 255;
};

/// An owner that grows, before it is reported.
struct noticed_growth {
  text_tail space;
  text_tail owner;
  double per_step;
  std::int64_t since_step;
  std::int64_t steps;
};

/// Finds owners that have grown long enough and were not reported before; returns how many it put into `found`.
/// Under the lock, after a drain. Allocates only pages.
template <std::size_t Most>
[[nodiscard]] std::size_t notice_growth(registry& shared, capture_state& state,
                                        std::array<noticed_growth, Most>& found) noexcept {
  std::size_t count = 0;
  ledger& events = state.fold.events();
  events.settle_spaces();
  for (std::uint32_t id = 0; id < registry::max_spaces; ++id) {
    const space_ledger* const space = events.space(id);
    if (space == nullptr) continue;
    const step_ends& ends = space->ends_of_steps();
    for (std::size_t index = 0; index < ends.owners().size() && count < Most; ++index) {
      const std::uint32_t owner = ends.owners()[index];
      const std::uint64_t key = std::uint64_t{id} << 32 | owner;
      if (std::find(state.noticed_growth.begin(), state.noticed_growth.end(), key) != state.noticed_growth.end()) continue;
      const growth_stretch trend = judge_owner(ends, index);
      const std::uint64_t lasted = ends.count() - std::min<std::uint64_t>(trend.start * ends.width(), ends.count());
      if (trend.kind != growth_kind::grows || lasted < state.warn_growth_after) continue;
      if (!state.noticed_growth.push_back(key)) return count;
      noticed_growth& noticed = found[count++];
      noticed = {};
      noticed.space.prepend(shared.labels->text(shared.space_names[id]));
      if (owner == step_ends::reserved_owner) {
        noticed.owner.prepend(reserved_beyond_blocks);
      } else {
        const operation_tree& tree = events.operations();
        for (std::uint32_t node = owner; node != 0; node = tree[node].parent) {
          if (tree[node].name == other_names) {
            noticed.owner.prepend_other_operations();
          } else {
            noticed.owner.prepend_operation(shared.labels->text(tree[node].name));
          }
        }
      }
      const growth_numbers numbers = numbers_of(ends, trend);
      noticed.per_step = numbers.per_step;
      noticed.since_step = numbers.since_step;
      noticed.steps = numbers.steps;
    }
  }
  return count;
}

/// One line on stderr, in a single write and without stderr's lock.
inline void say_growth(const growth_warning& found) noexcept {
  std::array<char, 768> line;
  const auto size_of = [](std::string_view text) { return static_cast<int>(text.size()); };
  const std::string_view owner = found.owner.empty() ? std::string_view{"outside every operation"} : found.owner;
  std::array<char, 48> since{};
  if (found.since_step >= 0)
    std::snprintf(since.data(), since.size(), ", since step %lld", static_cast<long long>(found.since_step) + 1);
  const int size =
      std::snprintf(line.data(), line.size(),
                    "memprof: %.*s grows by %.0f bytes a step%s%.*s%s, after %lld steps; each owner is reported once\n",
                    size_of(found.space), found.space.data(), found.per_step, found.owner.empty() ? " " : " by ", size_of(owner),
                    owner.data(), since.data(), static_cast<long long>(found.steps));
  if (size <= 0) return;
  [[maybe_unused]] const ::ssize_t said =
      ::write(STDERR_FILENO, line.data(), std::min(static_cast<std::size_t>(size), line.size() - 1));
}

/// Reports who grows, without holding the lock: the program's function may call memprof.
[[gnu::cold, gnu::noinline]] inline void warn_of_growth(registry& shared) noexcept {
  constexpr std::size_t most_at_once = 4;
  const errno_guard kept;
  std::array<noticed_growth, most_at_once> found;
  std::size_t count = 0;
  void (*tell)(const growth_warning&) noexcept = nullptr;
  {
    const internal_control_guard lock{shared};
    capture_state* const state = state_of(shared);
    if (shared.drain == nullptr || state == nullptr || state->has_ended) return;
    shared.drain(shared);
    count = notice_growth(shared, *state, found);
    tell = state->on_growth;
  }
  for (std::size_t index = 0; index < count; ++index) {
    const noticed_growth& each = found[index];
    const growth_warning warning{each.space.text(), each.owner.text(), each.per_step, each.since_step, each.steps};
    say_growth(warning);
    if (tell != nullptr) tell(warning);
  }
}

/// Reads the process's memory and, if it is time, looks for growth. `snapshot_reader` points here while a capture that warns is
/// active. In a signal handler it waits for the next snapshot: the program's function may not be made for that.
inline void read_and_watch_at_snapshot() noexcept {
  read_process_at_snapshot();
  if (!is_outside(abi_1::this_thread) || !process_growth_schedule.claim()) return;
  const bool may_look = !is_on_alternate_stack() && !process_handlers.may_be_in_handler();
  if (may_look) warn_of_growth(abi_1::process_registry);
  process_growth_schedule.finish(may_look);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
