#pragma once

#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_threads;

/// The thread whose events a ring holds, with its open operations.
struct thread_scopes {
  explicit thread_scopes(std::uint32_t ring) noexcept : thread(ring) {}

  std::uint32_t thread;                 ///< its number; the ring's number before its first `thread_begin`
  std::uint32_t unfollowed_scopes = 0;  ///< open, but too deep, or begun without memory for them
  scope_stack scopes;
};

/// The rules by which events open and close operations, shared by all folds.
///
/// Operations have numbers, because they may end after the enclosing one, and on another thread than they began on, as a
/// coroutine's do. When an operation closes, `finish(thread, scope, space, usage)` is called for each space that its thread has
/// touched.
class operation_visitor {
 public:
  /// `limit` is the maximum number of operations in the tree.
  explicit operation_visitor(std::uint32_t limit = ~std::uint32_t{0}) noexcept : operations_(limit) {}

  [[nodiscard]] const operation_tree& operations() const noexcept { return operations_; }
  /// Number of operations whose begin or end is missing.
  [[nodiscard]] std::uint64_t unbalanced() const noexcept { return unbalanced_; }
  /// Number of operations that are not followed because too many were already open.
  [[nodiscard]] std::uint64_t too_deep() const noexcept { return too_deep_; }

  /// Applies a `scope_begin` at `stamp`. False if it must be rejected: it has no number, or the system has no memory.
  template <class Finish>
  [[nodiscard, gnu::always_inline]] bool begin(thread_scopes& on, const event& begun, const std::uint64_t& stamp,
                                               Finish&& finish) noexcept {
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
    const std::uint16_t tag = is_category(begun.tag) ? begun.tag : on.scopes.tag();
    const std::uint32_t operation = operations_.child(on.scopes.operation(), begun.label);
    if (operation == operation_tree::no_node || !on.scopes.push({operation, begun.label, number, tag, stamp})) [[unlikely]] {
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
  void begin_thread(thread_scopes& on, std::uint64_t number, std::uint32_t greatest, Finish&& finish) noexcept {
    while (!on.scopes.empty()) close_innermost(on, finish);
    on.unfollowed_scopes = 0;
    on.thread = number < greatest ? static_cast<std::uint32_t>(number) : greatest;
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return operations_.bytes() + spare_.bytes(); }

 private:
  friend struct saved_threads;

  /// Closes the scopes nested in the thread's scope number `outer`: their ends were dropped.
  template <class Finish>
  [[gnu::cold, gnu::noinline]] void close_lost(thread_scopes& on, std::uint32_t outer, Finish&& finish) noexcept {
    const std::size_t kept = outer == 0 ? 0 : on.scopes.find(outer) + 1;
    for (; kept < on.scopes.depth(); ++unbalanced_) close_innermost(on, finish);
  }

  template <class Finish>
  [[gnu::always_inline]] void close_innermost(thread_scopes& on, Finish&& finish) noexcept {
    operations_.count_finished(on.scopes.operation());
    on.scopes.close_innermost(
        [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) { finish(on.thread, scope, space, usage); });
    if (on.scopes.empty() && emptied_ != &on.scopes) release(on.scopes);
  }

  template <class Finish>
  [[gnu::noinline]] void close(thread_scopes& on, std::size_t index, Finish&& finish) noexcept {
    operations_.count_finished(on.scopes[index].operation);
    on.scopes.close(index, [&](const open_scope& scope, std::uint8_t space, const scope_usage& usage) {
      finish(on.thread, scope, space, usage);
    });
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

  operation_tree operations_;
  spare_scope_stacks spare_;
  scope_stack* emptied_ = nullptr;
  std::uint64_t unbalanced_ = 0;
  std::uint64_t too_deep_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
