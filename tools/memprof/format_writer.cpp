#include "format_writer.hpp"

#include "complain.hpp"
#include "gzip.hpp"
#include "output_file.hpp"
#include "say_written.hpp"

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
#include <memprof/toolkit/format/valgrind/dhat.hpp>
#include <memprof/toolkit/format/valgrind/massif.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

/// One recording and where it goes.
class format_writer {
 public:
  format_writer(const conversion& asked, conversion_input& input) : asked_(asked), input_(input) {
    if (asked_.run.empty()) run_ = std::filesystem::path{asked.input}.stem().string();
  }

  void write() {
    using self = format_writer;
    static const std::map<std::string_view, void (self::*)()> writers{
        {"collapsed", &self::write_collapsed},  {"speedscope", &self::write_speedscope},
        {"pprof", &self::write_pprof},          {"dhat", &self::write_dhat},
        {"massif", &self::write_massif},        {"heaptrack", &self::write_heaptrack},
        {"chrome", &self::write_chrome},        {"perfetto", &self::write_perfetto},
        {"torch-snapshot", &self::write_torch}, {"csv", &self::write_csv},
        {"jsonl", &self::write_json_lines},     {"parquet", &self::write_parquet},
        {"session", &self::write_session},      {"profile", &self::write_profile},
        {"trace", &self::write_trace},          {"packed-trace", &self::write_packed_trace}};
    (this->*writers.at(asked_.format))();
  }

 private:
  /// Writes a file by calling `write(sink)`.
  template <class Write>
  static void to_file(const std::filesystem::path& path, Write&& write) {
    write_output(path, [&](std::FILE* file) {
      memprof::file_sink sink{file};
      write(sink);
      return sink.is_good();
    });
  }
  /// Names the calls of a trace with stacks.
  [[nodiscard]] memprof::frames_of_stack frames() const {
    if (!memprof::recorded_stacks_of(input_.profile())) return {};
    return memprof::calls_by_name();
  }
  [[nodiscard]] memprof::stack_table stacks(bool by_category) const {
    if (input_.has_events()) return memprof::stack_table_of(input_.events(), by_category, false, frames());
    memprof::stack_table table = memprof::stack_table_of(input_.profile());
    for (const memprof::space_profile& space : input_.profile().spaces) {
      if (space.live_at_peak.remaining_operations == 0) continue;
      print_error(asked_.subcommand, "the profile has folded " + std::to_string(space.live_at_peak.remaining_operations) +
                                         " operations at the peak of " + space.name + "; they appear as '" +
                                         std::string{memprof::folded_operations} + "'");
    }
    return table;
  }

  /// For formats that hold one memory space: the requested space, or the one with the greatest peak.
  [[nodiscard]] const memprof::space_profile& one_space() const {
    const memprof::profile& run = input_.profile();
    if (!asked_.space.empty()) return run.space(asked_.space);
    if (run.spaces.empty()) memprof::detail::raise("'" + asked_.input + "' has no memory space: nothing was allocated");
    const memprof::space_profile* chosen = run.spaces.data();
    for (const memprof::space_profile& space : run.spaces) {
      if (space.cumulative_peak > chosen->cumulative_peak) chosen = &space;
    }
    std::string others;
    for (const memprof::space_profile& space : run.spaces) {
      if (&space != chosen) others += (others.empty() ? "" : ", ") + space.name;
    }
    if (!others.empty())
      print_error(asked_.subcommand,
                  asked_.format + " holds one memory space: exporting " + chosen->name + "; use --space for " + others);
    return *chosen;
  }

