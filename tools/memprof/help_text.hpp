#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace memprof_tool {

/// Help that is no wider than `columns`, with what an option needs and excludes in words.
class help_text : public CLI::Formatter {
 public:
  explicit help_text(std::size_t columns) : columns_{columns} {}

  std::string make_description(const CLI::App* command) const override;
  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  [[nodiscard]] std::string entry(const std::string& name, const std::string& meaning) const;

  std::size_t columns_;
};

/// The width for help: the terminal's, at most 100 and at least 40; 80 if the standard output is none.
[[nodiscard]] std::size_t help_columns();

inline constexpr const char* bad_input_text = "an argument is invalid or an input cannot be read completely";
inline constexpr const char* bad_file_text =
    "an argument is invalid, an input cannot be read completely or its run did not end it, or an output cannot be written";

/// Ends the help of a subcommand: with what its options do not say, if anything, and what an exit status other than 0 means.
/// `failed` is empty if there is no status 1.
void set_footer(CLI::App& command, const std::string& text, const std::string& failed, const std::string& bad_input);

}  // namespace memprof_tool
