#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/facet_folds.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_bounds.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>

/// @file
/// Implements <memprof/profile/trace_profile.hpp>.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Folds what `read` visits; `check` may raise an error before the profile is built.
template <class Read, class Check>
[[nodiscard]] profile folded_profile(trace_fold& fold, facets asked, Read&& read, Check&& check) {
  if (asked == facets::none) {
    read(fold);
    check();
    return build_profile_of(fold, fold.take_facts());
  }
  following_fold following{fold};
  read(following);
  check();
  profile result = build_profile_of(fold, fold.take_facts());
  following.fill(result);
  return result;
}

}  // namespace detail

MEMPROF_SEPARABLE profile profile_of(const trace& source, facets asked) {
  extend::trace_fold fold;
  return detail::folded_profile(
      fold, asked, [&](auto& visitor) { source.visit(visitor); }, [] {});
}

namespace detail {

/// Reads a possibly malicious trace.
template <class Read>
[[nodiscard]] profile profile_within_bounds(const std::filesystem::path& path, std::uint32_t full_segments, facets asked,
                                            Read&& read) {
  const trace_bounds bounds{path};
  trace_fold fold;
  trace_bounds::limit(fold);
  fold.keep_full_segments(full_segments);
  return folded_profile(fold, asked, read, [&] { bounds.require(fold); });
}

}  // namespace detail

MEMPROF_SEPARABLE profile profile_of(std::FILE* file, const std::filesystem::path& path, trace_file_status& status,
                                     std::uint32_t full_segments, facets asked) {
  return detail::profile_within_bounds(path, full_segments, asked, [&](auto& fold) { status = read_trace(file, path, fold); });
}

MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path, trace_file_status& status) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return profile_of(file.get(), path, status);
}

MEMPROF_SEPARABLE profile profile_of(const std::filesystem::path& path) {
  trace_file_status status;
  return profile_of(path, status);
}

}  // namespace memprof::inline MEMPROF_ABI
