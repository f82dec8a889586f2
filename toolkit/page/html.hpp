#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/html_options.hpp>
#include <memprof/trace/trace.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>

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

struct trace_file_status;

/// Writes the page of a profile: its numbers, and live bytes over time without their owners. An existing file is replaced, or
/// left as it was on failure; errors name the path and the reason.
void write_html(const profile& source, const std::filesystem::path& path, const html_options& options = {});

/// Writes the page of a trace: what was live at each moment and who owned it, operations and blocks over time. Reads the trace
/// twice, taking about 1.5 s for each ten million events, with bounded memory.
void write_html(const trace& source, const std::filesystem::path& path, const html_options& options = {});

/// The same for a trace in an open, seekable file, from its current position to the end or as far as it is intact.
/// `add_notes(status, is_empty, options)` may turn that into notes; `is_empty` means that the trace used no memory. `name` is the
/// file's name, for messages.
trace_file_status write_html_of_trace_file(
    std::FILE* source, const std::filesystem::path& name, const std::filesystem::path& path, html_options options,
    const std::function<void(const trace_file_status& status, bool is_empty, html_options& options)>& add_notes);

/// Whether a file is a page written by memprof. False also if it cannot be read.
[[nodiscard]] bool is_html_page(const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI
