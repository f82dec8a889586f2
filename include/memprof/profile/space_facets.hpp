#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/profile/facet/lifetimes.hpp>
#include <memprof/profile/facet_names.hpp>
#include <memprof/profile/field_names.hpp>

#include <array>
#include <cstdint>
#include <string_view>

/// @file
/// The list of facets that follow single blocks. To add one is its header in `profile/facet/` and its entries here.

namespace memprof::inline MEMPROF_ABI {

/// What is known of a memory space that costs too much to find out while a program runs: `profile_of` fills it from a trace, if
/// it is asked to.
struct space_facets {
  lifetime_profile lifetimes;

  bool operator==(const space_facets&) const = default;
};

template <>
inline constexpr auto field_names<space_facets> = std::to_array<std::string_view>({"lifetimes"});

/// Their structs, each before those that hold it.
using facet_structs = decltype(lifetime_structs{} + type_list<space_facets>{});

/// Their folds over the blocks of one space.
class space_facet_folds {
 public:
  void allocated(const block& made, std::uint64_t stamp) noexcept { lifetimes_.allocated(made, stamp); }
  void freed(const block& gone, std::uint64_t stamp) noexcept { lifetimes_.freed(gone, stamp); }
  /// `name` is its row in the history.
  void segment_ended(std::uint32_t name) noexcept { lifetimes_.segment_ended(name); }
  template <class Names>
  [[nodiscard]] space_facets build(const Names& names) const {
    return {lifetimes_.build(names)};
  }

 private:
  space_lifetimes lifetimes_;
};

}  // namespace memprof::inline MEMPROF_ABI
