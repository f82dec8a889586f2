#include "exports.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/toolkit/analysis/block_callers.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/heaptrack/writer.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/toolkit/format/pprof/pprof.hpp>
#include <memprof/toolkit/format/pytorch/snapshot.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/speedscope.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/toolkit/format/valgrind/dhat.hpp>
#include <memprof/toolkit/format/valgrind/massif.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/fact_table.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_python {
namespace {

using sentences = std::vector<std::string>;

/// One run on its way into one format.
class exporter {
 public:
  exporter(const memprof::profile& run, const memprof::trace_source_view* events, const export_request& asked)
      : run_(run), events_(events), asked_(asked) {}

  sentences write(memprof::file_sink& out) const {
    for (const auto& [format, write] : writers) {
      if (format == asked_.format) return (this->*write)(out);
    }
    std::string known;
    for (const auto& each : writers) known += (known.empty() ? "" : ", ") + std::string{each.format};
    known += ", csv, jsonl, parquet, trace, packed-trace";
    memprof::detail::raise("unknown format '" + asked_.format + "'; expected one of " + known);
  }

 private:
  sentences write_collapsed(memprof::file_sink& out) const {
    memprof::write_collapsed(stacks(false), counted_value(), out);
    return {};
  }
  sentences write_speedscope(memprof::file_sink& out) const {
    memprof::write_speedscope(stacks(false), asked_.run, out);
    return {};
  }
  sentences write_pprof(memprof::file_sink& out) const {
    memprof::stack_table table = stacks(true);
    set_peak_segments(table, run_);
    memprof::pprof_options options;
    for (const auto& [name, value] : asked_.labels) options.labels.push_back({name, value});
    memprof::write_pprof(table, out, options);
    if (events_ != nullptr) return {};
    return {"a profile lacks categories per operation and the number of blocks each has left"};
  }
  sentences write_dhat(memprof::file_sink& out) const {
    require_events("the lifetimes of blocks");
    const std::string& space = one_space().name;
    const memprof::stack_table table = stacks(false);
    for (std::uint32_t index = 0; index < table.spaces.size(); ++index) {
      if (table.spaces[index].name != space) continue;
      memprof::write_dhat(table, index, out);
      return {};
    }
    memprof::detail::raise("'" + space + "' has no allocations");
  }
  sentences write_heaptrack(memprof::file_sink& out) const {
    require_events("individual blocks");
    const bool has_stacks = memprof::recorded_stacks_of(run_).has_value();
    const memprof::calls_of_stack calls = has_stacks ? memprof::frames_by_name() : memprof::calls_of_stack{};
    memprof::write_heaptrack(*events_, one_space().name, calls, out);
    return {};
  }
  sentences write_profile(memprof::file_sink& out) const {
    out.write(memprof::to_json_text(run_) + '\n');
    return {};
  }
  sentences write_massif(memprof::file_sink& out) const {
    memprof::write_massif(run_, one_space(), out);
    return {};
  }
  sentences write_chrome(memprof::file_sink& out) const { return write_over_time<memprof::chrome_trace_writer>(out); }
  sentences write_perfetto(memprof::file_sink& out) const { return write_over_time<memprof::perfetto_writer>(out); }
  sentences write_session(memprof::file_sink& out) const {
    sentences lacks = events_ != nullptr ? memprof::write_session(*events_, run_, out) : memprof::write_session(run_, out);
    for (std::string& each : memprof::session_losses(run_)) lacks.push_back(std::move(each));
    return lacks;
  }
  sentences write_torch_snapshot(memprof::file_sink& out) const {
    require_events("individual blocks");
    sentences lacks;
    for (const auto& loss : memprof::write_torch_snapshot(*events_, out)) {
      if (loss.left_out_events != 0)
        lacks.push_back(loss.space + ": " + std::to_string(loss.left_out_events) + " events outside a window around the peak");
      if (loss.left_out_blocks != 0)
        lacks.push_back(loss.space + ": " + std::to_string(loss.left_out_blocks) +
                        " blocks that overlap others or have no address below 2^53");
    }
    for (std::string& each : memprof::torch_snapshot_losses(run_)) lacks.push_back(std::move(each));
    return lacks;
  }

  struct writer {
    std::string_view format;
    sentences (exporter::*write)(memprof::file_sink&) const;
  };
  static const std::array<writer, 11> writers;

  template <class Writer>
  sentences write_over_time(memprof::file_sink& out) const {
    Writer timeline{out};
    if (events_ == nullptr) {
      memprof::write_timeline(run_, timeline);
      return {};
    }
    const memprof::timeline_losses losses = memprof::write_timeline(*events_, run_.process, timeline);
    if (losses.events_per_stretch <= 1) return {};
    return {"counters show only the extremes of every " + std::to_string(losses.events_per_stretch) + " events"};
  }

  void require_events(const char* what) const {
    if (events_ == nullptr)
      memprof::detail::raise("a profile lacks " + std::string{what} + ", which " + asked_.format +
                             " needs: export the trace (capture(trace=True), or Trace(path))");
  }
  [[nodiscard]] memprof::stack_table stacks(bool by_category) const {
    if (events_ == nullptr) return memprof::stack_table_of(run_);
    const bool has_stacks = memprof::recorded_stacks_of(run_).has_value();
    return memprof::stack_table_of(*events_, by_category, false,
                                   has_stacks ? memprof::frames_of_stack{memprof::calls_by_name()} : memprof::frames_of_stack{});
  }
  [[nodiscard]] memprof::stack_value counted_value() const {
    for (const auto value : {memprof::stack_value::peak, memprof::stack_value::end, memprof::stack_value::all}) {
      if (asked_.of == to_string(value) || asked_.of.empty()) return value;
    }
    memprof::detail::raise("of='" + asked_.of + "' is none of peak, end, all");
  }
  [[nodiscard]] const memprof::space_profile& one_space() const {
    if (!asked_.space.empty()) return run_.space(asked_.space);
    const memprof::space_profile* greatest = nullptr;
    for (const memprof::space_profile& space : run_.spaces) {
      if (greatest == nullptr || space.cumulative_peak > greatest->cumulative_peak) greatest = &space;
    }
    if (greatest == nullptr) memprof::detail::raise("the profile has no memory space: nothing was recorded");
    return *greatest;
  }

