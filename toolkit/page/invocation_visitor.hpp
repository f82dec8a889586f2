#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/toolkit/format/thread_numbers.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// A thread of a page.
struct page_thread {
  label name = 0;
  std::uint64_t system_id = 0;
};

/// One run of an operation.
struct invocation {
  std::uint32_t thread = 0;     ///< index into `invocation_visitor::threads`
  std::uint32_t depth = 0;      ///< 0: outermost
  std::uint32_t operation = 0;  ///< node of the ledger's tree
  moment begin;
  const std::int64_t* deltas = nullptr;  ///< by space: what its thread, and those that work for it, have allocated minus freed
                                         ///< since then

  [[nodiscard]] std::int64_t delta(std::size_t space) const noexcept { return deltas[space]; }
};

/// Follows the operations that a ledger has open on each thread, and reports for each one that ends when it had begun. Takes
/// memory for the spaces that each thread has changed, not for all of them.
class invocation_visitor {
 public:
  /// Changes are tracked separately for that many spaces.
  explicit invocation_visitor(std::size_t spaces) : deltas_(spaces) {}

  /// Records that a thread allocated `bytes` in a space, or freed them if negative; `events` is the ledger with that event.
  void change(const ledger& events, std::uint32_t ring, std::size_t space, std::int64_t bytes);

  /// Compares with the ledger after an event that happened at `now`. Calls `ended(invocation)` for each invocation that the event
  /// ended.
  template <class Ended>
  void follow(const ledger& events, const event& happened, std::uint32_t ring, const moment& now, Ended&& ended) {
    if (happened.kind != event_kind::scope_begin && happened.kind != event_kind::scope_end &&
        happened.kind != event_kind::thread_begin)
      return;
    if (ring_thread* const on = thread_of_ring(ring)) {
      compare(*on, events.thread(ring), now, ended);
      if (happened.kind == event_kind::thread_begin && events.thread(ring) != nullptr) {
        numbers_.change(on->number, events.thread(ring)->thread, ring);
        on->number = events.thread(ring)->thread;
      }
      if (happened.kind == event_kind::thread_begin) on->index = index_of(happened.address, {happened.label, happened.bytes});
    }
    const auto named = static_cast<std::uint32_t>(happened.address >> 32U);
    if (happened.kind != event_kind::scope_end || named == 0) return;
    const std::uint32_t other = numbers_.ring_of(named);
    if (other != thread_numbers::no_ring && other != ring) compare(*rings_[other], events.thread(other), now, ended);
  }

  /// Calls `visit(invocation)` for each open invocation.
  template <class Visitor>
  void for_each_open(Visitor&& visit) {
    for (const std::unique_ptr<ring_thread>& on : rings_) {
      for (std::size_t depth = 0; on != nullptr && depth < on->open.size(); ++depth) visit(at(*on, depth));
    }
  }

  /// The threads that had operations or names. The last one may stand for all beyond the first thousand.
  [[nodiscard]] const std::vector<page_thread>& threads() const noexcept { return threads_; }

 private:
  static constexpr std::size_t max_threads = 1024;

  struct open_invocation {
    std::uint32_t number;
    std::uint32_t operation;
    moment begin;
    std::vector<std::int64_t> nets;  ///< when it began, in the order of `ring_thread::spaces`; of those that follow, 0
    /// By space, what changed since then while its thread worked for others, or others for it; empty: nothing.
    std::vector<std::int64_t> shared;
  };
  struct ring_thread {
    std::uint32_t number;             ///< of its thread, as in the ledger
    std::size_t index = max_threads;  ///< index into `threads_`; `max_threads`: not known yet
    std::vector<open_invocation> open;
    std::vector<std::uint8_t> spaces;  ///< that it has changed, in order
    std::vector<std::int64_t> nets;    ///< of each: allocated minus freed bytes

    [[nodiscard]] std::int64_t& net_of(std::size_t space) {
      const auto known = std::find(spaces.begin(), spaces.end(), space);
      const auto position = static_cast<std::size_t>(known - spaces.begin());
      if (known == spaces.end()) {
        spaces.push_back(static_cast<std::uint8_t>(space));
        nets.push_back(0);
      }
      return nets[position];
    }
  };

  /// As `change`, for a thread that works for others or for which others work.
  void change_shared(const ledger& events, const thread_scopes& on, std::uint32_t ring, std::size_t space, std::int64_t bytes);
  void add_shared(ring_thread& on, std::size_t depth, std::size_t space, std::int64_t bytes) const;

  /// Null if the ledger does not follow the thread either.
  [[nodiscard]] ring_thread* thread_of_ring(std::uint32_t ring);

  [[nodiscard]] std::size_t index_of(std::uint64_t number, const page_thread& thread);

  /// Valid until the next call.
  [[nodiscard]] invocation at(const ring_thread& on, std::size_t depth);

  /// Determines which operations have ended and which is new, from what the thread has open now.
  template <class Ended>
  void compare(ring_thread& on, const thread_scopes* known, const moment& now, Ended& ended) {
    if (known == nullptr) return;
    if (on.index == max_threads) on.index = index_of(known->thread, {});
    const scope_stack& scopes = known->scopes;
    std::size_t kept = 0;
    for (std::size_t depth = 0; depth < on.open.size(); ++depth) {
      if (kept < scopes.depth() && on.open[depth].number == scopes[kept].number) {
        if (kept != depth) on.open[kept] = std::move(on.open[depth]);
        ++kept;
      } else {
        ended(at(on, depth));
      }
    }
    on.open.resize(kept);
    for (; kept < scopes.depth(); ++kept) on.open.push_back({scopes[kept].number, scopes[kept].operation, now, on.nets, {}});
  }

  std::vector<std::int64_t> deltas_;  ///< of the invocation being reported
  thread_numbers numbers_;
  std::vector<std::unique_ptr<ring_thread>> rings_;
  std::vector<page_thread> threads_;
  std::unordered_map<std::uint64_t, std::size_t> indices_;  ///< by number of the thread
};

}  // namespace memprof::inline MEMPROF_ABI::detail
