#pragma once

#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/saved_state/values.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The tree of operations, and those that are open on each thread.
struct saved_threads : saved_values {
  /// The tree of operations, in the order in which they were first called.
  template <class State, class Visitor>
  static void operations(State& state, Visitor& part) noexcept {
    auto& tree = part.operations_;
    std::size_t count = tree.size() - 1;
    state.number(count);
    for (std::uint32_t index = 1; index <= count && !state.has_failed(); ++index) {
      operation_tree::node node{};
      if constexpr (!State::reads) node = tree[index];
      state.numbers(node.parent, node.name);
      state.amounts(node.invocations, node.finished);
      if constexpr (State::reads) {
        if (!state.has_failed()) state.require(node.parent < index && tree.child(node.parent, node.name) == index);
        if (!state.has_failed()) tree.nodes_[index] = node;
      }
    }
  }
  template <class State, class Visitor>
  static void faults(State& state, Visitor& part) noexcept {
    state.amounts(part.unbalanced_, part.too_deep_);
  }

  /// A thread's open operations, outermost first: node, name, number, category.
  template <class State, class Stack>
  static void open_operations(State& state, Stack& part, std::size_t operation_count) noexcept {
    state.rows(part.scopes_, [&](auto& scope) {
      operation(state, scope.operation, operation_count);
      state.numbers(scope.name, scope.number, scope.tag, scope.begin_stamp);
      state.require(scope.tag <= category_names.size());
    });
    state.require(part.scopes_.size() <= scope_stack::max_depth);
  }

  /// Their usage of each space; `is_space(id)` says which spaces exist.
  template <class State, class Stack, class IsSpace>
  static void usages(State& state, Stack& part, IsSpace&& is_space) noexcept {
    std::uint32_t used = part.used_count_;
    state.number(used);
    for (std::uint32_t index = 0; index < used && !state.has_failed(); ++index) {
      std::uint8_t space = 0;
      if constexpr (!State::reads) space = part.table_->used[index];
      state.number(space);
      if constexpr (State::reads) {
        state.require(is_space(space) && !part.knows(space));
        if (!state.has_failed()) state.require(part.in_space(space) != nullptr);
        if (state.has_failed()) return;
      }
      state_sum bytes;
      for (auto& usage : part.table_->scopes[space]) {
        state.changes(usage.self_net, usage.inner_net);
        state.amounts(usage.self_max, usage.max_net);
        const std::int64_t parts_of_net[] = {usage.self_net, usage.inner_net, usage.max_net};
        for (const std::int64_t net : parts_of_net) bytes.add(state, net);
      }
    }
  }

  /// Whose operations the threads of rings [0, `rings`) work for beside their own. `thread_in(ring)` is the thread of a ring, or
  /// null.
  template <class State, class Visitor, class ThreadIn>
  static void adoptions(State& state, Visitor& part, std::size_t rings, ThreadIn&& thread_in) noexcept {
    const auto thread = [&](auto& named) {
      std::uint32_t behind = 0;  // 0: none
      if constexpr (!State::reads) {
        for (std::uint32_t ring = 0; behind == 0 && named != nullptr && ring < rings; ++ring) {
          if (thread_in(ring) == named) behind = ring + 1;
        }
      }
      state.number(behind);
      if constexpr (State::reads) {
        named = behind == 0 || state.has_failed() ? nullptr : thread_in(behind - 1);
        state.require((behind == 0) == (named == nullptr));
      }
    };
    state.number(part.leading_thread_);
    thread(part.leader_);
    if constexpr (State::reads) {
      if (part.leader_ != nullptr) part.leader_->scopes.is_always_joined_ = part.leader_->scopes.is_joined_ = true;
    }
    std::size_t joined = 0;
    if constexpr (!State::reads) {
      for (std::uint32_t ring = 0; ring < rings; ++ring) {
        if (is_joined(thread_in(ring))) ++joined;
      }
    }
    state.number(joined);
    for (std::uint32_t ring = 0; joined != 0 && !state.has_failed(); ++ring) {
      if constexpr (!State::reads) {
        if (!is_joined(thread_in(ring))) continue;
      }
      state.number(ring);
      auto* const on = state.has_failed() ? nullptr : thread_in(ring);
      state.require(on != nullptr);
      if (on == nullptr || state.has_failed()) return;
      if constexpr (State::reads) on->scopes.is_joined_ = true;
      for (auto& scope : on->scopes.scopes_) state.number(scope.is_adopted);
      auto& adopted = on->scopes.adoptions_;
      state.rows(adopted, [&](auto& of) {
        if constexpr (!State::reads) {
          auto* const leader = Visitor::is_in_force(of) ? of.leader : nullptr;
          thread(leader);
        } else {
          thread(of.leader);
          of.leader_era = of.leader == nullptr ? 0 : of.leader->era;
        }
        state.number(of.leader_scope);
      });
      state.require(adopted.size() == on->scopes.adoptions_before(on->scopes.depth()));
      --joined;
    }
  }

 private:
  [[nodiscard]] static bool is_joined(const thread_scopes* thread) noexcept {
    return thread != nullptr && thread->scopes.is_joined() && !thread->scopes.empty();
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
