#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

/// A trace in an open file that a writer can read repeatedly, like a `trace`. Faults in the file show in `status` after the first
/// `visit`; each visit ends with the last intact event.
class trace_file {
 public:
  /// The caller keeps the file, which must be seekable; `path` is its name for messages.
  trace_file(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}

  template <extend::trace_visitor Visitor>
  void visit(Visitor& visitor) const {
    std::rewind(file_);
    status_ = read_trace(file_, path_, visitor);
  }
  [[nodiscard]] const trace_file_status& status() const noexcept { return status_; }

 private:
  std::FILE* file_;
  std::filesystem::path path_;
  mutable trace_file_status status_;
};

/// Collects the clock readings of a trace: later ones are needed for the times of earlier events.
struct clock_visitor {
  extend::clock_readings clock;

  void info(const extend::capture_info& info) {
    if (clock.empty()) clock = extend::clock_readings{info.begin_stamp};
  }
  void name(extend::label, std::string_view) {}
  void space(const extend::space_definition&) {}
  void facts(extend::fact_part&&) {}
  void events(const extend::event* first, const extend::event* last, std::uint32_t) {
    for (; first != last; ++first) {
      if (first->kind == extend::event_kind::clock_reading) clock.add(first->stamp, static_cast<std::int64_t>(first->address));
    }
  }
};

}  // namespace memprof::inline MEMPROF_ABI
