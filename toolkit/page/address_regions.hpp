#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The addresses of a space's blocks as a few ranges: a heap, mappings far from it, a device. Offsets skip the gaps between them,
/// so that everything can be drawn on one axis.
class address_regions {
 public:
  static constexpr std::size_t max_regions = 256;

  struct region {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t offset;  ///< of its start: the total bytes of the regions before it
  };

  /// Costs one comparison if the block is in the same region as the previous one.
  void add(std::uint64_t address, std::int64_t bytes);

  /// Merges the remaining regions and sets the offsets. Call it before the first `offset_of`.
  void finish();

  /// The offset of an address that was added.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t address) const noexcept;

  [[nodiscard]] const std::vector<region>& regions() const noexcept { return regions_; }

 private:
  /// Ranges closer than this are one: no picture shows a gap of this size in the memory of a program.
  static constexpr std::uint64_t least_gap = std::uint64_t{1} << 20;

  void insert(std::uint64_t begin, std::uint64_t end);

  /// Merges neighbours across the narrowest gaps until `max_regions` are left.
  void join_nearest();

  std::vector<region> regions_;  ///< disjoint, ascending
  std::size_t last_ = 0;         ///< the last one hit
};

}  // namespace memprof::inline MEMPROF_ABI::detail
