#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/profile/profile_size.hpp>
#include <memprof/profile/trace_fold.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Bounds for reading a possibly malicious trace file on this thread: beyond half a gigabyte and a few seconds, its cost is
/// proportional to the size of the unpacked trace. Counts while it lives.
class trace_bounds {
 public:
  /// `path`: the file's name, for messages.
  explicit trace_bounds(const std::filesystem::path& path) : path_(path) {}

  /// Call before the first record.
  static void limit(trace_fold& fold) noexcept { fold.limit_work(std::uint64_t{1} << 30); }

  /// Throws `memprof::error` if the trace, or its profile, takes more. Call after the last record.
  void require(trace_fold& fold) const {
    fold.events().settle_spaces();
    if (budget_.is_exhausted()) refuse("too much memory");
    if (fold.events().is_overworked()) refuse("too long");
    if (max_bytes_of_profile(fold) > static_cast<double>(fixed_bytes + each_byte * budget_.input())) refuse("too much memory");
  }

 private:
  static constexpr std::size_t fixed_bytes = std::size_t{1} << 29;
  static constexpr std::size_t each_byte = 128;  // a live block takes at most 171, and about five in the trace

  [[noreturn]] void refuse(std::string_view what) const {
    raise_about_file("read", path_, "it would take " + std::string{what} + ", more than any trace of its size: it is damaged");
  }

  std::filesystem::path path_;
  page_budget budget_{fixed_bytes, each_byte};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
