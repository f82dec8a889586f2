#include "exported_file.hpp"

#include "gzip.hpp"
#include "output_format.hpp"

#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/tables/parquet.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace memprof_tool {
namespace {

struct export_kind {
  std::string_view what;
  std::string_view lacks;
  bool (*begins)(std::string_view begin);
};

/// Whether every line is a stack and a number, and one of the stacks has two frames. A log may have a line like that.
bool are_collapsed_stacks(std::string_view begin) {
  bool has_frames = false;
  std::size_t lines = 0;
  for (std::size_t end = begin.find('\n'); end != begin.npos; end = begin.find('\n')) {
    const std::string_view line = begin.substr(0, end);
    begin.remove_prefix(end + 1);
    const std::size_t blank = line.rfind(' ');
    if (blank == line.npos || blank == 0 || blank + 1 == line.size()) return false;
    if (line.find_first_not_of("0123456789", blank + 1) != line.npos) return false;
    const std::size_t semicolon = line.find(';');
    has_frames = has_frames || (semicolon != line.npos && semicolon != 0 && line[semicolon + 1] != ' ');
    ++lines;
  }
  return lines != 0 && has_frames;
}

/// As memprof writes it: gzip with its comment, or without compression. A packed recording of heaptrack is neither.
bool is_packed_pprof(std::string_view begin) {
  constexpr std::size_t header = 10;
  constexpr std::size_t content = header + 5;  // a stored block's header
  constexpr unsigned char kind_of_block = 6;
  if (!begin.starts_with("\x1f\x8b\x08") || begin.size() <= content) return false;
  if (begin[3] == '\x10') return begin.substr(header).starts_with(gzip_comment);
  return begin[3] == '\0' && (static_cast<unsigned char>(begin[header]) & kind_of_block) == 0 && begin[content] == '\n';
}

/// Packets that begin with the number of their sequence.
bool is_perfetto_trace(std::string_view begin) {
  constexpr std::string_view sequence = "\x50\x01";
  return begin.starts_with('\n') && begin.size() > 3 && (begin.substr(2, 2) == sequence || begin.substr(3, 2) == sequence);
}

bool is_chrome_trace(std::string_view begin) {
  return begin.starts_with("{\"displayTimeUnit\"") || (begin.starts_with('{') && begin.find("\"traceEvents\"") != begin.npos);
}

bool is_table(std::string_view begin) {
  return begin.starts_with("run,space,") || begin.starts_with("run,time_ns,") || begin.starts_with("run,rank,name,") ||
         begin.starts_with("{\"run\":\"") || begin.starts_with(memprof::detail::parquet_begin);
}

constexpr std::string_view single_blocks = "the single allocations and frees";

constexpr std::array<export_kind, 8> kinds{
    {{"a file of collapsed stacks for flame graphs", single_blocks, are_collapsed_stacks},
     {"a profile for speedscope", single_blocks,
      [](std::string_view begin) {
        return begin.starts_with('{') && begin.find("\"https://www.speedscope.app/file-format-schema.json\"") != begin.npos;
      }},
     {"a pprof profile", single_blocks, is_packed_pprof},
     {"a DHAT file for dh_view", single_blocks, [](std::string_view begin) { return begin.starts_with("{\"dhatFileVersion\""); }},
     {"a massif file for ms_print", single_blocks, [](std::string_view begin) { return begin.starts_with("desc: "); }},
     {"a trace for Chrome's viewer", "the operation and the category of each block", is_chrome_trace},
     {"a trace for Perfetto", single_blocks, is_perfetto_trace},
     {"a table of a run", "the other tables", is_table}}};

[[noreturn]] void refuse(const std::string& path, std::string_view what, std::string_view lacks) {
  memprof::detail::raise_about_file(
      "read", path,
      "it is " + std::string{what} + ", an export for other programs, which lacks " + std::string{lacks} +
          "; give the recording that it was made from, such as memprof's trace (.memtrace) or profile (.json)");
}

}  // namespace

void refuse_export(std::FILE* file, const std::string& path) {
  std::array<char, 4096> bytes{};
  const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file);
  std::rewind(file);
  refuse_export(std::string_view{bytes.data(), got}, path);
}

void refuse_export(std::string_view begin, const std::string& path) {
  for (const export_kind& kind : kinds) {
    if (kind.begins(begin)) refuse(path, kind.what, kind.lacks);
  }
}

void refuse_tables(const std::filesystem::path& folder) {
  std::error_code failure;
  for (const std::string_view ending : {".csv", ".jsonl", ".parquet"}) {
    const auto is_there = [&](std::string_view name) {
      return std::filesystem::exists(folder / (std::string{name} + std::string{ending}), failure);
    };
    if (std::all_of(table_names.begin(), table_names.end() - 1, is_there))
      refuse(folder.string(), "a folder of tables", "the order of all events");
  }
}

}  // namespace memprof_tool
