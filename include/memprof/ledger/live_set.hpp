#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/field_names.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// Who held what at one moment, as reported by profiles and facets.

namespace memprof::inline MEMPROF_ABI {

/// Bytes and blocks of one owner: an operation's path (`append_operation`), empty for those allocated outside every operation, or
/// a category's name.
struct owned_bytes {
  std::string owner;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  /// Of an operation at the overall peak of a space: the category of more than half of its bytes, if one has so many. Otherwise
  /// empty. A block has the category that it was given last, also after the peak.
  std::string category = {};

  bool operator==(const owned_bytes&) const = default;
};

/// A block that was live at a peak. `name`, `shape`, `dtype` and `requires_grad` come from `annotate`; empty and unknown if it
/// was never called.
struct live_block {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::string operation;
  memprof::category category = category::other;
  std::string name;
  std::string shape;
  std::string dtype;
  memprof::requires_grad requires_grad = memprof::requires_grad::unknown;

  bool operator==(const live_block&) const = default;
};

/// What was live in one memory space at one moment. The rows of `by_operation`, with `remaining_*`, sum to `bytes`; so do
/// those of `by_category`. Rows are sorted by bytes, greatest first.
struct live_set {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  vector<owned_bytes> by_operation;
  std::int64_t remaining_bytes = 0;       ///< bytes of operations beyond `capture_options::owners_per_segment`
  std::int64_t remaining_operations = 0;  ///< number of those operations
  vector<owned_bytes> by_category;
  vector<live_block> largest_blocks;  ///< at most `capture_options::largest_blocks`

  bool operator==(const live_set&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<owned_bytes>{"owner", "bytes", "blocks", "category"};

template <>
inline constexpr detail::name_list detail::nullable_fields<owned_bytes>{"owner", "category"};

template <>
inline constexpr detail::name_list detail::later_fields<owned_bytes>{"category"};

template <>
inline constexpr detail::name_list detail::field_names<live_block>{"address", "bytes", "operation", "category",
                                                                   "name",    "shape", "dtype",     "requires_grad"};

template <>
inline constexpr detail::name_list detail::nullable_fields<live_block>{"operation"};

template <>
inline constexpr detail::name_list detail::later_fields<live_block>{"requires_grad"};

template <>
inline constexpr detail::name_list detail::field_names<live_set>{
    "bytes", "blocks", "by_operation", "remaining_bytes", "remaining_operations", "by_category", "largest_blocks"};

template <>
inline constexpr detail::name_list detail::signed_fields<live_set>{"remaining_bytes"};

}  // namespace memprof::inline MEMPROF_ABI
