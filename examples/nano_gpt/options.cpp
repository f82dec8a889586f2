#include <nano_gpt/input_error.hpp>
#include <nano_gpt/options.hpp>

#include <nano_gpt/element.hpp>

#include <memprof/profile/device_json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace nano_gpt {
namespace {

struct number_option {
  std::string_view name;
  std::size_t& (*value)(options&);
  std::string_view meaning;
  std::string_view fallback = {};  ///< the default, if it is not a number
};

constexpr std::array<number_option, 10> number_options{{
    {"--layers", [](options& o) -> std::size_t& { return o.model.layers; }, "transformer blocks"},
    {"--heads", [](options& o) -> std::size_t& { return o.model.heads; }, "attention heads per block; must divide --d-model"},
    {"--kv-heads", [](options& o) -> std::size_t& { return o.model.kv_heads; }, "heads of keys and values; must divide --heads",
     "as many as --heads"},
    {"--d-model", [](options& o) -> std::size_t& { return o.model.d_model; }, "width of the residual stream"},
    {"--mlp-width", [](options& o) -> std::size_t& { return o.model.mlp_width; }, "width between the layers of an MLP",
     "4 times --d-model"},
    {"--vocabulary", [](options& o) -> std::size_t& { return o.model.vocabulary_size; }, "size of the vocabulary in tokens",
     "as many as the text has"},
    {"--seq-len", [](options& o) -> std::size_t& { return o.model.seq_len; }, "characters per sequence"},
    {"--batch-size", [](options& o) -> std::size_t& { return o.batch_size; }, "sequences per micro-batch"},
    {"--micro-batches", [](options& o) -> std::size_t& { return o.micro_batches; },
     "micro-batches per step, whose gradients are accumulated"},
    {"--steps", [](options& o) -> std::size_t& { return o.steps; }, "optimizer steps"},
}};

struct flag_option {
  std::string_view name;
  void (*set)(options&);
  std::string_view meaning;
};

constexpr std::array<flag_option, 5> flag_options{{
    {"--no-dispatch", [](options& o) { o.mode = memprof::run_mode::no_dispatch; },
     "count what a step allocates, but allocate and compute nothing"},
    {"--memory-efficient", [](options& o) { o.model.memory_efficient = true; },
     "keep only each block's input and run its forward pass again in the backward pass"},
    {"--record-uses", [](options& o) { o.record_uses = true; }, "have traces say when each tensor is used"},
    {"--free-late", [](options& o) { o.free_late = true; },
     "keep activations that the backward pass has used; memprof what-if --free-at-last-use says what that costs"},
    {"--track-memory", [](options& o) { o.track_memory = true; },
     "capture only the first step and print it as tt-train's tracker does; with --no-dispatch, the last"},
}};

/// A model allocates vectors of up to 4 times a width: those sizes must not wrap. Their products are checked on allocation.
constexpr std::uint64_t largest_number = 1'000'000'000'000'000'000;

std::uint64_t parse_number(std::string_view option, std::string_view text, std::uint64_t lowest, std::uint64_t highest) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < lowest || value > highest) {
    throw input_error{std::string{option} + " cannot be '" + std::string{text} + "': give a whole number from " +
                      std::to_string(lowest) + " to " + std::to_string(highest)};
  }
  return value;
}

bool set_number(options& result, std::string_view name, std::string_view value) {
  for (const number_option& option : number_options) {
    if (option.name != name) continue;
    option.value(result) = static_cast<std::size_t>(parse_number(name, value, 1, largest_number));
    return true;
  }
  return false;
}

std::filesystem::path parse_path(std::string_view option, std::string_view text) {
  if (text.empty()) throw input_error{std::string{option} + " needs the name of a file, not an empty one"};
  return text;
}

