#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/operation_stats.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/profile/ledger_names.hpp>
#include <memprof/profile/operation_path.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

template <class Tree>
[[nodiscard, gnu::cold]] vector<std::string> operation_paths(const Tree& tree, name_view labels) {
  vector<std::string> paths(tree.size());
  for (std::size_t node = 1; node < tree.size(); ++node) {
    paths[node] = paths[tree[node].parent];
    if (tree[node].name == other_names) {
      append_other_operations(paths[node]);
    } else {
      append_operation(paths[node], labels.text(tree[node].name));
    }
  }
  return paths;
}

[[nodiscard, gnu::cold]] inline operation_invocation to_invocation(const invocation_record& run, const clock_readings& time) {
  return {run.thread, time.to_ns(run.begin_stamp), time.to_ns(run.end_stamp), run.delta, run.peak};
}

/// Sums a space's self values along the tree; entry 0 is "no operation".
template <class Tree, class Space>
[[nodiscard, gnu::cold]] vector<operation_usage> usage_of_space(const Tree& tree, const Space& space, std::string_view space_name,
                                                                const clock_readings& time) {
  vector<operation_usage> all(tree.size());
  for (std::size_t node = tree.size(); node-- > 0;) {
    operation_usage& usage = all[node];
    usage.space = space_name;
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      usage.self_allocated = stats.allocated;
      usage.self_freed = stats.freed;
      usage.allocated += stats.allocated;
      usage.freed += stats.freed;
      usage.inferred += stats.inferred;
      usage.allocation_count = stats.allocation_count;
      usage.deallocation_count = stats.deallocation_count;
      // Invocations that ended before an operation of their thread first used the space are not in `stats`; they changed nothing
      // in it.
      usage.max_delta = stats.finished < tree[node].finished ? std::max(stats.max_delta, std::int64_t{0}) : stats.max_delta;
      usage.peak = stats.peak;
      usage.self_peak = stats.self_peak;
      usage.live = stats.owned.live;
      if (stats.changing != 0) {
        usage.first_invocation = to_invocation(stats.first, time);
        usage.last_invocation = to_invocation(stats.last, time);
        usage.largest_invocation = to_invocation(stats.largest, time);
      }
    }
    usage.self_delta = usage.self_allocated - usage.self_freed;
    usage.total_delta = usage.allocated - usage.freed;
    if (node == 0) break;
    all[tree[node].parent].allocated += usage.allocated;
    all[tree[node].parent].freed += usage.freed;
    all[tree[node].parent].inferred += usage.inferred;
  }
  return all;
}

/// Which operations allocated or freed in a space, directly or through a nested operation.
template <class Tree, class Space>
[[nodiscard, gnu::cold]] vector<char> active_operations(const Tree& tree, const Space& space) {
  vector<char> is_active(tree.size());
  for (std::size_t node = tree.size(); --node > 0;) {
    if (node < space.operation_count()) {
      const operation_stats& stats = space.operation(node);
      if (stats.allocation_count != 0 || stats.deallocation_count != 0) is_active[node] = 1;
    }
    if (is_active[node] != 0) is_active[tree[node].parent] = 1;
  }
  return is_active;
}

template <class Ledger>
[[nodiscard, gnu::cold]] vector<operation_profile> build_operations(const Ledger& events, const ledger_names& names,
                                                                    const vector<std::string>& paths) {
  const operation_tree& tree = events.operations();
  vector<operation_profile> operations(tree.size() - 1);
  for (std::size_t node = 1; node < tree.size(); ++node) {
    operation_profile& operation = operations[node - 1];
    operation.path = paths[node];
    operation.stands_for_others = tree[node].name == other_names;
    operation.name = operation.stands_for_others ? other_operations_name : names.labels.text(tree[node].name);
    operation.parent = static_cast<std::int64_t>(tree[node].parent) - 1;
    operation.invocations = tree[node].invocations;
  }
  // Rows are counted before they are filled, here and below: growing vectors would cost every user of the header compile time.
  vector<std::size_t> rows(tree.size());
  const auto for_each_space = [&](auto&& visit) {
    for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
      if (events.space(id) == nullptr) continue;
      const vector<char> is_active = active_operations(tree, *events.space(id));
      for (std::size_t node = 1; node < tree.size(); ++node) {
        if (is_active[node] != 0) visit(id, node);
      }
    }
  };
  for_each_space([&](std::size_t, std::size_t node) { ++rows[node]; });
  for (std::size_t node = 1; node < tree.size(); ++node) operations[node - 1].usage = vector<operation_usage>(rows[node]);
  std::size_t filled_space = ledger::max_spaces;
  vector<operation_usage> usage;
  for (std::size_t& row : rows) row = 0;
  for_each_space([&](std::size_t id, std::size_t node) {
    if (id != filled_space) usage = usage_of_space(tree, *events.space(id), names.labels.text(names.space_names[id]), names.time);
    filled_space = id;
    operations[node - 1].usage[rows[node]++] = std::move(usage[node]);
  });
  return operations;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
