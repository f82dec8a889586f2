#include "output_format.hpp"

#include "gzip.hpp"

#include <memprof/toolkit/format/tables/parquet.hpp>

#include <algorithm>
#include <cstddef>

namespace memprof_tool {
namespace {

/// Lines of a stack and a number. A recording of heaptrack begins like one: with its versions.
bool is_collapsed(std::string_view begin) {
  if (begin.starts_with("v ")) return false;
  const std::string_view line = begin.substr(0, begin.find('\n'));
  const std::size_t blank = line.rfind(' ');
  return blank != line.npos && blank + 1 < line.size() && line.find_first_not_of("0123456789", blank + 1) == line.npos;
}

/// gzip with memprof's comment, or without compression, which no other writer of pprof makes.
bool is_pprof(std::string_view begin) {
  constexpr std::size_t header = 10;
  constexpr std::string_view with_comment = "\x1f\x8b\x08\x10";
  if (begin.starts_with(with_comment) && begin.substr(std::min(header, begin.size())).starts_with(gzip_comment)) return true;
  constexpr unsigned char kind_of_block = 6;
  return begin.starts_with("\x1f\x8b\x08") && begin.size() > header &&
         (static_cast<unsigned char>(begin[header]) & kind_of_block) == 0;
}

/// Packets that begin with the number of their sequence.
bool is_perfetto(std::string_view begin) {
  constexpr std::string_view sequence = "\x50\x01";
  return begin.starts_with('\n') && (begin.substr(2, 2) == sequence || begin.substr(3, 2) == sequence);
}

/// Not those of PyTorch itself, whose pickles have frames.
bool is_torch_snapshot(std::string_view begin) {
  return begin.starts_with(
      "\x80\x04}(\x8c\x0d"
      "device_traces");
}

}  // namespace

const std::vector<output_format>& output_formats() {
  static const std::vector<output_format> formats{
      {"collapsed", "flame graphs", {"a file of collapsed stacks", is_collapsed}, {".collapsed", ".folded"}, ""},
      {"speedscope",
       "",
       {"a speedscope profile of memprof's", [](std::string_view begin) { return begin.find("\"memprof@") != begin.npos; }},
       {".speedscope.json"},
       ""},
      {"pprof", "", {"a pprof profile of memprof's", is_pprof}, {".pb.gz", ".pprof"}, "", false},
      {"dhat",
       "dh_view",
       {"a file for dh_view", [](std::string_view begin) { return begin.starts_with("{\"dhatFileVersion\""); }},
       {".dhat"},
       "the lifetimes of blocks"},
      {"massif",
       "ms_print",
       {"a file for ms_print", [](std::string_view begin) { return begin.starts_with("desc: "); }},
       {".massif"},
       ""},
      {"heaptrack",
       "heaptrack_print",
       {"a recording of memprof's for heaptrack", [](std::string_view begin) { return begin.starts_with("v 10000 1\nX "); }},
       {".heaptrack"},
       "individual blocks"},
      {"chrome",
       "and Kineto",
       {"a trace for Chrome", [](std::string_view begin) { return begin.starts_with("{\"displayTimeUnit\""); }},
       {".trace.json"},
       ""},
      {"perfetto", "", {"a trace for Perfetto", is_perfetto}, {".pftrace", ".perfetto-trace", ".perfetto"}, "", false},
      {"torch-snapshot",
       "memory_viz",
       {"a PyTorch snapshot of memprof's", is_torch_snapshot},
       {".pickle", ".pkl"},
       "individual blocks",
       false},
      {"session",
       "snapshots of pie's memory profiler",
       {"a session of pie's memory profiler", [](std::string_view begin) { return begin.starts_with("{\n\"metadata\""); }},
       {},
       ""},
      {"csv",
       "tables",
       {"a table of memprof's", [](std::string_view begin) { return begin.starts_with("run,"); }},
       {},
       "",
       true,
       true},
      {"jsonl",
       "tables",
       {"a table of memprof's", [](std::string_view begin) { return begin.starts_with("{\"run\":"); }},
       {},
       "",
       true,
       true},
      {"parquet",
       "tables",
       {"a table of memprof's", [](std::string_view begin) { return begin.starts_with(memprof::detail::parquet_begin); }},
       {},
       "",
       false,
       true},
      {"profile", "JSON", profile_file_kind, {".json"}, ""},
      {"trace", "", trace_file_kind, {".memtrace"}, "events", false},
      {"packed-trace", "with zstd", trace_file_kind, {}, "events", false}};
  return formats;
}

std::vector<std::string> output_format_names(bool from_profile) {
  std::vector<std::string> names;
  for (const output_format& each : output_formats()) {
    if (!from_profile || each.needs.empty()) names.emplace_back(each.name);
  }
  return names;
}

const output_format& output_format_of(std::string_view name) {
  const auto& formats = output_formats();
  return *std::find_if(formats.begin(), formats.end(), [&](const output_format& each) { return each.name == name; });
}

std::string_view format_of_ending(std::string_view output) {
  const output_format* found = nullptr;
  std::size_t longest = 0;  // ".speedscope.json" ends in ".json", too
  for (const output_format& each : output_formats()) {
    for (const std::string_view ending : each.endings) {
      if (ending.size() <= longest || !output.ends_with(ending)) continue;
      found = &each;
      longest = ending.size();
    }
  }
  return found == nullptr ? std::string_view{} : found->name;
}

std::string output_formats_text() {
  std::string text;
  for (const output_format& each : output_formats()) {
    text += (text.empty() ? "" : ", ") + std::string{each.name};
    if (!each.reader.empty()) text += " (" + std::string{each.reader} + ")";
  }
  return text;
}

}  // namespace memprof_tool
