#include "commands.hpp"
#include "complain.hpp"
#include "exit_status.hpp"
#include "help_text.hpp"
#include "option_values.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "text_output.hpp"
#include "training_options.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_json.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/fit_text.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/run_mode.hpp>
#include <memprof/trace/trace.hpp>

#include <nano_gpt/one_step.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {
namespace {

struct fit_arguments {
  decoder_options decoder;
  setup_options training;
  bool seeks_sequence = false;
  std::string json;
  std::size_t width = 0;  ///< 0: not given
  bool as_json = false;
};

/// The memory that a step of the plain trainer, run without dispatch, needs on the device.
memprof::step_need measured_need(const memprof::decoder_model& model, const memprof::training_setup& setup) {
  nano_gpt::options options = nano_gpt::options_for(model, setup);
  options.mode = memprof::run_mode::no_dispatch;
  memprof::trace events;
  const nano_gpt::measured_step step = nano_gpt::measure_one_step(options, 1e-3, &events);
  if (events.left_out() != 0) memprof::detail::raise("out of memory recording the events of a step");
  memprof::allocation_sequence sequence{options.memory_space()};
  events.visit(sequence);
  return memprof::need_of(sequence, step.profile.space(options.memory_space()).cumulative_peak, setup.device);
}

/// Runs without dispatch at the answer and one above it, and says whether they agree with it.
std::string confirmation(const memprof::decoder_model& model, memprof::training_setup setup, memprof::sought_size sought,
                         const memprof::fit_row& row, bool& agrees) {
  const auto need_at = [&](std::int64_t size) {
    (sought == memprof::sought_size::batch_size ? setup.batch_size : setup.seq_len) = size;
    return measured_need(model, setup);
  };
  std::string sizes;
  agrees = true;
  const auto compare = [&](std::int64_t size, const std::optional<memprof::step_need>& expected) {
    if (!expected) return;
    const memprof::step_need found = need_at(size);
    agrees = agrees && found == *expected;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size) + (found.fits ? " fits" : " does not fit");
  };
  compare(std::max<std::int64_t>(row.answer.size, 1), row.answer.need);
  if (row.answer.size > 0) compare(row.answer.size + 1, row.answer.one_more);
  return row.name + ": " + sizes + (agrees ? ", as estimated to the byte" : ", NOT as estimated");
}

/// The preset with the least capacity that has room for the step.
std::string smallest_preset(const memprof::decoder_model& model, memprof::training_setup setup) {
  std::string smallest = "none";
  std::int64_t least = 0;
  for (const std::string_view name : memprof::device_preset_names) {
    setup.device = memprof::device_preset(name);
    const std::int64_t capacity = setup.device.tensor_space().capacity;
    if (smallest != "none" && capacity >= least) continue;
    if (memprof::is_block_float(setup.type) && setup.device.layout != memprof::tensor_layout::tile) continue;
    if (!memprof::need_of(model, setup).fits) continue;
    smallest = name;
    least = capacity;
  }
  return smallest;
}

nlohmann::ordered_json value_of(const std::optional<memprof::step_need>& need) {
  if (!need) return nullptr;
  return {{"peak_bytes", need->peak}, {"reserved_bytes", memprof::detail::value_or_null(need->reserved)}, {"fits", need->fits}};
}

/// The parts of the largest step that fits, or of the smallest if none does.
memprof::memory_prediction parts_of(const memprof::decoder_model& model, memprof::training_setup setup,
                                    memprof::sought_size sought, const memprof::fit_answer& answer) {
  (sought == memprof::sought_size::batch_size ? setup.batch_size : setup.seq_len) = std::max<std::int64_t>(answer.size, 1);
  return memprof::predict_step(model, setup).prediction;
}

std::string text_of(const std::vector<memprof::memory_prediction>& predictions, const std::vector<memprof::fit_row>& rows) {
  std::string text;
  for (std::size_t index = 0; index < predictions.size(); ++index) {
    const std::string size = std::to_string(std::max<std::int64_t>(rows[index].answer.size, 1));
    text += "Parts, " + rows[index].name + ", " + size + ": " + memprof::parts_text(predictions[index]) + '\n';
  }
  if (predictions.empty()) return text;
  for (const std::string& source : memprof::sources_text(predictions.front())) text += "Besides: " + source + '\n';
  return text;
}

