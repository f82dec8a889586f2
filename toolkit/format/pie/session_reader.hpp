#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Reads session profiles: the JSON of pie's memory profiler, written by itself or by memprof.

namespace memprof::inline MEMPROF_ABI {

namespace extend {

class trace_writer;

}  // namespace extend

/// The calls of one operation of a session profile, as the file sums them up.
struct session_operation_sum {
  std::string operation;
  std::int64_t invocations = 0;
  std::int64_t total_delta_bytes = 0;  ///< all calls; pie rounds it to 0.01 MB
  std::int64_t max_delta_bytes = 0;    ///< likewise

  static constexpr std::string_view table = "session_operations";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("operation", row.operation);
    visit("invocations", row.invocations);
    visit("total_delta_bytes", row.total_delta_bytes);
    visit("max_delta_bytes", row.max_delta_bytes);
  }
};

/// One call of an operation of a session profile.
struct session_operation_call {
  std::string operation;
  std::int64_t end_ns = 0;  ///< since the first time in the file
  std::int64_t delta_bytes = 0;
  std::int64_t before_bytes = -1;  ///< live on all devices; -1: unknown

  static constexpr std::string_view table = "session_calls";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("operation", row.operation);
    visit("end_ns", row.end_ns);
    visit("delta_bytes", row.delta_bytes);
    visit("before_bytes", row.before_bytes);
  }
};

namespace detail {

/// An operation on a thread of the trace.
struct session_span {
  std::uint32_t thread = 0;
  std::int64_t begin_unix_ns = 0;
  std::int64_t end_unix_ns = 0;
  std::string name;
};

}  // namespace detail

/// Whether a file begins as a session profile does. The file must be at its start and is left there.
[[nodiscard]] bool is_session(std::FILE* file);

/// A session profile as a source. Each snapshot is a checkpoint, at which the tensors that it lists come into being or go:
/// between two snapshots the file knows nothing, so a peak is the largest snapshot. Operations are the entries of pie's
/// `operation_log`, each from the end of the one before, and own the tensors that the file says they allocated. What has no times
/// (sums of operations, PyTorch's operators) or no begin (calls) is tables of facts.
///
/// The file is read twice, and must be seekable; takes memory for one snapshot and for the operations, not for the file.
class session_source {
 public:
  /// Reads the file for the first time. The caller keeps it open. Raises an error if it is no session profile.
  session_source(std::FILE* file, std::filesystem::path path);

  [[nodiscard]] extend::capture_info info() const;
  /// Why only the beginning could be read, as a sentence without a full stop; empty if all of it was.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Writes everything to a `trace_writer` except the end. Reads the file for the second time.
  void write_to(extend::trace_writer& writer);

 private:
  std::FILE* file_;
  std::filesystem::path path_;
  std::string damage_;
  std::string generated_by_;
  std::int64_t begin_unix_ns_ = 0;
  bool has_snapshot_ = false;
  bool has_log_ = false;
  std::vector<detail::session_span> spans_;
  std::vector<session_operation_sum> sums_;
  std::vector<session_operation_call> calls_;
  std::vector<pytorch_operation> operators_;
};

}  // namespace memprof::inline MEMPROF_ABI