void set_config(options& result, std::string_view name) {
  std::string known;
  for (const named_config& config : named_configs) {
    if (config.name == name) {
      result.model = config.model;
      result.batch_size = config.batch_size;
      result.steps = config.steps;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string{config.name};
  }
  throw input_error{"--config cannot be '" + std::string{name} + "': give one of " + known};
}

memprof::dtype parse_dtype(std::string_view text) {
  const std::optional<memprof::dtype> type = memprof::dtype_from_string(text);
  if (!type || *type == memprof::dtype::int32 || *type == memprof::dtype::boolean) {
    throw input_error{"--dtype cannot be '" + std::string{text} +
                      "': give fp32, bf16 or fp16, or with --no-dispatch fp8, int8, " + "bfp8 or bfp4"};
  }
  return *type;
}

void set_option(options& result, std::string_view name, std::string_view value) {
  if (set_number(result, name, value)) return;
  if (name == "--seed") {
    result.seed = parse_number(name, value, 0, UINT64_MAX);
  } else if (name == "--dtype") {
    result.dtype = parse_dtype(value);
  } else if (name == "--device") {
    result.device = memprof::find_device(std::string{value});
  } else if (name == "--text") {
    result.text = parse_path(name, value);
  } else if (name == "--json") {
    result.json = parse_path(name, value);
  } else if (name == "--html") {
    result.html = parse_path(name, value);
  } else if (name == "--trace-file") {
    result.trace_file = parse_path(name, value).string();
  }
}

bool takes_value(std::string_view name) {
  for (const number_option& option : number_options) {
    if (option.name == name) return true;
  }
  constexpr std::array<std::string_view, 8> others{"--config", "--dtype", "--device", "--seed",
                                                   "--text",   "--json",  "--html",   "--trace-file"};
  return std::ranges::find(others, name) != others.end();
}

bool set_flag(options& result, std::string_view name) {
  for (const flag_option& flag : flag_options) {
    if (flag.name != name) continue;
    flag.set(result);
    return true;
  }
  return false;
}

std::size_t largest_divisor(std::size_t number, std::size_t most) {
  while (number % most != 0) --most;
  return most;
}

void require_whole_heads(const model_config& given) {
  const auto refuse = [](std::string_view option, std::size_t value, std::string_view of, std::size_t whole) {
    throw input_error{std::string{option} + " " + std::to_string(value) + " does not divide " + std::string{of} + " " +
                      std::to_string(whole) + ": try " + std::string{option} + " " +
                      std::to_string(largest_divisor(whole, std::min(value, whole)))};
  };
  if (given.d_model % given.heads != 0) refuse("--heads", given.heads, "--d-model", given.d_model);
  if (given.heads % given.key_value_heads() != 0) refuse("--kv-heads", given.kv_heads, "--heads", given.heads);
  if (given.is_llama() && given.head_width() % 2 != 0) {
    throw input_error{"--d-model " + std::to_string(given.d_model) + " and --heads " + std::to_string(given.heads) +
                      " make heads of odd width, which rotary positions cannot pair: try --d-model " +
                      std::to_string(2 * given.d_model)};
  }
}

void require_usable_dtype(const options& given) {
  if (given.mode == memprof::run_mode::normal && !is_dispatched_type(given.dtype)) {
    throw input_error{"--dtype " + std::string{memprof::to_string(given.dtype)} +
                      " can only be counted: add --no-dispatch, or give fp32, bf16 or fp16"};
  }
  if (memprof::is_block_float(given.dtype) && given.device.layout != memprof::tensor_layout::tile) {
    throw input_error{"--dtype " + std::string{memprof::to_string(given.dtype)} +
                      " exists only in tiles: give a --device that has them, such as wormhole-12gb"};
  }
}

/// An option, spelled with hyphens, and its value as given.
struct given_option {
  std::string name;
  std::string_view value;
};

/// Options override the numbers of a config, regardless of their order.
void set_options(options& result, const std::vector<given_option>& given) {
  const bool memory_efficient = result.model.memory_efficient;
  for (const given_option& option : given) {
    if (option.name == "--config") set_config(result, option.value);
  }
  result.model.memory_efficient = memory_efficient;
  for (const given_option& option : given) set_option(result, option.name, option.value);
}

/// The name of an option, whose words may also be joined by underscores.
std::string with_hyphens(std::string_view name) {
  std::string result{name};
  if (name.starts_with("--")) std::ranges::replace(result, '_', '-');
  return result;
}

std::string column(std::string_view text, std::size_t width) {
  std::string result{text};
  result.resize(std::max(width, result.size() + 1), ' ');
  return result;
}

}  // namespace