  void write_collapsed() {
    const auto value = asked_.of == "peak"  ? memprof::stack_value::peak
                       : asked_.of == "end" ? memprof::stack_value::end
                                            : memprof::stack_value::all;
    const memprof::stack_table table = stacks(false);
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_collapsed(table, value, sink); });
  }
  void write_speedscope() {
    const memprof::stack_table table = stacks(false);
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_speedscope(table, run_, sink); });
  }
  void write_pprof() {
    memprof::stack_table table = stacks(true);
    set_peak_segments(table, input_.profile());
    memprof::pprof_options options;
    options.gzip = gzip;
    for (memprof::run_label& label : labels()) options.labels.push_back({std::move(label.name), std::move(label.value)});
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_pprof(table, sink, options); });
    if (!input_.has_events())
      print_error(asked_.subcommand,
                  "a profile lacks categories per operation and the number of blocks each has left; a trace has both");
  }
  void write_dhat() {
    const memprof::space_profile& space = one_space();
    const memprof::stack_table table = stacks(false);
    std::uint32_t index = 0;
    while (index < table.spaces.size() && table.spaces[index].name != space.name) ++index;
    if (index == table.spaces.size())
      memprof::detail::raise("'" + space.name + "' has no allocations: there is nothing to export");
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_dhat(table, index, sink); });
  }
  void write_heaptrack() {
    const memprof::space_profile& space = one_space();
    const bool has_stacks = memprof::recorded_stacks_of(input_.profile()).has_value();
    const memprof::calls_of_stack calls = has_stacks ? memprof::frames_by_name() : memprof::calls_of_stack{};
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_heaptrack(input_.events(), space.name, calls, sink); });
  }
  void write_massif() {
    const memprof::space_profile& space = one_space();
    to_file(asked_.output, [&](memprof::file_sink& sink) { memprof::write_massif(input_.profile(), space, sink); });
  }
  template <class Writer>
  void write_over_time() {
    memprof::timeline_losses losses;
    to_file(asked_.output, [&](memprof::file_sink& sink) {
      Writer writer{sink};
      if (input_.has_events()) {
        losses = memprof::write_timeline(input_.events(), input_.profile().process, writer);
      } else {
        memprof::write_timeline(input_.profile(), writer);
      }
    });
    if (losses.events_per_stretch > 1)
      print_error(asked_.subcommand, "counters show only the extremes of every " + std::to_string(losses.events_per_stretch) +
                                         " events: viewers accept no more");
    if (losses.memory_events != 0 && asked_.format == "chrome")
      print_error(asked_.subcommand,
                  std::to_string(losses.memory_events) + " memory events are left out: viewers accept at most a million");
  }
  void write_chrome() { write_over_time<memprof::chrome_trace_writer>(); }
  void write_perfetto() { write_over_time<memprof::perfetto_writer>(); }
  void write_torch() {
    std::vector<memprof::torch_snapshot_loss> losses;
    to_file(asked_.output,
            [&](memprof::file_sink& sink) { losses = memprof::write_torch_snapshot(input_.events(), sink, {asked_.events}); });
    std::string made_up;
    for (const memprof::torch_snapshot_loss& loss : losses) {
      if (loss.segments_are_made_up) made_up += (made_up.empty() ? "" : ", ") + loss.space;
      if (loss.left_out_events != 0)
        print_error(asked_.subcommand, loss.space + ": " + std::to_string(loss.left_out_events) + " events outside a window of " +
                                           std::to_string(asked_.events) +
                                           " around the peak are left out; use --events for more");
      if (loss.left_out_blocks != 0)
        print_error(asked_.subcommand, loss.space + ": " + std::to_string(loss.left_out_blocks) + " blocks of " +
                                           std::to_string(loss.left_out_bytes) +
                                           " bytes are left out: they overlap others, or have no address below 2^53");
    }
    if (!made_up.empty())
      print_error(asked_.subcommand, "segments are made up around the blocks of " + made_up +
                                         ": the recording does not say what an allocator reserved there");
    print_losses("not in the snapshot: ", memprof::torch_snapshot_losses(input_.profile()));
  }
  void write_session() {
    std::vector<std::string> missing;
    to_file(asked_.output, [&](memprof::file_sink& sink) {
      missing = input_.has_events() ? memprof::write_session(input_.events(), input_.profile(), sink)
                                    : memprof::write_session(input_.profile(), sink);
    });
    print_losses("not in the session profile: ", missing);
    print_losses("not in the session profile: ", memprof::session_losses(input_.profile()));
  }
  void print_losses(const std::string& before, const std::vector<std::string>& lost) const {
    for (const std::string& what : lost) print_error(asked_.subcommand, before + what);
  }
  [[nodiscard]] std::vector<memprof::run_label> labels() const {
    std::vector<memprof::run_label> found;
    for (const std::string& text : asked_.labels) {
      const std::size_t end = text.find('=');
      found.push_back({text.substr(0, end), text.substr(end + 1)});
    }
    return found;
  }
  void write_csv() { write_tables(memprof::table_format::csv, ".csv"); }
  void write_json_lines() { write_tables(memprof::table_format::json_lines, ".jsonl"); }
  void write_parquet() { write_tables(memprof::table_format::parquet, ".parquet"); }
  void write_tables(memprof::table_format format, const std::string& suffix) {
    const std::filesystem::path folder = asked_.output;
    std::error_code failure;
    const bool is_new = !std::filesystem::exists(folder, failure);
    std::filesystem::create_directories(folder, failure);
    if (failure) throw output_error{"cannot create the folder '" + folder.string() + "': " + failure.message()};
    try {
      write_tables_to(folder, format, suffix);
    } catch (...) {
      if (is_new) std::filesystem::remove_all(folder, failure);
      throw;
    }
    for (const std::string_view name : table_names) say_written(folder / (std::string{name} + suffix));
    if (!input_.has_events())
      print_error(asked_.subcommand,
                  "'" + asked_.input +
                      "' is a profile: it has only the largest blocks at the peaks, and no events; a trace has all of them");
  }
  void write_tables_to(const std::filesystem::path& folder, memprof::table_format format, const std::string& suffix) {
    using table = memprof::table_writer;
    const memprof::profile& run = input_.profile();
    const auto to_table = [&](const char* name, auto&& write) {
      to_file(folder / (name + suffix), [&](memprof::file_sink& sink) {
        table rows{sink, format};
        write(rows);
        rows.finish();
      });
    };
    to_table("runs", [&](table& rows) { memprof::write_runs_table(run, run_, rows); });
    to_table("labels", [&](table& rows) { memprof::write_labels_table(run, run_, labels(), rows); });
    to_table("segments", [&](table& rows) { memprof::write_segments_table(run, run_, rows); });
    to_table("operations", [&](table& rows) { memprof::write_operations_table(run, run_, rows); });
    if (!input_.has_events()) return to_table("blocks", [&](table& rows) { memprof::write_block_table(run, run_, rows); });
    to_table("blocks", [&](table& blocks) {
      to_table("events", [&](table& events) { memprof::write_block_tables(input_.events(), run_, blocks, events); });
    });
  }

  void write_profile() {
    if (!input_.is_own() && memprof::recorded_stacks_of(input_.profile(asked_.asked_facets())))
      print_error(asked_.subcommand, "a profile has no stacks: --frames own makes their frames operations; a trace has them");
    const std::string text = memprof::to_json_text(input_.profile(asked_.asked_facets())) + '\n';
    write_output(asked_.output, text);
  }
  void write_trace() { input_.write_trace(asked_.output, false); }
  void write_packed_trace() { input_.write_trace(asked_.output, true); }

  const conversion& asked_;
  conversion_input& input_;
  std::string run_ = asked_.run;
};

}  // namespace

void write_format(const conversion& asked, conversion_input& input) { format_writer{asked, input}.write(); }

}  // namespace memprof_tool
