#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/page.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string_view>

/// @file
/// A run as one HTML file that opens from disk, without a server or a network: docs/report.md. Needs the component `json`.
///
/// @code
/// memprof::trace recorded;
/// auto capture = memprof::begin_capture({.trace = &recorded});
/// train();
/// capture.end();
/// memprof::write_html(recorded, "report.html");
/// @endcode

namespace memprof::inline MEMPROF_ABI {

/// Writes the page of a profile: its numbers, and live bytes over time without their owners. An existing file is replaced, or
/// left as it was on failure; errors name the path and the reason.
inline void write_html(const profile& source, const std::filesystem::path& path, const html_options& options = {}) {
  detail::write_page(detail::data_for_page(source, options), path, options);
}

/// Writes the page of a trace: what was live at each moment and who owned it, operations and blocks over time. Reads the trace
/// twice, taking about 1.5 s for each ten million events, with bounded memory.
inline void write_html(const trace& source, const std::filesystem::path& path, const html_options& options = {}) {
  const auto replay = [&](auto& visitor) { source.visit(visitor); };
  detail::write_page(detail::data_for_page_of_trace(replay, options), path, options);
}

/// The same for a trace in an open, seekable file, from its current position to the end or as far as it is intact.
/// `add_notes(status, is_empty, options)` may turn that into notes; `is_empty` means that the trace used no memory. `name` is the
/// file's name, for messages.
template <class AddNotes>
trace_file_status write_html_of_trace_file(std::FILE* source, const std::filesystem::path& name,
                                           const std::filesystem::path& path, html_options options, AddNotes&& add_notes) {
  const long begin = std::ftell(source);
  trace_file_status status;
  const auto replay = [&](auto& visitor) {
    if (std::fseek(source, begin, SEEK_SET) != 0) detail::raise_about_file("read", name, detail::reason_in_errno());
    status = read_trace(source, name, visitor);
  };
  detail::page_data data = detail::data_for_page_of_trace(replay, options);
  add_notes(status, data.run["profile"]["spaces"].empty(), options);
  data.run["notes"] = options.notes;
  detail::write_page(data, path, options);
  return status;
}

/// Whether a file is a page written by memprof. False also if it cannot be read.
[[nodiscard]] inline bool is_html_page(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) return false;
  std::array<char, 1024> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file.get());
  return std::string_view{first.data(), got}.find(R"(<meta name="generator" content="memprof">)") != std::string_view::npos;
}

}  // namespace memprof::inline MEMPROF_ABI
