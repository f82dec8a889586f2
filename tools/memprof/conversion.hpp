#pragma once

#include "foreign_recording.hpp"
#include "output_format.hpp"

#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/pytorch/snapshot.hpp>

#include <CLI/App.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// @file
/// The one road from a recording in any format to a file in any other: `memprof convert`, and `import`, `export`, `profile` and
/// `trace --pack`, which are other spellings of it.

namespace memprof_tool {

/// What is converted, and into what.
struct conversion {
  std::string subcommand;  ///< for messages
  std::string input;
  reading_options reading;
  bool imports = false;  ///< only other tools' recordings are meant
  std::string output;    ///< `standard_output`, a file, or the folder of tables
  std::string format;    ///< an `output_format`

  bool has_facets = false;          ///< for a profile
  std::string of = "peak";          ///< for collapsed stacks
  std::string space;                ///< for the formats of valgrind
  std::string run;                  ///< for tables and speedscope; empty: the name of the input
  std::vector<std::string> labels;  ///< for tables: "commit=3f2c1e"
  std::size_t events = memprof::torch_snapshot_options{}.events;

  [[nodiscard]] memprof::facets asked_facets() const { return has_facets ? memprof::facets::all : memprof::facets::none; }
};

/// Converts, and reports what cannot be converted as lines of the subcommand. Returns the exit status.
[[nodiscard]] int convert(const conversion& asked);

/// Adds the options for reading other tools' recordings.
void add_reading_options(CLI::App& command, reading_options& options);

/// Adds the options of single output formats. Returns what throws `CLI::ValidationError` if one of them is given that
/// `conversion::format` does not use; call it when that is known.
[[nodiscard]] std::function<void()> add_writing_options(CLI::App& command, conversion& asked);

}  // namespace memprof_tool
