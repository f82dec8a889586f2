#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_options.hpp>

#include <string>
#include <string_view>

/// @file
/// The summary as Markdown tables (GitHub's dialect), for issues and CI reports.

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// The text with all markup escaped.
[[nodiscard]] std::string markdown_text(std::string_view text);

/// A name as code, whatever it contains: the fence is longer than any run of backticks within, and in a table a bar is escaped,
/// as it would end the cell even inside code.
[[nodiscard]] std::string markdown_code(std::string_view name, bool is_in_table);

}  // namespace detail

/// The answers of `to_text` as Markdown. The options `columns`, `max_lines`, `is_colored` and `format` are ignored: names are
/// written in full. Throws `memprof::error` if `text_options::primary_space` names no space of the profile.
[[nodiscard]] std::string to_markdown(const profile& source, const text_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
