#pragma once

#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// @file
/// How the fields of a PyTorch memory snapshot become records, and what is wrong with those that cannot.

namespace memprof::inline MEMPROF_ABI::detail {

/// A value and its key, in any encoding.
struct torch_field {
  std::string_view key;
  std::optional<std::int64_t> integer;  ///< if the value is a whole number; booleans are not
  std::optional<std::string_view> text;
  std::optional<bool> truth;
};

/// What a value has to be, or null if it is valid.
using torch_expectation = const char*;

inline constexpr torch_expectation torch_list = "must be a list";
inline constexpr torch_expectation torch_two_numbers = "must be two whole numbers";
inline constexpr torch_expectation torch_only_once = "occurs twice";

/// No device has as many bytes as the limit, and sums of such numbers stay far below 2^64.
[[nodiscard]] torch_expectation read_bytes_to(std::uint64_t& out, const torch_field& field) noexcept;
/// Traces use nanoseconds.
[[nodiscard]] torch_expectation read_time_to(std::int64_t& out, const torch_field& field) noexcept;

/// Notes that a record has the key; false if it already had it.
[[nodiscard]] bool note_key(std::uint32_t& seen, std::span<const std::string_view> keys, std::string_view key) noexcept;

/// Whether null, or None, is a valid absent value for this key.
[[nodiscard]] bool torch_may_be_null(std::string_view key) noexcept;

/// Reads a field of an event, except `frames` and pools, which are not single values. Unknown keys are accepted.
[[nodiscard]] torch_expectation set(torch_event& event, const torch_field& field, torch_stacks& names);
/// What a complete event lacks, as the end of a sentence, or null.
[[nodiscard]] torch_expectation lack_of(const torch_event& event) noexcept;

[[nodiscard]] torch_expectation set(torch_segment& segment, const torch_field& field);

/// A block while it is being read: old snapshots have neither its address nor the requested size.
struct torch_block_fields {
  torch_block block;
  bool has_address = false;
  bool has_requested_size = false;
  bool is_active = false;
  std::uint32_t seen = 0;  ///< one bit per key

  static constexpr std::array<std::string_view, 6> keys{"size", "state", "address", "requested_size", "frames", "history"};

  [[nodiscard]] torch_expectation set(const torch_field& field);
  [[nodiscard]] torch_expectation lack() const noexcept;
  /// Adds the block to its segment. `next` is the block's address if it does not have one, and is set to the address of the next.
  void add_to(torch_segment& segment, std::uint64_t& next);
};

}  // namespace memprof::inline MEMPROF_ABI::detail
