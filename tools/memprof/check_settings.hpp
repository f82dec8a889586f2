#pragma once

#include <memprof/toolkit/analysis/check.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {

/// What `memprof check` is asked, as text: from options, or from a file.
struct check_settings {
  struct limit {
    memprof::check_limit value;
    bool is_given = false;
  };
  limit peak;
  limit growth;
  std::vector<memprof::check_limit> limits;
  std::string space;     ///< empty: not given
  std::string baseline;  ///< the file; empty: none
  std::string tolerance;
  std::vector<std::string> each;
  bool any_program = false;
};

/// Parses "operation:model/h.0=1GiB". Throws `memprof::error` that shows the notation.
[[nodiscard]] memprof::check_limit parse_limit(std::string_view text);

/// Reads the settings in a TOML file: its table [check], or its top level if it has none. The path of a baseline is relative to
/// the file's folder. Throws `memprof::error`, with the line, for an unknown key or a wrong value, and if this program was built
/// without toml++.
[[nodiscard]] check_settings read_check_settings(const std::string& path);

/// The settings of `file`, except for those that `options` has.
[[nodiscard]] check_settings merged(check_settings file, const check_settings& options);

}  // namespace memprof_tool
