#pragma once

#include <memprof/record/session_options.hpp>
#include <memprof/record/session_settings.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <toml++/toml.h>

/// @file
/// Sessions configured by a file: docs/session.md. Needs toml++ (CMake: the component `toml`, target `memprof::toml`).
///
/// A program that includes this anywhere reads the file named by the environment variable MEMPROF_CONFIG.

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// A value's location, as "'train.toml', line 3".
[[nodiscard]] inline std::string place_in_toml(const char* path, const toml::source_region& at) {
  return "'" + std::string{path} + "', line " + std::to_string(at.begin.line);
}

/// Converts a scalar to the text the environment would have; false for other values.
[[nodiscard]] inline bool text_of_toml(const toml::node& value, std::string& text) {
  if (const auto* const words = value.as_string()) {
    text = words->get();
  } else if (const auto* const truth = value.as_boolean()) {
    text = truth->get() ? "1" : "0";
  } else if (const auto* const whole = value.as_integer()) {
    text = std::to_string(whole->get());
  } else if (const auto* const real = value.as_floating_point()) {
    text = std::to_string(real->get());
  } else {
    return false;
  }
  return true;
}

/// Applies a document: its [memprof] table if it has one, otherwise its top level.
inline void set_from_toml(const toml::table& document, const char* path, session_options& options) {
  const toml::table* const own = document["memprof"].as_table();
  for (const auto& [key, value] : own != nullptr ? *own : document) {
    std::string text;
    const std::string where = place_in_toml(path, value.source());
    if (text_of_toml(value, text)) {
      set_from_file(options, key.str(), text, where);
    } else {
      say_of_session(where + ": '" + std::string{key.str()} + "' is not a string, number or boolean, and is ignored");
    }
  }
}

inline void say_of_toml_error(const char* path, const toml::parse_error& problem) {
  const std::string where =
      problem.source().begin.line == 0 ? "'" + std::string{path} + "'" : place_in_toml(path, problem.source());
  say_of_session(where + " is ignored: " + std::string{problem.description()});
}

#if TOML_EXCEPTIONS
inline namespace toml_with_exceptions {
inline void read_session_toml_file(const char* path, session_options& options) {
  try {
    set_from_toml(toml::parse_file(path), path, options);
  } catch (const toml::parse_error& problem) {
    say_of_toml_error(path, problem);
  }
}
}  // namespace toml_with_exceptions
#else
inline namespace toml_without_exceptions {
inline void read_session_toml_file(const char* path, session_options& options) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (parsed) {
    set_from_toml(parsed.table(), path, options);
  } else {
    say_of_toml_error(path, parsed.error());
  }
}
}  // namespace toml_without_exceptions
#endif

/// Lets sessions read files; set before `main`.
inline const bool reads_session_toml = (read_session_file = read_session_toml_file, true);

}  // namespace detail

/// The settings in a file, over `options`. Each error is one line on stderr and otherwise ignored.
///
/// @code
/// memprof::session session{memprof::read_session_toml("train.toml")};
/// @endcode
[[nodiscard]] inline session_options read_session_toml(const std::string& path, session_options options = {}) {
  detail::read_session_toml_file(path.c_str(), options);
  return options;
}

}  // namespace memprof::inline MEMPROF_ABI