options parse_options(std::span<const char* const> arguments) {
  options result;
  std::vector<given_option> given;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string_view argument = arguments[index];
    if (argument == "--help" || argument == "-h") {
      result.help = true;
      return result;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = with_hyphens(argument.substr(0, equals));
    if (equals == std::string_view::npos && set_flag(result, name)) continue;
    if (!takes_value(name)) throw input_error{"unknown option '" + std::string{argument} + "': --help lists all"};
    if (equals != std::string_view::npos) {
      given.push_back({name, argument.substr(equals + 1)});
    } else if (index + 1 < arguments.size()) {
      given.push_back({name, arguments[++index]});
    } else {
      throw input_error{name + " needs a value: --help shows an example"};
    }
  }
  set_options(result, given);
  require_whole_heads(result.model);
  require_usable_dtype(result);
  // What has no memory cannot be trained on once the capture has ended.
  if (result.track_memory && result.mode == memprof::run_mode::no_dispatch) result.steps = 1;
  return result;
}

std::string usage() {
  options defaults;
  std::string text =
      "Trains a character-level GPT or Llama and reports where its memory went.\n"
      "\n"
      "  nano_gpt --layers 2 --text war_and_peace.txt --json profile.json\n"
      "  nano_gpt --config tinyllama-1.1b --no-dispatch --device wormhole-12gb --dtype bf16\n"
      "\n";
  const auto line = [&](std::string_view option, std::string_view meaning, std::string_view fallback) {
    text += "  " + column(option, 20) + std::string{meaning} + " (" + std::string{fallback} + ")\n";
  };
  std::string configs;
  for (const named_config& config : named_configs) configs += (configs.empty() ? "" : ", ") + std::string{config.name};
  line("--config NAME", configs, named_configs[0].name);
  for (const number_option& option : number_options) {
    const std::string number = std::to_string(option.value(defaults));
    line(std::string{option.name} + " N", option.meaning, option.fallback.empty() ? number : option.fallback);
  }
  line("--dtype NAME", "element type: fp32, bf16, fp16; with --no-dispatch also fp8, int8, bfp8, bfp4", "fp32");
  line("--device NAME|FILE", "preset or JSON file that determines where tensors count and how large they are",
       "plain bytes, cpu");
  for (const flag_option& flag : flag_options) line(flag.name, flag.meaning, "off");
  line("--seed N", "seed for initial weights and batches", std::to_string(defaults.seed));
  line("--text FILE", "text to learn", "lighthouse.txt beside the sources");
  line("--json FILE", "where to write the profile", "nowhere");
  line("--html FILE", "where to write an HTML page of the profile", "nowhere");
  line("--trace-file FILE", "where to write all events as they happen", "nowhere");
  line("--help", "show this text", "or -h");
  return text + "\nA published model (--config) brings its own defaults, a batch of one sequence and one step.\n";
}

void require_writable(std::string_view option, const std::filesystem::path& file) {
  const std::string name = file.string();
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw input_error{"cannot write '" + name + "': make the folder '" + folder.string() + "' first"};
  }
  if (std::filesystem::is_directory(file))
    throw input_error{"cannot write '" + name + "', a directory: give " + std::string{option} + " a file in it"};
  const bool existed = std::filesystem::exists(file);
  // Appending nothing needs the same permission as writing, and keeps the content.
  if (!std::ofstream{file, std::ios::app})
    throw input_error{"cannot write '" + name + "': check the permissions or choose another file"};
  std::error_code ignored;
  if (!existed) std::filesystem::remove(file, ignored);
}

}  // namespace nano_gpt
