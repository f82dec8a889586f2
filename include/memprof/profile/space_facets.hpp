#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/profile/facet_names.hpp>
#include <memprof/profile/field_names.hpp>

#include <array>
#include <cstdint>
#include <string_view>

/// @file
/// The list of facets that follow single blocks. To add one is its header in `profile/facet/` and its entries here.

namespace memprof {

/// What is known of a memory space that costs too much to find out while a program runs: `profile_of` fills it from a trace, if
/// it is asked to.
struct space_facets {
  bool operator==(const space_facets&) const = default;
};

template <>
inline constexpr std::array<std::string_view, 0> field_names<space_facets>{};

/// Their structs, each before those that hold it.
using facet_structs = type_list<space_facets>;

/// Their folds over the blocks of one space.
class space_facet_folds {
 public:
  void allocated(const block&, std::uint64_t) noexcept {}
  void freed(const block&, std::uint64_t) noexcept {}
  /// `name` is its row in the history.
  void segment_ended(std::uint32_t) noexcept {}
  [[nodiscard]] space_facets build(const facet_names&) const { return {}; }
};

}  // namespace memprof
