#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/facet_folds.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/profile_size.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

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
  trace_fold fold;
  return detail::folded_profile(
      fold, asked, [&](auto& visitor) { source.visit(visitor); }, [] {});
}

namespace detail {

/// Reads a possibly malicious trace. Beyond half a gigabyte and a few seconds, its cost is proportional to the size of the
/// unpacked trace; otherwise an error is raised.
template <class Read>
[[nodiscard]] profile profile_within_bounds(const std::filesystem::path& path, std::uint32_t full_segments, facets asked,
                                            Read&& read) {
  constexpr std::size_t fixed_bytes = std::size_t{1} << 29;
  constexpr std::size_t each_byte = 128;  // a live block takes at most 171, and about five in the trace
  constexpr std::uint64_t fixed_steps = std::uint64_t{1} << 30;
  const auto refuse = [&](const char* what) {
    raise_about_file("read", path, std::string{"it would take "} + what + ", more than any trace of its size: it is damaged");
  };
  page_budget budget{fixed_bytes, each_byte};
  trace_fold fold;
  fold.limit_work(fixed_steps);
  fold.keep_full_segments(full_segments);
  return folded_profile(fold, asked, read, [&] {
    fold.events().settle_spaces();
    if (budget.is_exhausted()) refuse("too much memory");
    if (fold.events().is_overworked()) refuse("too long");
    if (max_bytes_of_profile(fold) > static_cast<double>(fixed_bytes + each_byte * budget.input())) refuse("too much memory");
  });
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
