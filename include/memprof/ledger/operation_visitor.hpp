#pragma once

#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_threads;

/// The thread whose events a ring holds, with its open operations.
struct thread_scopes {
  explicit thread_scopes(std::uint32_t ring) noexcept : thread(ring) {}

  std::uint32_t thread;                 ///< its number; the ring's number before its first `thread_begin`
  std::uint32_t unfollowed_scopes = 0;  ///< open, but too deep, or begun without memory for them
  std::uint32_t era = 0;                ///< how often all of its operations had ended that others may have adopted
  scope_stack scopes;
};

/// The rules by which events open and close operations, shared by all folds.
///
/// Operations have numbers, because they may end after the enclosing one, and on another thread than they began on, as a
/// coroutine's do. When an operation closes, `finish(thread, scope, space, usage)` is called for each space that its thread has
/// touched.
///
/// A thread may adopt another thread's operation (`scope_begin` with `bytes`): the operations that it opens next are nested in
/// that one. If the other thread ends it meanwhile, the one around it takes its place, as for nested operations that go on.
/// One that had already ended is known by its name only: it is the single operation of that name, else an outermost one.
class operation_visitor {
 public:
  /// `limit` is the maximum number of operations in the tree.
  explicit operation_visitor(std::uint32_t limit = ~std::uint32_t{0}) noexcept : operations_(limit) {}

  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_; }
  /// Number of operations whose begin or end is missing.
  [[nodiscard]] std::uint64_t unbalanced() const noexcept { return unbalanced_; }
  /// Number of operations that are not followed because too many were already open.
  [[nodiscard]] std::uint64_t too_deep() const noexcept { return too_deep_; }

  /// Infers operations: threads without one work for the one that is open on the thread with that id in the system, from its
  /// first `thread_begin` on. 0: they have none.
  void infer_from(std::uint64_t system_thread) noexcept { leading_thread_ = system_thread; }
  /// The thread for whose innermost operation `on` works: itself, unless that is inferred.
  template <class Thread>
  [[nodiscard]] Thread& works_for(Thread& on) const noexcept {
    return leader_ != nullptr && on.scopes.empty() ? *leader_ : on;
  }
  /// Whether there is such a thread now.
  [[nodiscard]] bool infers() const noexcept { return leader_ != nullptr; }

  /// Calls `visit(thread, depth, is_self)` for each open invocation that contains what `on` does now, from the innermost;
  /// `is_self`: directly, not within a nested one.
  template <class Thread, class Visitor>
  void for_each_enclosing(Thread& on, Visitor&& visit) const noexcept {
    Thread* at = &works_for(on);
    std::size_t depth = at->scopes.depth();
    bool is_self = true;
    for (std::size_t step = 0; depth != 0 && step < max_enclosing; ++step) {
      const open_scope& scope = at->scopes[depth - 1];
      if (scope.is_adopted) {
        const adoption& of = at->scopes.adopted_at(depth - 1);
        at = of.leader;
        depth = depth_of(of);
        is_self = is_self && depth != 0 && at->scopes[depth - 1].number == of.leader_scope;
        continue;
      }
      visit(*at, depth, is_self);
      is_self = false;
      --depth;
    }
  }

  /// In place of `thread_of` for an event without bytes.
  struct adopts_none {};

  /// Applies a `scope_begin` at `stamp`. `thread_of(number)` returns the thread with that number, or null. False if it must be
  /// rejected: it has no number, or the system has no memory.
  template <class Finish, class ThreadOf>
  [[nodiscard, gnu::always_inline]] bool begin(thread_scopes& on, const event& begun, const std::uint64_t& stamp, Finish&& finish,
                                               ThreadOf&& thread_of) noexcept {
    const auto number = static_cast<std::uint32_t>(begun.address);
    const auto outer = static_cast<std::uint32_t>(begun.address >> 32);
    if (number == 0 || outer != on.scopes.innermost_number()) [[unlikely]] {
      if (number == 0) return false;
      close_lost(on, outer, finish);
    }
    if (on.scopes.empty() && emptied_ != &on.scopes) provide(on.scopes);
    if (on.scopes.depth() >= scope_stack::max_depth) {
      ++on.unfollowed_scopes;
      ++too_deep_;
      return true;
    }
    if constexpr (!std::is_same_v<std::remove_cvref_t<ThreadOf>, adopts_none>) {
      if (begun.bytes != 0) return adopt(on, begun, stamp, thread_of(static_cast<std::uint32_t>(begun.bytes >> 32)));
    }
    const std::uint16_t tag = is_category(begun.tag) ? begun.tag : on.scopes.tag();
    const std::uint32_t operation = operations_.child(on.scopes.operation(), begun.label);
    if (operation == operation_tree::no_node || !on.scopes.push({operation, begun.label, number, tag, false, stamp}))
        [[unlikely]] {
      ++on.unfollowed_scopes;
      return false;
    }
    operations_.count_invocation(operation);
    return true;
  }

  /// Applies a `scope_end`. `thread_of(number)` returns the thread with that number, or null.
  template <class Finish, class ThreadOf>
  [[gnu::always_inline]] void end(thread_scopes& on, const event& ended, Finish&& finish, ThreadOf&& thread_of) noexcept {
    if (ended.address == on.scopes.innermost_number() && !on.scopes.empty() && on.scopes.innermost().name == ended.label)
        [[likely]]
      return close_innermost(on, finish);
    const auto thread = static_cast<std::uint32_t>(ended.address >> 32);
    thread_scopes* const owner = thread == 0 ? &on : thread_of(thread);
    if (owner == nullptr) return;  // the thread is gone, and its operations with it
    const std::size_t index = owner->scopes.find(static_cast<std::uint32_t>(ended.address));
    if (index != owner->scopes.depth() && owner->scopes[index].name == ended.label) {
      close(*owner, index, finish);
    } else if (owner->unfollowed_scopes != 0) {
      --owner->unfollowed_scopes;
    } else {
      ++unbalanced_;
    }
  }

  /// Applies a `thread_begin`: whatever was open on the ring's previous thread is closed.
  template <class Finish>
  void begin_thread(thread_scopes& on, const event& begun, std::uint32_t greatest, Finish&& finish) noexcept {
    while (!on.scopes.empty()) close_innermost(on, finish);
    on.unfollowed_scopes = 0;
    on.thread = begun.address < greatest ? static_cast<std::uint32_t>(begun.address) : greatest;
    if (leading_thread_ == 0) return;
    if (leader_ == &on) {
      leader_ = nullptr;
      on.scopes.join_always(false);
      leading_thread_ = 0;  // it is gone, and the system may reuse its id
    } else if (leader_ == nullptr && begun.bytes == leading_thread_) {
      leader_ = &on;
      on.scopes.join_always(true);
    }
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return operations_.bytes() + spare_.bytes(); }

 private:
  friend struct saved_threads;

  static constexpr std::size_t max_enclosing = 512;  ///< adoptions in a damaged trace may form a circle

  /// Whether the adopted operation, or one around it, may still be open.
  [[nodiscard]] static bool is_in_force(const adoption& of) noexcept {
    return of.leader != nullptr && of.leader->era == of.leader_era;
  }

  /// How deep on its thread the adopted operation is, or, if it has ended, the one that was around it; 0: none is open. Numbers
  /// increase with the depth.
  [[nodiscard]] static std::size_t depth_of(const adoption& of) noexcept {
    if (!is_in_force(of)) return 0;
    const scope_stack& scopes = of.leader->scopes;
    std::size_t depth = scopes.depth();
    while (depth != 0 && scopes[depth - 1].number > of.leader_scope) --depth;
    return depth;
  }

  /// Applies a `scope_begin` that adopts an operation of `leader`, which may be null.
  [[gnu::cold, gnu::noinline]] bool adopt(thread_scopes& on, const event& begun, std::uint64_t stamp,
                                          thread_scopes* leader) noexcept {
    const auto number = static_cast<std::uint32_t>(begun.bytes);
    open_scope added{0, begun.label, static_cast<std::uint32_t>(begun.address), 0, true, stamp};
    adoption of{nullptr, number, 0};
    const std::size_t index = leader == nullptr ? 0 : leader->scopes.find(number);
    if (leader != nullptr && index != leader->scopes.depth()) {
      const open_scope& adopted = leader->scopes[index];
      added.operation = adopted.operation;
      added.tag = adopted.tag;
      if (adopted.is_adopted) {
        of = leader->scopes.adopted_at(index);
      } else {
        of = adoption{leader, number, leader->era};
        leader->scopes.join();
      }
    } else {
      added.operation = operation_named(begun.label);
    }
    if (added.operation == operation_tree::no_node || !on.scopes.push(added, of)) {
      ++on.unfollowed_scopes;
      return false;
    }
    on.scopes.join();
    return true;
  }

  /// The only operation of that name; if there are several, or none, an outermost one. 0: no name.
  [[nodiscard]] std::uint32_t operation_named(label name) noexcept {
    if (name == 0) return 0;
    if (last_named_.name != name || last_named_.of != operations_.size()) {
      const std::uint32_t only = operations_.only_node_named(name);
      last_named_ = {name, only != 0 ? only : operations_.child(0, name), operations_.size()};
    }
    return last_named_.operation;
  }

  /// Closes the scopes nested in the thread's scope number `outer`: their ends were dropped.
  template <class Finish>
  [[gnu::cold, gnu::noinline]] void close_lost(thread_scopes& on, std::uint32_t outer, Finish&& finish) noexcept {
    const std::size_t kept = outer == 0 ? 0 : on.scopes.find(outer) + 1;
    for (; kept < on.scopes.depth(); ++unbalanced_) close_innermost(on, finish);
  }

  template <class Finish>
  [[gnu::always_inline]] void close_innermost(thread_scopes& on, Finish&& finish) noexcept {
    if (on.scopes.is_joined()) [[unlikely]]
      return close(on, on.scopes.depth() - 1, finish);
    operations_.count_finished(on.scopes.operation());
    on.scopes.close_innermost(
        [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) { finish(on.thread, scope, space, usage); });
    if (on.scopes.empty() && emptied_ != &on.scopes) release(on.scopes);
  }

  template <class Finish>
  [[gnu::noinline]] void close(thread_scopes& on, std::size_t index, Finish&& finish) noexcept {
    if (!on.scopes[index].is_adopted) operations_.count_finished(on.scopes[index].operation);
    on.scopes.close(index, [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) {
      if (!scope.is_adopted) finish(on.thread, scope, space, usage);
    });
    if (on.scopes.empty()) ++on.era;
    if (on.scopes.empty() && emptied_ != &on.scopes) release(on.scopes);
  }

  // The stack that was emptied last keeps its memory until another one needs it, or is emptied: a thread whose operations follow
  // one another neither hands it over nor gets it back.
  [[gnu::noinline]] void provide(scope_stack& stack) noexcept {
    if (stack.has_memory()) return;
    if (spare_.empty() && emptied_ != nullptr && emptied_->empty()) spare_.take(*std::exchange(emptied_, nullptr));
    spare_.give(stack);
  }
  [[gnu::noinline]] void release(scope_stack& emptied) noexcept {
    if (emptied_ != nullptr && emptied_->empty()) spare_.take(*emptied_);
    emptied_ = &emptied;
  }

  struct named_operation {
    label name = 0;
    std::uint32_t operation = 0;
    std::size_t of = 0;  ///< the number of operations when it was looked up
  };

  operation_tree operations_;
  named_operation last_named_;
  std::uint64_t leading_thread_ = 0;  ///< its id in the system
  thread_scopes* leader_ = nullptr;   ///< that thread, once it has begun
  spare_scope_stacks spare_;
  scope_stack* emptied_ = nullptr;
  std::uint64_t unbalanced_ = 0;
  std::uint64_t too_deep_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
