#include <memprof/config.hpp>
#include <memprof/toolkit/page/stack_tree.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr std::uint32_t no_stack_node = std::numeric_limits<std::uint32_t>::max();

/// The tree before it is cut.
class whole_stack_tree {
 public:
  struct node {
    std::uint32_t parent;  ///< index; `no_stack_node`: outermost
    stack_node_kind kind;
    std::uint32_t name;
    stack_weights weights{};  ///< with all within it
  };

  explicit whole_stack_tree(const std::vector<stack_tree::operation>& operations)
      : operations_(operations), node_of_operation_(operations.size(), no_stack_node) {}

  /// The node of an operation; that of none is `no_stack_node`.
  std::uint32_t operation(std::uint32_t number) {
    if (number == 0) return no_stack_node;
    std::uint32_t& known = node_of_operation_[number];
    if (known == no_stack_node)
      known = child(operation(operations_[number].parent), stack_node_kind::operation, operations_[number].name);
    return known;
  }
  std::uint32_t child(std::uint32_t parent, stack_node_kind kind, const std::string& name) {
    const auto text = static_cast<std::uint32_t>(ids_.try_emplace(name, names_.size()).first->second);
    if (text == names_.size()) names_.push_back(name);
    const auto [found, is_new] =
        children_.try_emplace({std::uint64_t{parent} << 32U | text, kind}, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, kind, text});
    return found->second;
  }
  void add(std::uint32_t index, const stack_weights& weights) {
    for (; index != no_stack_node; index = nodes_[index].parent) {
      for (std::size_t which = 0; which < weights.size(); ++which) nodes_[index].weights[which] += weights[which];
    }
  }

  [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::string& name(const node& of) const noexcept { return names_[of.name]; }

 private:
  const std::vector<stack_tree::operation>& operations_;
  std::vector<std::uint32_t> node_of_operation_;
  std::vector<node> nodes_;
  std::map<std::pair<std::uint64_t, stack_node_kind>, std::uint32_t> children_;
  std::unordered_map<std::string, std::size_t> ids_;
  std::vector<std::string> names_;
};

/// The greatest share that the weights are of these sums.
[[nodiscard]] double share_of_stack(const stack_weights& weights, const stack_weights& sums) {
  double greatest = 0;
  for (std::size_t which = 0; which < weights.size(); ++which) {
    if (sums[which] > 0) greatest = std::max(greatest, static_cast<double>(weights[which]) / static_cast<double>(sums[which]));
  }
  return greatest;
}

}  // namespace

stack_tree::stack_tree(const std::vector<operation>& operations, std::vector<row> rows,
                       const std::function<std::vector<std::string>(label stack)>& calls, const limits& most) {
  stack_weights sums{};
  for (const row& each : rows) {
    for (std::size_t which = 0; which < sums.size(); ++which) sums[which] += each.weights[which];
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const row& left, const row& right) {
    return share_of_stack(left.weights, sums) > share_of_stack(right.weights, sums);
  });

  whole_stack_tree whole{operations};
  std::vector<std::uint32_t> innermost(rows.size());  // node of each row; of a stack that is not named, its operation's
  std::vector<bool> is_named(rows.size());
  std::size_t named = 0;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const stack_owner& owner = rows[index].owner;
    innermost[index] = whole.operation(owner.operation);
    const bool has_stack = owner.stack != 0 && owner.stack != stack_owner::small_blocks;
    if (has_stack && named < most.stacks) {
      const std::vector<std::string> names = calls(owner.stack);
      for (const std::string& name : names) innermost[index] = whole.child(innermost[index], stack_node_kind::call, name);
      is_named[index] = !names.empty();
      ++named;
    }
    whole.add(innermost[index], rows[index].weights);
  }

  // A parent has at least what its child has, and was made before it: what is kept is a tree.
  const std::vector<whole_stack_tree::node>& all = whole.nodes();
  std::vector<std::uint32_t> order(all.size());
  for (std::uint32_t index = 0; index < order.size(); ++index) order[index] = index;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return share_of_stack(all[left].weights, sums) > share_of_stack(all[right].weights, sums);
  });
  order.resize(std::min(order.size(), most.nodes));
  left_out_ = all.size() - order.size();
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> kept(all.size(), 0);  // index plus 1 in `nodes_`
  const auto kept_of = [&](std::uint32_t index) { return index == no_stack_node ? 0 : kept[index]; };
  for (const std::uint32_t index : order) {
    nodes_.push_back({kept_of(all[index].parent), all[index].kind, whole.name(all[index])});
    kept[index] = static_cast<std::uint32_t>(nodes_.size());
  }

  is_kept_.resize(operations.size());
  for (const row& each : rows) {
    const std::uint32_t node = whole.operation(each.owner.operation);
    is_kept_[each.owner.operation] = node != no_stack_node && kept[node] != 0;
  }

  std::map<std::pair<std::uint32_t, stack_node_kind>, std::uint32_t> leaves;
  const auto leaf = [&](std::uint32_t parent, stack_node_kind kind) {
    const auto [found, is_new] = leaves.try_emplace({parent, kind}, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, kind});
    return found->second;
  };
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const stack_owner& owner = rows[index].owner;
    std::uint32_t within = innermost[index];
    while (within != no_stack_node && kept[within] == 0) within = all[within].parent;
    const std::uint32_t parent = kept_of(within);
    std::uint32_t& node = node_of_[owner.key()];
    if (within != innermost[index])
      node = leaf(parent, stack_node_kind::folded);
    else if (is_named[index])
      node = parent - 1;
    else if (owner.stack == stack_owner::small_blocks)
      node = leaf(parent, stack_node_kind::small);
    else
      node = leaf(parent, owner.stack == 0 ? stack_node_kind::without : stack_node_kind::folded);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
