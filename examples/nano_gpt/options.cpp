#include <nano_gpt/input_error.hpp>
#include <nano_gpt/options.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

namespace nano_gpt {
namespace {

struct number_option {
  std::string_view name;
  std::size_t options::*value;
  std::string_view meaning;
};

constexpr std::array<number_option, 6> number_options{{
    {"--layers", &options::layers, "transformer blocks"},
    {"--heads", &options::heads, "attention heads a block; must divide --d-model"},
    {"--d-model", &options::d_model, "width of the residual stream"},
    {"--seq-len", &options::seq_len, "characters a sequence"},
    {"--batch-size", &options::batch_size, "sequences a step"},
    {"--steps", &options::steps, "optimizer steps"},
}};

/// A model makes vectors of up to 4 times a width: those sizes must not wrap. Their products are checked where memory is asked
/// for.
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
    result.*option.value = static_cast<std::size_t>(parse_number(name, value, 1, largest_number));
    return true;
  }
  return false;
}

std::filesystem::path parse_path(std::string_view option, std::string_view text) {
  if (text.empty()) throw input_error{std::string{option} + " needs the name of a file, not an empty one"};
  return text;
}

void set_option(options& result, std::string_view name, std::string_view value) {
  if (set_number(result, name, value)) return;
  if (name == "--seed") {
    result.seed = parse_number(name, value, 0, UINT64_MAX);
  } else if (name == "--text") {
    result.text = parse_path(name, value);
  } else {
    result.json = parse_path(name, value);
  }
}

bool takes_value(std::string_view name) {
  for (const number_option& option : number_options) {
    if (option.name == name) return true;
  }
  return name == "--seed" || name == "--text" || name == "--json";
}

void require_whole_heads(const options& given) {
  if (given.d_model % given.heads == 0) return;
  std::size_t divisor = given.heads;
  while (given.d_model % divisor != 0) --divisor;
  throw input_error{"--heads " + std::to_string(given.heads) + " does not divide --d-model " + std::to_string(given.d_model) +
                    ": try --heads " + std::to_string(divisor)};
}

std::string column(std::string_view text, std::size_t width) {
  std::string result{text};
  result.resize(std::max(width, result.size() + 1), ' ');
  return result;
}

}  // namespace

options parse_options(std::span<const char* const> arguments) {
  options result;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string_view argument = arguments[index];
    if (argument == "--help" || argument == "-h") {
      result.help = true;
      return result;
    }
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (!takes_value(name)) throw input_error{"unknown option '" + std::string{argument} + "': --help lists all"};
    if (equals != std::string_view::npos) {
      set_option(result, name, argument.substr(equals + 1));
    } else if (index + 1 < arguments.size()) {
      set_option(result, name, arguments[++index]);
    } else {
      throw input_error{std::string{name} + " needs a value: --help shows an example"};
    }
  }
  require_whole_heads(result);
  return result;
}

std::string usage() {
  const options defaults;
  std::string text =
      "Trains a small character-level GPT and reports where its memory went.\n"
      "\n"
      "  nano_gpt --layers 2 --text war_and_peace.txt --json profile.json\n"
      "\n";
  const auto line = [&](std::string_view option, std::string_view meaning, const std::string& fallback) {
    text += "  " + column(option, 18) + std::string{meaning} + " (" + fallback + ")\n";
  };
  for (const number_option& option : number_options) {
    line(std::string{option.name} + " N", option.meaning, std::to_string(defaults.*option.value));
  }
  line("--seed N", "of initial weights and batches", std::to_string(defaults.seed));
  line("--text FILE", "what to learn", "memprof's own documents");
  line("--json FILE", "where to write the profile", "nowhere");
  line("--help", "this text", "or -h");
  return text;
}

void require_writable(const std::filesystem::path& file) {
  const std::string name = file.string();
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw input_error{"cannot write '" + name + "': make the folder '" + folder.string() + "' first"};
  }
  if (std::filesystem::is_directory(file))
    throw input_error{"cannot write '" + name + "', a directory: give --json a file in it"};
  const bool existed = std::filesystem::exists(file);
  // Appending nothing asks the same permission as writing and keeps what is there.
  if (!std::ofstream{file, std::ios::app})
    throw input_error{"cannot write '" + name + "': check the permissions or choose another file"};
  std::error_code ignored;
  if (!existed) std::filesystem::remove(file, ignored);
}

}  // namespace nano_gpt
