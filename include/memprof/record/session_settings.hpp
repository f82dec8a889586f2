#pragma once

#include <memprof/detail/nearest_name.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/profile/session_text.hpp>
#include <memprof/record/session_options.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/run_mode.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

/// @file
/// Settings of a session from outside the program: the same ones by environment variable or in a file.

namespace memprof::inline MEMPROF_ABI::detail {

/// Prints one line about sessions on stderr: there may be nobody to read an exception.
[[gnu::cold, gnu::noinline]] inline void say_of_session(const std::string& text) noexcept {
  // In a single write, and without stderr's lock, which may be held by a thread that waits for this one.
  const std::string line = "memprof: " + text + '\n';
  [[maybe_unused]] const ::ssize_t said = ::write(STDERR_FILENO, line.data(), line.size());
}

/// A single setting. `assign` returns false for invalid text.
struct session_setting {
  std::string_view key;       ///< in the file
  std::string_view variable;  ///< in the environment
  std::string_view expected;
  bool (*assign)(session_options& options, std::string_view text);
};

[[nodiscard]] inline bool assign_truth(bool& target, std::string_view text) noexcept {
  for (const std::string_view yes : {"1", "true", "on", "yes"}) {
    if (text != yes) continue;
    target = true;
    return true;
  }
  for (const std::string_view no : {"0", "false", "off", "no", ""}) {
    if (text != no) continue;
    target = false;
    return true;
  }
  return false;
}

[[nodiscard]] inline bool assign_interval(session_options& options, std::string_view text) noexcept {
  double seconds = 0;
  const auto [end, failure] = parse_double(text, seconds);
  if (failure != std::errc{} || end != text.data() + text.size() || !(seconds > 0) || seconds > 1e9) return false;
  options.interval = seconds;
  return true;
}

[[nodiscard]] inline bool assign_growth(session_options& options, std::string_view text) noexcept {
  std::uint32_t steps = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || steps > 99'999'999) return false;
    steps = 10 * steps + static_cast<std::uint32_t>(digit - '0');
  }
  options.capture.warn_growth_after = steps;
  return !text.empty();
}

[[nodiscard]] inline bool assign_stacks(session_options& options, std::string_view text) noexcept {
  if (text == "all") {
    options.capture.stacks = stack_capture::all;
  } else if (bool is_on = false; text == "sampled" || assign_truth(is_on, text)) {
    options.capture.stacks = is_on || text == "sampled" ? stack_capture::sampled : stack_capture::off;
  } else {
    return false;
  }
  return true;
}

[[nodiscard]] inline bool assign_no_dispatch(session_options& options, std::string_view text) noexcept {
  bool is_asked = false;
  if (!assign_truth(is_asked, text)) return false;
  options.capture.mode = is_asked ? run_mode::no_dispatch : run_mode::normal;
  return true;
}

[[nodiscard]] inline bool assign_format(session_options& options, std::string_view text) noexcept {
  if (text != "profile" && text != "session") return false;
  options.format = text == "session" ? session_format::session : session_format::profile;
  return true;
}

[[nodiscard]] inline bool assign_device(session_options& options, std::string_view text) {
  for (const std::string_view name : device_preset_names) {
    if (name != text) continue;
    options.capture.device = device_preset(name);
    return true;
  }
  return false;
}

inline constexpr std::array<session_setting, 12> session_settings{{
    {"enabled", "MEMPROF", "1 or 0",
     [](session_options& options, std::string_view text) { return assign_truth(options.enabled, text); }},
    {"output_dir", "MEMPROF_OUTPUT_DIR", "the path of a directory",
     [](session_options& options, std::string_view text) {
       options.output_dir = text;
       return !text.empty();
     }},
    {"interval", "MEMPROF_INTERVAL", "seconds, more than 0", assign_interval},
    {"trace", "MEMPROF_TRACE", "1 or 0",
     [](session_options& options, std::string_view text) { return assign_truth(options.trace, text); }},
    {"format", "MEMPROF_FORMAT", "profile or session", assign_format},
    {"signals", "MEMPROF_SIGNALS", "1 or 0",
     [](session_options& options, std::string_view text) { return assign_truth(options.signals, text); }},
    {"infer_operations", "MEMPROF_INFER_OPERATIONS", "1 or 0",
     [](session_options& options, std::string_view text) { return assign_truth(options.capture.infer_operations, text); }},
    {"stacks", "MEMPROF_STACKS", "off, sampled or all", assign_stacks},
    {"uses", "MEMPROF_USES", "1 or 0",
     [](session_options& options, std::string_view text) { return assign_truth(options.capture.uses, text); }},
    {"warn_growth_after", "MEMPROF_WARN_GROWTH_AFTER", "a number of steps, or 0", assign_growth},
    {"no_dispatch", "MEMPROF_NO_DISPATCH", "1 or 0", assign_no_dispatch},
    {"device", "MEMPROF_DEVICE", "the name of a device preset, as gpu-24gb", assign_device},
}};

