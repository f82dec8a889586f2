#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "recorded_stacks.hpp"
#include "recording.hpp"
#include "text_output.hpp"

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/detail/terminal.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/analysis/short_json.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_json.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/category.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof_tool {
namespace {

struct what_if_arguments {
  std::string file;
  std::vector<std::string> without;
  std::vector<std::string> categories;
  std::vector<std::string> types;
  std::vector<std::string> recompute;
  std::vector<std::string> offload;
  std::string batch;
  std::string batch_run;
  std::string target;
  std::string space;
  std::string json;
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
  bool frees_at_last_use = false;
  bool ranks = false;
  bool shows_all = false;

  [[nodiscard]] bool has_change() const {
    return !without.empty() || !categories.empty() || !types.empty() || !recompute.empty() || !offload.empty() ||
           !batch.empty() || frees_at_last_use;
  }
};

constexpr file_kind what_if_kind{"an answer of what-if",
                                 [](std::string_view begin) { return begin.find(memprof::what_if_json_format) != begin.npos; }};

/// One space of a trace.
struct read_run {
  memprof::block_history history;
  std::string complaint;  ///< why only its beginning was read; empty: all was
};

/// Where `space` is empty, it becomes the one with the greatest peak.
read_run read_blocks(const std::string& path, std::string& space, bool with_calls) {
  const memprof::detail::file_handle file = open_recording(path);
  const recording read = read_recording(file.get(), path);
  if (!read.complaint.empty() && read.profile.spaces.empty()) memprof::detail::raise(read.complaint);
  require_something(read.profile, path);
  if (!read.is_trace) {
    memprof::detail::raise("'" + path +
                           "' is a profile, in which single blocks cannot be replayed; give the trace of the run "
                           "(capture_options::trace_file, or MEMPROF_TRACE=1 for a session)");
  }
  const memprof::space_profile& of = space_of(read.profile, space);
  space = of.name;
  try {
    read_run made{memprof::read_block_history(memprof::trace_file{file.get(), path}, of.name, with_calls), read.complaint};
    made.history.exact = read.profile.exact;
    made.history.remarks = memprof::remarks_on(read.profile, of);
    return made;
  } catch (const memprof::error& fault) {
    memprof::detail::raise("'" + path + "': " + fault.what());
  }
}

/// Throws `memprof::error`, naming the nearest, if an owner is not there.
void check_owner(const memprof::block_history& run, const std::string& owner, const std::string& file) {
  if (memprof::has_owner(run, owner)) return;
  const std::vector<std::string> names = memprof::owner_names(run);
  if (names.empty()) memprof::detail::raise("'" + file + "' has no operation at all; memprof::track_operation names them");
  std::string nearest;
  for (const std::string& name : names) {
    if (name.ends_with("/" + owner) && (nearest.empty() || name.size() < nearest.size())) nearest = name;
  }
  if (nearest.empty()) {
    const std::vector<std::string_view> known{names.begin(), names.end()};
    nearest = memprof::detail::nearest_name(owner, known);
  }
  memprof::detail::raise("no operation '" + owner + "' in '" + file + "'; the nearest is '" + nearest + "'");
}

/// "forward=bf16", "forward=fp32:bf16".
memprof::what_if_change::retyping type_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    memprof::detail::raise("--dtype: '" + text + "' is not OWNER=TYPE or OWNER=FROM:TO");
  const std::string types = text.substr(equals + 1);
  const std::size_t colon = types.find(':');
  if (colon == std::string::npos) return {text.substr(0, equals), "", types};
  return {text.substr(0, equals), types.substr(0, colon), types.substr(colon + 1)};
}

double positive_number(std::string_view text) {
  double value = 0;
  const auto [end, fault] = memprof::detail::parse_double(text, value);
  constexpr double most = 1e9;
  return fault == std::errc{} && end == text.data() + text.size() && value > 0 && value <= most ? value : 0;
}

/// "x2", "8:16".
memprof::what_if_change::batching batch_of(const std::string& text) {
  memprof::what_if_change::batching batch;
  const std::size_t colon = text.find(':');
  if (text.starts_with('x')) {
    batch.factor = positive_number(std::string_view{text}.substr(1));
  } else if (colon != std::string::npos) {
    const auto [end, fault] = std::from_chars(text.data(), text.data() + colon, batch.batch_size);
    const bool is_whole = fault == std::errc{} && end == text.data() + colon && batch.batch_size > 0;
    batch.factor =
        is_whole ? positive_number(std::string_view{text}.substr(colon + 1)) / static_cast<double>(batch.batch_size) : 0;
  } else {
    batch.factor = 0;
  }
  if (batch.factor == 0) memprof::detail::raise("--batch: '" + text + "' is not xN, a factor, or FROM:TO, two batch sizes");
  return batch;
}

memprof::what_if_change change_of(const what_if_arguments& arguments, const memprof::block_history& run) {
  memprof::what_if_change change;
  const auto checked = [&](const std::vector<std::string>& owners) {
    for (const std::string& owner : owners) check_owner(run, owner, arguments.file);
    return owners;
  };
  change.without = checked(arguments.without);
  change.recompute = checked(arguments.recompute);
  change.offload = checked(arguments.offload);
  for (const std::string& category : arguments.categories)
    change.without_categories.push_back(memprof::category_from_string(category).value_or(memprof::category::other));
  for (const std::string& type : arguments.types) {
    memprof::what_if_change::retyping made = type_of(type);
    check_owner(run, made.owner, arguments.file);
    for (const memprof::what_if_change::retyping& each : change.types) {
      if (each.owner == made.owner && each.from == made.from && each.to != made.to)
        memprof::detail::raise("--dtype: '" + made.owner + "' cannot be both " + each.to + " and " + made.to);
    }
    change.types.push_back(std::move(made));
  }
  if (!arguments.batch.empty()) change.batch = batch_of(arguments.batch);
  change.free_at_last_use = arguments.frees_at_last_use;
  if (change.free_at_last_use && run.uses.empty()) {
    memprof::detail::raise(
        "--free-at-last-use: '" + arguments.file + "' has no use of a block of " + run.space +
        ", so nothing says which is the last: record the run with memprof run --uses, MEMPROF_USES=1 or capture_options::uses; "
        "operators of libtorch then record theirs, in programs compiled with NDEBUG, and other programs call "
        "memprof::mark_use");
  }
  return change;
}

void require_a_question(const what_if_arguments& arguments) {
  if (!arguments.batch_run.empty() && arguments.batch.empty())
    memprof::detail::raise("--batch-run says what scales; --batch xN says by how much");
  if (arguments.ranks && !arguments.target.empty()) memprof::detail::raise("--rank and --target are two questions; ask one");
  if (arguments.ranks || !arguments.target.empty()) {
    if (arguments.has_change()) memprof::detail::raise("--rank and --target look at the run as it was; give no change with them");
    return;
  }
  if (!arguments.has_change()) {
    memprof::detail::raise(
        "nothing is asked: give a change (--without, --category, --dtype, --batch, --recompute, --offload, "
        "--free-at-last-use), --rank or --target; see 'memprof what-if --help'");
  }
}

/// Prints an answer and writes it where it is asked for.
template <class Answer>
void show(const Answer& answer, const what_if_arguments& arguments, const std::vector<std::string>& complaints) {
  const nlohmann::ordered_json document = memprof::with_caveats(memprof::to_json(answer), complaints);
  if (is_printed({arguments.json})) {  // see below
  } else if (arguments.as_json) {
    print_json(memprof::detail::dump(memprof::short_answer(document)) + '\n');
  } else {
    memprof::text_options options = memprof::detail::fitted_to(stdout, {});
    if (arguments.width != 0) options.columns = arguments.width;
    print(memprof::to_text(answer, options, arguments.shows_all), stdout, text_colors::own);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the answer: " + memprof::detail::reason_in_errno());
  if (!arguments.json.empty()) write_output(arguments.json, memprof::detail::dump(document) + '\n');
}

memprof::target_answer target_of(const memprof::block_history& run, const std::string& text) {
  const std::int64_t target = memprof::parse_byte_size(text);
  memprof::target_answer answer = memprof::find_target(run, target);
  if (answer.is_possible()) return answer;
  memprof::detail::raise("--target " + text + ": the peak of " + run.space + " cannot be below " +
                         memprof::detail::short_and_exact_bytes(answer.least) +
                         ": parameters, gradients, optimizer state, inputs, caches of keys and values, and what no operation "
                         "allocated stay");
}

int run_what_if(const what_if_arguments& arguments) {
  require_a_question(arguments);
  (void)is_printed({arguments.json}, arguments.as_json ? "--json" : "");
  if (!arguments.json.empty()) {
    for (const std::string* const input : {&arguments.file, &arguments.batch_run}) {
      if (!input->empty()) keep_input(*input, arguments.json);
    }
    keep_other_file(arguments.json, what_if_kind);
  }
  std::string space = arguments.space;
  const bool needs_calls = !arguments.recompute.empty() || !arguments.offload.empty() || arguments.frees_at_last_use;
  const read_run read = read_blocks(arguments.file, space, needs_calls);
  std::vector<std::string> complaints{read.complaint};
  if (arguments.ranks) {
    show(memprof::rank_owners(read.history), arguments, complaints);
  } else if (!arguments.target.empty()) {
    show(target_of(read.history, arguments.target), arguments, complaints);
  } else {
    memprof::what_if_change change = change_of(arguments, read.history);
    std::optional<read_run> other;
    if (change.batch && !arguments.batch_run.empty()) {
      other = read_blocks(arguments.batch_run, space, false);
      change.batch->other = &other->history;
      complaints.push_back(other->complaint);
    }
    show(memprof::what_if(read.history, change), arguments, complaints);
  }
  int status = success;
  for (const std::string& complaint : complaints) {
    if (complaint.empty()) continue;
    print_error("what-if", complaint);
    status = bad_input;
  }
  return status;
}

}  // namespace

void add_what_if(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<what_if_arguments>();
  CLI::App& command = *program.add_subcommand("what-if", "say what the peak would be without some blocks, or with others");
  set_footer(command,
             "OWNER is the path of an operation, with all below it; names in it may be globs: 'forward/h.*/attn', '**/softmax'. "
             "The run is replayed with all changes together.",
             "", bad_file_text);
  command.add_option("FILE", arguments->file, "a trace")->required();
  command.add_option("--without", arguments->without, "blocks of this operation were never allocated")
      ->type_name("OWNER")
      ->allow_extra_args(false);
  std::vector<std::string> categories{memprof::detail::category_names.begin(), memprof::detail::category_names.end()};
  command.add_option("--category", arguments->categories, "blocks of this category were never allocated")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->check(one_of("category name", std::move(categories)));
  command
      .add_option("--dtype", arguments->types,
                  "real numbers in its blocks have this type; OWNER=FROM:TO: blocks whose type is not known have FROM")
      ->type_name("OWNER=TYPE")
      ->allow_extra_args(false);
  command.add_option("--batch", arguments->batch, "the batch is N times as large; FROM:TO: of TO samples instead of FROM")
      ->type_name("xN");
  command
      .add_option("--batch-run", arguments->batch_run,
                  "a trace of the same program with another batch: what differs scales (default: shapes say)")
      ->type_name("FILE");
  command.add_option("--recompute", arguments->recompute, "what it keeps for the backward pass is computed again there")
      ->type_name("OWNER")
      ->allow_extra_args(false);
  command.add_option("--offload", arguments->offload, "what it keeps is elsewhere from its end until just before the free")
      ->type_name("OWNER")
      ->allow_extra_args(false);
  command.add_flag(
      "--free-at-last-use", arguments->frees_at_last_use,
      "blocks are freed as soon as nothing uses them any more; needs a run with its uses (memprof run --uses, MEMPROF_USES=1)");
  command.add_flag("--rank", arguments->ranks, "rank owners by what the peak would be without each");
  command.add_option("--target", arguments->target, "find the fewest owners without which the peak is at most this, as 16GiB")
      ->type_name("SIZE");
  command.add_option("--space", arguments->space, "memory space (default: the one with the greatest peak)")->type_name("NAME");
  command.add_flag("--all", arguments->shows_all, "list every owner");
  command.add_flag("--json", arguments->as_json, "print the answer as JSON");
  command.add_option("--json-out", arguments->json, "also write it to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  command.callback([arguments, &status] { status = run_reported("what-if", [&] { return run_what_if(*arguments); }); });
}

}  // namespace memprof_tool
