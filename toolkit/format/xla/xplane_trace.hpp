#pragma once

#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// An XLA profile as a trace: each program is a segment in which its memory is allocated, used and freed. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

/// The name of an XLA memory space.
[[nodiscard]] std::string xla_space_name(std::int64_t space, bool is_tpu);

/// Whether `wanted` names the program: in full, or without the number in parentheses.
[[nodiscard]] bool is_named(const xplane_program& program, std::string_view wanted) noexcept;

namespace detail {

/// The names of the operations in an op name, outermost first: `jit(f)/while/body/dot` has four. A '/' in brackets does not
/// separate names.
[[nodiscard]] std::vector<std::string_view> path_of_op_name(std::string_view name);

}  // namespace detail

/// Returns the category of a block with that group and op name.
using hlo_categorizer = std::function<category(hlo_group group, std::string_view op_name)>;

/// Which parts of a profile become a trace.
struct xplane_trace_options {
  std::string program;            ///< name of the program, with or without the number in parentheses; empty: all programs
  std::size_t rows = 100;         ///< the largest blocks at each peak that become facts
  std::size_t all_rows = 10'000;  ///< across all peaks
};

/// Makes a trace of a profile.
class xplane_trace {
 public:
  explicit xplane_trace(const xplane_file& profile, xplane_trace_options options = {})
      : profile_(profile), options_(std::move(options)) {}

  /// What its trace says about the capture.
  [[nodiscard]] extend::capture_info info() const;

  /// Writes everything except the end: each program is a segment. A program that cannot be read is skipped: `remarks` says why,
  /// and the trace has a gap.
  void write_to(extend::trace_writer& writer, const hlo_categorizer& categorize);

  /// How many programs were written.
  [[nodiscard]] std::size_t written() const noexcept { return written_; }
  /// What could not be written, as sentences without a full stop.
  [[nodiscard]] const std::vector<std::string>& remarks() const noexcept { return remarks_; }

 private:
  const xplane_file& profile_;
  xplane_trace_options options_;
  std::size_t written_ = 0;
  std::vector<std::string> remarks_;
};

}  // namespace memprof::inline MEMPROF_ABI