nlohmann::ordered_json document_of(const std::string& verdict, const memprof::device_description& device, bool seeks_sequence,
                                   const std::vector<memprof::fit_row>& rows,
                                   const std::vector<memprof::memory_prediction>& predictions,
                                   const std::vector<std::string>& confirmations, const std::vector<std::string>& presets) {
  const std::vector<std::string> caveats{
      "tensors on one device, of a model made from its dimensions, and a CUDA context where that is known: without workspaces of "
      "libraries, communication buffers and dropout"};
  nlohmann::ordered_json found = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const memprof::fit_answer& answer = rows[index].answer;
    found.push_back({{"recompute", index == 1},
                     {"size", answer.size},
                     {"need", value_of(answer.need)},
                     {"one_more", value_of(answer.one_more)},
                     {"parts", predictions.empty() ? nlohmann::ordered_json{} : memprof::to_json(predictions[index])},
                     {"confirmation", confirmations[index]},
                     {"smallest_preset", presets[index]}});
  }
  return {{"format", "memprof-fit"},
          {"version", 1},
          {"verdict", verdict},
          {"caveats", caveats},
          {"device", std::string{device.name.view()}},
          {"capacity", device.tensor_space().capacity},
          {"sought", seeks_sequence ? "seq_len" : "batch_size"},
          {"found", found}};
}

constexpr memprof::recomputation_kind recomputed_if(bool condition) noexcept {
  return condition ? memprof::recomputation_kind::blocks : memprof::recomputation_kind::off;
}

constexpr file_kind fit_kind{"an answer of memprof fit",
                             [](std::string_view begin) { return begin.find("\"memprof-fit\"") != begin.npos; }};