  const memprof::profile& run_;
  const memprof::trace_source_view* events_;
  const export_request& asked_;
};

constexpr std::array<exporter::writer, 11> exporter::writers{{{"chrome", &exporter::write_chrome},
                                                              {"collapsed", &exporter::write_collapsed},
                                                              {"dhat", &exporter::write_dhat},
                                                              {"heaptrack", &exporter::write_heaptrack},
                                                              {"massif", &exporter::write_massif},
                                                              {"perfetto", &exporter::write_perfetto},
                                                              {"pprof", &exporter::write_pprof},
                                                              {"profile", &exporter::write_profile},
                                                              {"session", &exporter::write_session},
                                                              {"speedscope", &exporter::write_speedscope},
                                                              {"torch-snapshot", &exporter::write_torch_snapshot}}};

/// The tables of a run, as `memprof convert` writes them into a folder.
class table_folder {
 public:
  table_folder(const memprof::profile& run, const memprof::trace_source_view* events, const export_request& asked,
               memprof::table_format format)
      : run_(run), events_(events), asked_(asked), format_(format) {}

  sentences write() const {
    std::error_code failure;
    std::filesystem::create_directories(asked_.path, failure);
    if (failure) memprof::detail::raise_about_file("create the folder", asked_.path, failure.message());
    using table = memprof::table_writer;
    const std::string& name = asked_.run;
    to_table("runs", [&](table& rows) { memprof::write_runs_table(run_, name, rows); });
    to_table("labels", [&](table& rows) { memprof::write_labels_table(run_, name, labels(), rows); });
    to_table("segments", [&](table& rows) { memprof::write_segments_table(run_, name, rows); });
    to_table("operations", [&](table& rows) { memprof::write_operations_table(run_, name, rows); });
    if (events_ == nullptr) {
      to_table("blocks", [&](table& rows) { memprof::write_block_table(run_, name, rows); });
      return {"a profile has only the largest blocks at the peaks, and no events; a trace has all of them"};
    }
    to_table("blocks", [&](table& blocks) {
      to_table("events", [&](table& rows) { memprof::write_block_tables(*events_, name, blocks, rows); });
    });
    return {};
  }

 private:
  template <class Write>
  void to_table(const char* name, Write write) const {
    memprof::detail::replace_file(asked_.path / (std::string{name} + '.' + asked_.format), [&](std::FILE* file) {
      memprof::file_sink out{file};
      memprof::table_writer rows{out, format_};
      write(rows);
      rows.finish();
      return out.is_good();
    });
  }
  [[nodiscard]] std::vector<memprof::run_label> labels() const {
    std::vector<memprof::run_label> found;
    for (const auto& [name, value] : asked_.labels) found.push_back({name, value});
    return found;
  }

  const memprof::profile& run_;
  const memprof::trace_source_view* events_;
  const export_request& asked_;
  memprof::table_format format_;
};

}  // namespace

std::vector<std::string> write_export(const memprof::profile& run, const memprof::trace_source_view* events,
                                      const export_request& asked) {
  for (const auto& [name, format] :
       {std::pair{"csv", memprof::table_format::csv}, std::pair{"jsonl", memprof::table_format::json_lines},
        std::pair{"parquet", memprof::table_format::parquet}}) {
    if (asked.format == name) return table_folder{run, events, asked, format}.write();
  }
  if (asked.format == "trace" || asked.format == "packed-trace")
    memprof::detail::raise("a profile lacks events, which " + asked.format +
                           " needs: export the trace (capture(trace=True), or Trace(path))");
  sentences lacks;
  memprof::detail::replace_file(asked.path, [&](std::FILE* file) {
    memprof::file_sink out{file};
    lacks = exporter{run, events, asked}.write(out);
    return out.is_good();
  });
  return lacks;
}

std::string table_lines(const memprof::profile& run, const memprof::trace_source_view* events, std::string_view table,
                        std::string_view name) {
  memprof::text_sink asked;
  memprof::text_sink other;
  memprof::table_writer rows{asked, memprof::table_format::json_lines};
  memprof::table_writer unasked{other, memprof::table_format::json_lines};
  if (table == "runs") {
    memprof::write_runs_table(run, name, rows);
  } else if (table == "segments") {
    memprof::write_segments_table(run, name, rows);
  } else if (table == "operations") {
    memprof::write_operations_table(run, name, rows);
  } else if (table == "blocks" && events == nullptr) {
    memprof::write_block_table(run, name, rows);
  } else if (table == "blocks") {
    memprof::write_block_tables(*events, name, rows, unasked);
  } else if (table == "events" && events != nullptr) {
    memprof::write_block_tables(*events, name, unasked, rows);
  } else {
    memprof::detail::raise("unknown table '" + std::string{table} +
                           "'; expected runs, segments, operations, blocks or, of a trace, events");
  }
  return std::move(asked.text);
}

}  // namespace memprof_python
