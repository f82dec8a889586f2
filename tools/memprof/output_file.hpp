#pragma once

#include <memprof/detail/error.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The one rule for every output: it is never the input, and of existing files it replaces only empty ones and those of its own
/// kind. A file that cannot be written completely leaves what was there.

namespace memprof_tool {

/// What an output may replace.
struct file_kind {
  std::string_view name;                    ///< with its article, for messages: "a picture"
  bool (*is_kind)(std::string_view begin);  ///< whether a file with these first bytes is one; there may be up to 1024
};

inline constexpr file_kind trace_file_kind{"a memprof trace",
                                           [](std::string_view begin) { return begin.starts_with("\x89MEMTRC"); }};
inline constexpr file_kind profile_file_kind{
    "a memprof profile", [](std::string_view begin) { return begin.find("\"memprof-profile\"") != begin.npos; }};
inline constexpr file_kind page_file_kind{"a memprof page", [](std::string_view begin) {
                                            return begin.find(R"(<meta name="generator" content="memprof">)") != begin.npos;
                                          }};

/// The standard output, as the name of an output.
inline constexpr std::string_view standard_output = "-";

/// The input is fine, but the output cannot be written.
struct output_error : memprof::error {
  using memprof::error::error;
};

/// Throws `memprof::error` if `output` is the input file, which writing would destroy.
void keep_input(const std::string& input, const std::string& output);

/// Throws `memprof::error` if two outputs are the same file. Empty names count as none.
void keep_apart(const std::string& output, const std::string& other);

/// Throws `memprof::error` if writing would replace a file that is neither empty nor of that kind. `remedy` says what to do.
void keep_other_file(const std::filesystem::path& output, const file_kind& kind,
                     const std::string& remedy = "remove it or choose another name");

/// Has `write(file)`, which returns whether it succeeded, write a file that replaces `output` when it is complete, or the
/// standard output; `seeks` if it goes back in what it wrote. Throws `output_error`, or what `write` throws.
void write_output(const std::filesystem::path& output, const std::function<bool(std::FILE* file)>& write, bool seeks = false);
/// The same for a text.
void write_output(const std::filesystem::path& output, std::string_view text);
/// The same for `write(name)`, which writes to a file of that name.
void write_named_output(const std::filesystem::path& output, const std::function<void(const std::filesystem::path& name)>& write);

/// Whether one of the outputs is the standard output, where nothing else may be printed then. Throws `memprof::error` if
/// `other_option`, which asks for something there as well, is not empty.
[[nodiscard]] bool is_printed(const std::vector<std::string>& outputs, const std::string& other_option = {});

/// Throws `memprof::error` if `output` is a terminal, for which `format`, no text, is not meant.
void keep_terminal(const std::string& output, std::string_view format);

}  // namespace memprof_tool
