#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/page/frame_timeline.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/stack_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// @file
/// Who asked for the memory of the C++ heap, over time, by the stacks of a trace that has some.

namespace memprof::inline MEMPROF_ABI::detail {

/// What blocks of a trace with stacks are.
struct stack_sum {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t weight = 0;    ///< bytes for which the sampled ones stand: each for as many as it was improbable
  std::int64_t sampled = 0;   ///< how many were sampled; these are not among `bytes` and `blocks`
  std::int64_t variance = 0;  ///< of `weight`, in units of `page_stacks::variance_unit`
};

/// The most that a page has of stacks.
struct stack_limits {
  stack_tree::limits tree;
  std::size_t buckets = 512;
  std::size_t parts = std::size_t{1} << 17U;  ///< buckets are fewer, but 64 or more, if there are so many nodes
};

/// The stacks of a page, with what their nodes own: without what nodes within them have.
struct page_stacks {
  /// What of a node a part is about.
  enum class column : std::uint8_t { known, sampled, variance };
  struct part {
    std::uint32_t bucket;
    std::uint32_t node;
    column of;
    std::int64_t bytes;   ///< of `known`; else the weight, or the variance
    std::int64_t blocks;  ///< of `known`; else how many were sampled
  };

  heap_stacks recorded;
  double variance_unit = 1;
  std::vector<stack_node> nodes;
  std::vector<stack_sum> allocated;  ///< by node: of everything that was allocated
  std::vector<frame_timeline::bucket> buckets;
  std::vector<part> parts;  ///< as `frame_timeline::parts`
  std::size_t left_out = 0;
};

/// The stacks of a trace, which is read twice more; none if it has no stacks or nobody names them. `of` is the profile of the
/// trace, which `survey` has read.
[[nodiscard]] std::optional<page_stacks> stacks_for_page(const trace_source_view& source, const profile& of,
                                                         const run_survey& survey, const html_options& options,
                                                         const stack_limits& most = {});

}  // namespace memprof::inline MEMPROF_ABI::detail
