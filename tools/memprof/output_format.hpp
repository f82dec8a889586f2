#pragma once

#include "output_file.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {

/// A format that `memprof convert` writes.
struct output_format {
  std::string_view name;                    ///< for --format
  std::string_view reader;                  ///< who reads it, if the name does not say; for the help
  file_kind kind;                           ///< what its files are; of a folder, each file in it
  std::array<std::string_view, 3> endings;  ///< of names that mean this format; may be empty
  std::string_view needs;                   ///< what it takes from a trace that a profile lacks; empty: it takes either
  bool is_text = true;
  bool is_folder = false;
};

/// The tables of the formats that are folders.
inline constexpr std::array<std::string_view, 6> table_names{"runs", "labels", "segments", "operations", "blocks", "events"};

/// All of them, in the order of the help.
[[nodiscard]] const std::vector<output_format>& output_formats();

/// The names of all formats, or of those that a profile can be written as.
[[nodiscard]] std::vector<std::string> output_format_names(bool from_profile = false);

[[nodiscard]] const output_format& output_format_of(std::string_view name);

/// The name of the format that the ending of an output's name means; empty if none.
[[nodiscard]] std::string_view format_of_ending(std::string_view output);

/// For the help of --format: "collapsed (flame graphs), speedscope, ...".
[[nodiscard]] std::string output_formats_text();

}  // namespace memprof_tool
