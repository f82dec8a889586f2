#pragma once

#include <cstdio>
#include <string_view>

namespace memprof_tool {

/// Whether the escape sequences of `memprof::detail::emphasis` in a text are its own colours, rather than part of a name.
enum class text_colors : bool { none, own };

/// Writes text to stdout or stderr, by its length: a NUL is a character like others. All text that this program prints comes this
/// way. On a terminal, characters that would command it are escaped ("\x1b"), except line ends, those of CSV too, and tabs.
void print(std::string_view text, std::FILE* to = stdout, text_colors colors = text_colors::none);

/// Writes JSON to stdout. On a terminal, the same characters become escapes of JSON ("\u009b"), so that it stays JSON.
void print_json(std::string_view document);

}  // namespace memprof_tool
