#pragma once

#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/frame_blocks.hpp>
#include <memprof/toolkit/page/frame_invocations.hpp>
#include <memprof/toolkit/page/frame_timeline.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The most rows of the tables of a frame; for spaces, of each.
struct frame_limits {
  std::size_t buckets = 4096;
  std::size_t invocations = 20000;
  std::size_t blocks = 20000;

  /// The limits for one of many spaces, so that all together have as many rows as four would.
  [[nodiscard]] frame_limits for_spaces(std::size_t count) const noexcept;
};

/// A stretch of a trace for which a page has separate tables: all of it, or one step.
struct page_frame {
  /// What is known about a space in advance.
  struct space_outline {
    std::size_t owners;      ///< slots
    std::int64_t peak;       ///< greatest live bytes within it
    std::uint64_t activity;  ///< events that concern it
  };
  struct in_space {
    frame_timeline timeline;
    frame_blocks blocks;
    std::int64_t peak;
    bool has_peaked = false;
  };

  page_frame(const moment& begins, const moment& ends, std::int64_t row_of_step, const std::vector<space_outline>& outlines,
             const frame_limits& limits);

  [[nodiscard]] bool has(std::uint64_t event) const noexcept { return begin.event <= event && event < end.event; }

  moment begin;
  moment end;  ///< after its last event
  std::int64_t step;
  std::uint32_t mark;
  std::vector<in_space> spaces;  ///< in the order of the profile
  frame_invocations invocations;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