/// The variable that names the file.
inline constexpr std::string_view session_file_variable = "MEMPROF_CONFIG";

/// Sets one key from a file. If the key is unknown or the value invalid, says so and leaves the options unchanged; `where` is its
/// place in the file.
inline void set_from_file(session_options& options, std::string_view key, std::string_view text, const std::string& where) {
  std::array<std::string_view, session_settings.size()> known{};
  for (std::size_t index = 0; index < known.size(); ++index) {
    const session_setting& setting = session_settings[index];
    known[index] = setting.key;
    if (setting.key != key) continue;
    const session_options before = options;
    if (setting.assign(options, text)) return;
    options = before;
    say_of_session(where + ": " + std::string{key} + " = " + std::string{text} + " is ignored; use " +
                   std::string{setting.expected});
    return;
  }
  say_of_session(where + ": unknown key '" + std::string{key} + "' is ignored; did you mean '" +
                 std::string{nearest_name(key, known)} + "'?");
}

/// Whether an environment variable looks like a setting. MEMPROF_OPTIONS belongs to LLVM's heap profiler, and MEMPROF_TEST_... to
/// memprof's own tests.
[[nodiscard]] inline bool is_for_sessions(std::string_view variable) noexcept {
  return variable.starts_with("MEMPROF_") && !variable.starts_with("MEMPROF_TEST_") && variable != "MEMPROF_OPTIONS";
}

/// Applies the environment, given as `NAME=value` lines up to a null pointer. Reports errors like `set_from_file`.
inline void set_from_environment(session_options& options, const char* const* environment) {
  std::array<std::string_view, session_settings.size() + 1> known{};
  for (std::size_t index = 0; index < session_settings.size(); ++index) known[index] = session_settings[index].variable;
  known.back() = session_file_variable;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line = *environment;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view variable = line.substr(0, equals);
    const std::string_view text = line.substr(equals + 1);
    const session_setting* found = nullptr;
    for (const session_setting& setting : session_settings) found = setting.variable == variable ? &setting : found;
    if (found != nullptr) {
      const session_options before = options;
      if (found->assign(options, text)) continue;
      options = before;
      say_of_session("environment: " + std::string{line} + " is ignored; use " + std::string{found->expected});
    } else if (is_for_sessions(variable) && variable != session_file_variable) {
      say_of_session("environment: unknown variable " + std::string{variable} + " is ignored; did you mean " +
                     std::string{nearest_name(variable, known)} + "?");
    }
  }
}

/// Reads a configuration file into options; set by <memprof/record/session_toml.hpp>, otherwise null.
using session_file_reader = void (*)(const char* path, session_options& options);
inline constinit session_file_reader read_session_file = nullptr;

/// Combines a session's settings, later ones winning: its program, the file named by the environment, the environment itself.
[[nodiscard]] inline session_options settled(session_options options, const char* const* environment) {
  for (const char* const* line = environment; line != nullptr && *line != nullptr; ++line) {
    const std::string_view variable = *line;
    const std::size_t size = session_file_variable.size();
    if (variable.substr(0, size) != session_file_variable || variable.substr(size, 1) != "=") continue;
    const char* const path = *line + size + 1;
    if (*path == '\0') continue;
    if (read_session_file != nullptr) {
      read_session_file(path, options);
    } else {
      say_of_session(std::string{session_file_variable} + "=" + path +
                     " is ignored: this program reads no files; include <memprof/record/session_toml.hpp> in it");
    }
  }
  set_from_environment(options, environment);
  if (options.enabled && options.format == session_format::session && write_session_text == nullptr) {
    options.format = session_format::profile;
    say_of_session(
        "session: it leaves a profile, as this program writes no other format; include "
        "<memprof/toolkit/format/pie/session_file.hpp> in it, or let memprof export --format session convert the profile");
  }
  if (options.capture.stacks != stack_capture::off || options.capture.uses) options.trace = true;  // which has them
  if (!options.enabled || (options.interval > 0 && options.interval <= 1e9)) return options;
  say_of_session("session: interval is " + std::to_string(options.interval) + "; use seconds, more than 0; 5 are used");
  options.interval = session_options{}.interval;
  return options;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
