#pragma once

#include <memprof/ledger/facet/capacity.hpp>
#include <memprof/ledger/facet/cores.hpp>
#include <memprof/ledger/facet/lifetimes.hpp>
#include <memprof/ledger/facet/out_of_memory.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/ledger/facet/streams.hpp>
#include <memprof/ledger/facet_names.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/trace/field_names.hpp>

#include <cstdint>
#include <string_view>

/// @file
/// The list of facets. Most are folded with the ledger, in `space_ledger`, and are fields of `space_profile`. Those that follow
/// single blocks are folded only on request. Adding one of those takes a header in `ledger/facet/` and its entries here.

namespace memprof::inline MEMPROF_ABI {

/// What costs too much to compute about a memory space while a program runs: `profile_of` fills it from a trace, on request.
struct space_facets {
  lifetime_profile lifetimes;

  bool operator==(const space_facets&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<space_facets>{"lifetimes"};

namespace detail {

/// The structs of all facets, each before those that contain it.
using facet_structs = decltype(capacity_structs{} + core_structs{} + lifetime_structs{} + out_of_memory_structs{} +
                               reserved_structs{} + stream_structs{} + type_list<space_facets>{});

/// For one space, the folds of the facets that follow blocks.
class space_facet_folds {
 public:
  void allocated(const block& made, std::uint64_t stamp) noexcept { lifetimes_.allocated(made, stamp); }
  void freed(const block& gone, std::uint64_t stamp) noexcept { lifetimes_.freed(gone, stamp); }
  /// `name` is its row in the history.
  void segment_ended(std::uint32_t name) noexcept { lifetimes_.segment_ended(name); }
  template <class Names = facet_names>
  [[nodiscard]] space_facets build(const Names& names) const {
    return {lifetimes_.build(names)};
  }

 private:
  space_lifetimes lifetimes_;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
