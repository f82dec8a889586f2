#include "commands.hpp"
#include "complain.hpp"
#include "conversion.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "progress.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_file.hpp>

#include <unistd.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace memprof_tool {
namespace {

using memprof::extend::event;
using memprof::extend::event_kind;

struct trace_arguments {
  std::string file;
  bool as_json = false;
  bool packs = false;
  bool unpacks = false;
  std::string output;
};

/// Prints events, one per line.
class printer {
 public:
  printer(const memprof::extend::clock_readings& clock, bool as_json) : clock_{clock}, as_json_{as_json} {}

  void info(const memprof::extend::capture_info&) {}
  void name(memprof::extend::label id, std::string_view text) {
    if (id == names_.size() + 1) names_.append(text);
  }
  void space(const memprof::extend::space_definition& space) { spaces_[space.id] = space.name; }
  void facts(memprof::extend::fact_part&&) {}
  void events(const event* first, const event* last, std::uint32_t ring) {
    thread& on = threads_[ring];
    for (; first != last; ++first) {
      if (first->stamp != 0) on.stamp = std::max(on.stamp, first->stamp);
      if (first->kind == event_kind::thread_begin) on.number = first->address;
      last_stamp_ = std::max(last_stamp_, on.stamp);
      if (ring == memprof::detail::no_ring_id && first->stamp == 0) on.stamp = last_stamp_;
      print(*first, on);
    }
  }

 private:
  struct thread {
    std::uint64_t number = 0;
    std::uint64_t stamp = 0;
  };

  [[nodiscard]] std::string text_of(memprof::extend::label id) const {
    std::string text{names_.text(id)};
    std::replace(text.begin(), text.end(), '\x1f', ' ');
    return text;
  }

  /// Whether the label of an event of that kind is a name rather than packed numbers.
  [[nodiscard]] static bool names_something(event_kind kind) {
    return kind == event_kind::annotate || kind == event_kind::scope_begin || kind == event_kind::scope_end ||
           kind == event_kind::thread_begin || kind == event_kind::segment_end || kind == event_kind::checkpoint;
  }
  [[nodiscard]] static bool has_category(const event& happened) {
    const std::uint16_t value = happened.tag & 0xFFU;
    return value != 0 && value <= memprof::detail::category_names.size() && happened.kind != event_kind::use &&
           (memprof::detail::has_address(happened.kind) || happened.kind == event_kind::scope_begin);
  }

  void print(const event& happened, const thread& on) {
    const std::int64_t ns = clock_.to_ns(on.stamp);
    const std::string_view kind = memprof::extend::to_string(happened.kind);
    const bool has_space = happened.space != memprof::extend::any_space;
    nlohmann::ordered_json line = {{"time_ns", ns}, {"thread", on.number}, {"kind", kind}};
    if (has_space) line["space"] = text_of(spaces_[happened.space]);
    const bool is_operation = happened.kind == event_kind::scope_begin || happened.kind == event_kind::scope_end;
    if (is_operation) {
      line["operation"] = happened.address & 0xFFFF'FFFFU;
      const std::uint64_t other = happened.address >> 32U;
      if (other != 0) line[happened.kind == event_kind::scope_begin ? "within" : "of_thread"] = other;
      if (happened.bytes != 0) {
        line["adopts"] = happened.bytes & 0xFFFF'FFFFU;
        line["of_thread"] = happened.bytes >> 32U;
      }
    } else if (happened.kind == event_kind::out_of_memory) {
      if (happened.address != memprof::extend::unknown_device_free) line["device_free"] = happened.address;
    } else if (happened.address != 0) {
      line["address"] = happened.address;
    }
    if (happened.kind == event_kind::use && happened.tag != 0) line["until"] = "operation_end";
    if (happened.bytes != 0 && !is_operation) line["bytes"] = happened.bytes;
    if (happened.label != 0 && names_something(happened.kind)) {
      line["name"] = text_of(happened.label);
    } else if (happened.label != 0) {
      line["label"] = happened.label;
    }
    if (has_category(happened)) line["category"] = memprof::detail::category_names[(happened.tag & 0xFFU) - 1U];
    if (as_json_) {
      constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
      print_json(line.dump(-1, ' ', false, replace) + '\n');
      return;
    }
    std::string text;
    for (const char* key : {"space", "operation", "within", "adopts", "of_thread", "address", "device_free", "until", "bytes",
                            "name", "label", "category"}) {
      if (!line.contains(key)) continue;
      const nlohmann::ordered_json& value = line[key];
      text += ' ' + std::string{key} + '=';
      if (value.is_string()) {
        text += memprof::detail::on_one_line(value.get_ref<const std::string&>());
      } else if (std::string_view{key} == "address" && memprof::detail::has_address(happened.kind)) {
        std::array<char, 24> digits{};
        std::snprintf(digits.data(), digits.size(), "0x%" PRIx64, happened.address);
        text += digits.data();
      } else {
        text += value.dump();
      }
    }
    std::array<char, 400> head{};  // the greatest double has 309 digits before the point
    const int size = std::snprintf(head.data(), head.size(), "%15.6f ms  thread %-3" PRIu64 " %-20.*s",
                                   static_cast<double>(ns) / 1e6, on.number, static_cast<int>(kind.size()), kind.data());
    memprof_tool::print(std::string(head.data(), static_cast<std::size_t>(size)) + text + '\n');
  }

