#pragma once

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_events.hpp>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads another program's JSON: `reader` receives each value (`json_events`) and keeps what it needs; otherwise only one text is
/// in memory. Returns why the end is missing, as a sentence without a full stop; empty if nothing is missing. `file` must be at
/// its start.
template <class Reader>
[[nodiscard]] std::string read_foreign_json(std::FILE* file, const std::filesystem::path& path, Reader& reader) {
  json_input input{file, path};
  json_events<Reader> events{.reader = &reader, .input = &input};
  if (nlohmann::ordered_json::sax_parse(json_input_iterator{&input}, json_input_iterator{}, &events)) return {};
  if (events.is_overflow) return "byte " + std::to_string(input.taken()) + ": number too large";
  const std::size_t offset = events.fault_position == 0 ? 0 : events.fault_position - 1;
  if (input.taken() == 0 && input.at_end()) return "it is empty";
  if (input.at_end() && offset >= input.taken())
    return "it is cut off after " + std::to_string(input.taken()) + " bytes: unterminated JSON";
  return "byte " + std::to_string(offset) + ": invalid JSON";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
