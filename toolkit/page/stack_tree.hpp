#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a node of a `stack_tree` stands for. Only operations and calls have others within them.
enum class stack_node_kind : std::uint8_t {
  operation,
  call,
  folded,   ///< what has no node of its own within its parent
  without,  ///< blocks of an operation that should have a stack and have none
  small     ///< all small blocks of an operation, of which only a sample has a stack
};

/// A node of the tree of operations and, within them, calls.
struct stack_node {
  std::uint32_t parent = 0;  ///< index plus 1; 0: outermost
  stack_node_kind kind = stack_node_kind::operation;
  std::string name = {};  ///< of an operation or a call
};

/// Who asked for blocks: an operation, and the stack within it. The same pair stands for the small blocks of the operation.
struct stack_owner {
  static constexpr label small_blocks = ~label{0};

  std::uint32_t operation = 0;  ///< a node of the trace's operations; 0: none
  label stack = 0;              ///< 0: blocks without one; `small_blocks`: the small ones, of a sample

  bool operator==(const stack_owner&) const = default;
  [[nodiscard]] std::uint64_t key() const noexcept { return std::uint64_t{operation} << 32U | stack; }
};

/// How much an owner had: at the peak, at the end, and of all that was allocated. What is largest in any is worth showing.
using stack_weights = std::array<std::int64_t, 3>;

/// The operations of a trace and the calls within them, in a bounded number of nodes: those with the most bytes. Each owner has a
/// node, and if that is not its own, one that says so.
class stack_tree {
 public:
  /// An operation of the trace, by its number.
  struct operation {
    std::uint32_t parent;
    std::string name;
  };
  struct row {
    stack_owner owner;
    stack_weights weights;
  };
  struct limits {
    std::size_t nodes = 1000;   ///< operations and calls
    std::size_t stacks = 4096;  ///< the largest, whose calls are named
  };

  /// `operations`: parents before children, the first is "no operation". `calls(stack)` names the calls of a stack, outermost
  /// first.
  stack_tree(const std::vector<operation>& operations, std::vector<row> rows,
             const std::function<std::vector<std::string>(label stack)>& calls, const limits& most);

  /// Parents before their children.
  [[nodiscard]] const std::vector<stack_node>& nodes() const noexcept { return nodes_; }
  /// The node of an owner that was among the rows.
  [[nodiscard]] std::uint32_t node_of(const stack_owner& owner) const { return node_of_.at(owner.key()); }
  /// Whether an operation has a node, or is none.
  [[nodiscard]] bool has_operation(std::uint32_t number) const { return number == 0 || is_kept_[number]; }
  /// Operations and calls that have no node of their own. Calls of stacks that were not named are not counted.
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }

 private:
  std::vector<stack_node> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> node_of_;
  std::vector<bool> is_kept_;  ///< by number of the operation
  std::size_t left_out_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