  const memprof::extend::clock_readings& clock_;
  bool as_json_;
  memprof::detail::label_table names_;
  std::array<memprof::extend::label, memprof::extend::any_space + 1> spaces_{};
  std::unordered_map<std::uint32_t, thread> threads_;
  std::uint64_t last_stamp_ = 0;
};

int run_trace(const trace_arguments& arguments) {
  try {
    const memprof::detail::file_handle file = open_recording(arguments.file);
    memprof::clock_visitor times;
    {
      const progress shown{"memprof: reading " + arguments.file, file.get()};
      (void)memprof::read_trace(file.get(), arguments.file, times);
    }
    std::rewind(file.get());
    printer print{times.clock, arguments.as_json};
    // On a terminal, the lines themselves show the progress.
    std::optional<progress> shown;
    if (::isatty(STDOUT_FILENO) == 0) shown.emplace("memprof: printing " + arguments.file, file.get());
    const memprof::trace_file_status status = memprof::read_trace(file.get(), arguments.file, print);
    shown.reset();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      print_error("trace", "cannot write to the standard output");
      return failed;
    }
    print_dropped_note(status, arguments.file);
    const std::string complaint = complaint_about(status, arguments.file);
    if (complaint.empty()) return success;
    print_error("trace", complaint);
  } catch (const memprof::error& fault) {
    print_error("trace", fault.what());
  } catch (const std::bad_alloc&) {
    print_error("trace", "'" + arguments.file + "': out of memory while reading it");
  }
  return bad_input;
}

int run_repack(const trace_arguments& arguments) {
  conversion asked;
  asked.subcommand = "trace";
  asked.input = arguments.file;
  asked.output = arguments.output;
  asked.format = arguments.packs ? "packed-trace" : "trace";
  return convert(asked);
}

}  // namespace

void add_trace(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<trace_arguments>();
  CLI::App& command = *program.add_subcommand("trace", "print the events of a trace, one per line, or pack the trace");
  set_footer(command, "", "the output cannot be written", bad_input_text);
  command.add_option("FILE", arguments->file, "a trace")->required();
  command.add_flag("--json", arguments->as_json, "print JSON lines");
  CLI::Option* const output =
      command.add_option("-o,--output", arguments->output, "output file for the packed or unpacked trace")->type_name("FILE");
  CLI::Option* const pack = command.add_flag("--pack", arguments->packs, "pack the trace with zstd")->needs(output);
  CLI::Option* const unpack = command.add_flag("--unpack", arguments->unpacks, "unpack the trace")->needs(output)->excludes(pack);
  command.callback([arguments, output, pack, unpack, &status] {
    if (output->count() != 0 && pack->count() + unpack->count() == 0) throw CLI::RequiresError{"--output", "--pack or --unpack"};
    status = arguments->packs || arguments->unpacks ? run_repack(*arguments) : run_trace(*arguments);
  });
}

}  // namespace memprof_tool
