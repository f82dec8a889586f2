#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What options accept. Unlike CLI11's own validators these say in words what a wrong value is not, and add nothing to the help.

namespace memprof_tool {

/// Whole decimal numbers; "010" and "0x10" are none.
[[nodiscard]] CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Numbers with or without a fraction.
[[nodiscard]] CLI::Validator decimal_number();

/// One of several names. `kind` is what they are names of, such as "format".
[[nodiscard]] CLI::Validator one_of(const std::string& kind, std::vector<std::string> names);

/// The names that the option's value is one of, if `one_of` checks it.
[[nodiscard]] std::vector<std::string> choices_of(CLI::Option& option);

/// "; did you mean 'top'?" if one of the names differs from the word in one or two letters, else empty.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace memprof_tool
