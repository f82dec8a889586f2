#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/field_names.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// The owner of bytes that an allocator reserves and no block uses: fragmentation.
inline constexpr std::string_view reserved_beyond_blocks = "(reserved, but in no block)";

}  // namespace detail

/// An owner whose bytes at the ends of the steps still grow, judged by what is never freed again, as `memprof leaks` does from a
/// trace. Steps end where the segments of the most frequent name do, and count from 0.
struct owner_growth {
  std::string owner;              ///< an operation's path; empty: outside every operation; or `reserved_beyond_blocks`
  double per_step = 0;            ///< bytes, on average since `since_step`
  std::int64_t since_step = 0;    ///< when the growth began; -1: before the first of the steps that were watched
  std::int64_t within_steps = 1;  ///< how many steps later it may have begun: they are watched in parts of that many
  std::int64_t steps = 0;         ///< how many there were so far

  bool operator==(const owner_growth&) const = default;
};

template <>
inline constexpr detail::name_list detail::field_names<owner_growth>{"owner", "per_step", "since_step", "within_steps", "steps"};

template <>
inline constexpr detail::name_list detail::nullable_fields<owner_growth>{"owner"};

template <>
inline constexpr detail::name_list detail::signed_fields<owner_growth>{"since_step"};

}  // namespace memprof::inline MEMPROF_ABI