int run_fit(fit_arguments& arguments, const CLI::App& command) {
  const bool is_quiet = is_printed({arguments.json}, arguments.as_json ? "--json" : "") || arguments.as_json;
  if (!arguments.json.empty()) keep_other_file(arguments.json, fit_kind);
  chosen_decoder decoder = choose_decoder(arguments.decoder, command);
  memprof::training_setup& setup = arguments.training.setup;
  setup.device = device_of(arguments.training.device);
  setup.seq_len = decoder.shape.seq_len;
  setup.batch_size = command.count("--batch-size") > 0 ? decoder.shape.batch_size : 1;
  const auto sought = arguments.seeks_sequence ? memprof::sought_size::seq_len : memprof::sought_size::batch_size;
  // Learned positions limit the sequence; a model without them takes any length.
  const std::int64_t longest = decoder.model.positions;

  memprof::asked_step asked{.batch_size = setup.batch_size, .seq_len = setup.seq_len};
  std::vector<memprof::fit_row> rows;
  std::vector<memprof::memory_prediction> predictions;  // of each row, unless the device has no caching allocator
  for (const bool recompute : {false, true}) {
    const progress shown{"memprof: searching"};
    setup.recompute = recomputed_if(recompute);
    (recompute ? asked.fits_recomputed : asked.fits) = memprof::need_of(decoder.model, setup).fits;
    rows.push_back({recompute ? "blocks recomputed" : "all kept", memprof::find_fit(decoder.model, setup, sought, longest)});
    if (memprof::has_caching_allocator(setup.device))
      predictions.push_back(parts_of(decoder.model, setup, sought, rows.back().answer));
  }

  const memprof::device_space& space = setup.device.tensor_space();
  const std::size_t columns =
      arguments.width != 0 ? arguments.width : memprof::detail::fitted_to(stdout, memprof::text_options{}).columns;
  const std::string verdict = memprof::fit_sentence(asked, setup.device.name.view());
  std::string text =
      "\nFit: " + std::string{setup.device.name.view()} + ", " + memprof::detail::gibibytes_text(space.capacity) + " of " +
      std::string{space.name.view()} +
      (memprof::has_caching_allocator(setup.device) ? ", through PyTorch's caching allocator" : "") +
      "\nModel: " + memprof::detail::model_text(decoder.model, memprof::parameter_count(decoder.model, asked.seq_len)) +
      "\nFixed: " + (arguments.seeks_sequence ? "B=" + std::to_string(asked.batch_size) : "T=" + std::to_string(asked.seq_len)) +
      "\n\n" + memprof::to_text(rows, arguments.seeks_sequence ? "Longest sequence" : "Largest batch", columns) +
      (predictions.empty() ? "" : "\n" + text_of(predictions, rows));
  const auto show = [&](const std::string& more) {
    if (!is_quiet) print(memprof::detail::folded(more, columns));
  };
  const bool has_width = arguments.width != 0 || memprof::detail::terminal_columns(stdout) != 0;
  if (!is_quiet) print(memprof::detail::folded(verdict + '\n', has_width ? columns : 0));  // in a log, the answer stays whole
  show(text);

  int status = success;
  std::vector<std::string> confirmations;
  for (const memprof::fit_row& row : rows) {
    setup.recompute = recomputed_if(row.name != "all kept");
    bool agrees = true;
    const progress shown{"memprof: confirming by runs"};
    try {
      confirmations.push_back(confirmation(decoder.model, setup, sought, row, agrees));
    } catch (const memprof::error& fault) {
      confirmations.push_back(row.name + ": " + fault.what() + ", so this is not confirmed by a run");
    }
    if (!agrees) status = failed;
  }
  text = "\nConfirmed by runs of examples/nano_gpt without dispatch:\n";
  for (const std::string& line : confirmations) text += "  " + line + "\n";
  show(text);

  std::vector<std::string> presets;
  for (const bool recompute : {false, true}) {
    memprof::training_setup one = setup;
    one.recompute = recomputed_if(recompute);
    one.batch_size = asked.batch_size;
    one.seq_len = asked.seq_len;
    presets.push_back(smallest_preset(decoder.model, one));
  }
  text = "\nSmallest preset for B=" + std::to_string(asked.batch_size) + ", T=" + std::to_string(asked.seq_len) + ": " +
         presets[0] + "; with recomputation " + presets[1] + "\n";
  show(text);

  const std::string document = memprof::detail::dump(document_of(verdict, setup.device, arguments.seeks_sequence, rows,
                                                                 predictions, confirmations, presets)) +
                               '\n';
  if (arguments.as_json) print_json(document);
  if (!arguments.json.empty()) write_output(arguments.json, document);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    memprof::detail::raise("cannot write the answers: " + memprof::detail::reason_in_errno());
  return status;
}

}  // namespace

void add_fit(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<fit_arguments>();
  CLI::App& command = *program.add_subcommand("fit", "find the largest batch or the longest sequence that fits on a device");
  set_footer(command,
             "A device given as SIZE is a GPU with that much memory: 80GB (80 * 10^9), 80GiB (80 * 2^30). 'memprof fit "
             "--device NAME SCRIPT.py' of the Python package asks a PyTorch script as it is.",
             "a run did not confirm an answer", bad_file_text);
  command.add_option("--device", arguments->training.device, "device: a preset, a JSON file or a size")
      ->required()
      ->type_name("NAME|FILE|SIZE");
  command.add_flag("--longest-sequence", arguments->seeks_sequence,
                   "find the longest sequence for --batch-size (default: 1) instead of the largest batch");
  command.add_flag("--json", arguments->as_json, "print the answers as JSON");
  command.add_option("--json-out", arguments->json, "also write the answers to this file, as JSON")->type_name("FILE");
  command.add_option("--width", arguments->width, "width of the text in columns (default: the terminal's, at most 100)")
      ->type_name("N")
      ->check(whole_number(60, 1000));
  arguments->decoder.add(command);
  arguments->training.add(command);
  command.callback([arguments, &command, &status] {
    try {
      status = run_fit(*arguments, command);
    } catch (const memprof::error& fault) {
      print_error("fit", fault.what());
      status = bad_input;
    }
  });
}

}  // namespace memprof_tool
