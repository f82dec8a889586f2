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
        for (const std::int64_t part_of_net : {usage.self_net, usage.inner_net, usage.max_net}) bytes.add(state, part_of_net);
      }
    }
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
