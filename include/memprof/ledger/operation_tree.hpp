#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_threads;

/// The nesting of operations: a node is a path of names. Node 0 is "no operation".
///
/// Nodes are created when a path first occurs and never removed; parents have smaller numbers than their children. Once the limit
/// is reached, each node gets at most one more child, with the name `other_names`, which stands for all others.
class operation_tree {
 public:
  /// In place of a node for which the system has no memory.
  static constexpr std::uint32_t no_node = ~std::uint32_t{0};

  /// One path: its parent, and how often it was called.
  struct node {
    std::uint32_t parent;
    label name;
    std::int64_t invocations;
    std::int64_t finished;  ///< invocations that have ended
  };

  /// At most `limit` operations, plus one more under each of them and at the top.
  explicit operation_tree(std::uint32_t limit = ~std::uint32_t{0}) noexcept : limit_(limit) {
    is_usable_ = nodes_.push_back({}) && slots_.resize(256);
  }

  /// At least 1, even if the system had no memory for the tree.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.empty() ? 1 : nodes_.size(); }
  [[nodiscard]] const node& operator[](std::size_t index) const noexcept { return nodes_[index]; }
  void count_invocation(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].invocations;
  }
  void count_finished(std::uint32_t index) noexcept {
    if (index != 0) ++nodes_[index].finished;
  }

  /// The node for `name` under `parent`, created if new; `no_node` if the system has no memory. Once there are too many, an
  /// operation called inside the node for all others gets that same node.
  [[nodiscard, gnu::always_inline]] std::uint32_t child(std::uint32_t parent, label name) noexcept {
    if (!is_usable_) return no_node;
    std::size_t slot = slot_of(parent, name, slots_.size());
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const node& known = nodes_[slots_[slot]];
      if (known.parent == parent && known.name == name) return slots_[slot];
    }
    return make_child(parent, name, slot);
  }

  /// The operation of that name if there is exactly one, else 0. A pass over all.
  [[nodiscard]] std::uint32_t only_node_named(label name) const noexcept {
    std::uint32_t found = 0;
    for (std::uint32_t index = 1; index < size(); ++index) {
      if (nodes_[index].name != name) continue;
      if (found != 0) return 0;
      found = index;
    }
    return found;
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.bytes() + slots_.bytes(); }

 private:
  friend struct saved_threads;

  [[gnu::cold, gnu::noinline]] std::uint32_t make_child(std::uint32_t parent, label name, std::size_t slot) noexcept {
    if (name == other_names || nodes_.size() > limit_) {
      if (parent != 0 && nodes_[parent].name == other_names) return parent;
      if (name != other_names) return child_for_others(parent);
    }
    if (2 * (nodes_.size() + 1) > slots_.size()) {
      if (!grow()) return no_node;
      slot = free_slot(slots_, parent, name);
    }
    if (!nodes_.push_back({parent, name, 0, 0})) return no_node;
    return slots_[slot] = static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  [[gnu::noinline]] std::uint32_t child_for_others(std::uint32_t parent) noexcept { return child(parent, other_names); }

  [[nodiscard]] static std::size_t slot_of(std::uint32_t parent, label name, std::size_t slots) noexcept {
    const std::uint64_t key = std::uint64_t{parent} << 32 | name;
    return std::size_t{(key * 0x9E3779B97F4A7C15U) >> 32} & (slots - 1);
  }

  [[nodiscard]] static std::size_t free_slot(const page_array<std::uint32_t>& slots, std::uint32_t parent, label name) noexcept {
    std::size_t slot = slot_of(parent, name, slots.size());
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  [[nodiscard]] bool grow() noexcept {
    page_array<std::uint32_t> slots;
    if (!slots.resize(2 * slots_.size())) return false;
    for (std::size_t index = 1; index < nodes_.size(); ++index) {
      slots[free_slot(slots, nodes_[index].parent, nodes_[index].name)] = static_cast<std::uint32_t>(index);
    }
    slots_ = std::move(slots);
    return true;
  }

  std::uint32_t limit_;
  bool is_usable_ = false;
  page_array<node> nodes_;
  page_array<std::uint32_t> slots_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
