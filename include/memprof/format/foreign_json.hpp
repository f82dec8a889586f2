#pragma once

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_events.hpp>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

/// Reads another program's JSON: `reader` meets each value (`json_events`) and keeps what it needs, and nothing else is in memory
/// but one text. Returns why the end is missing, as a sentence without its stop; empty: it is not. `file` stands at its begin.
template <class Reader>
[[nodiscard]] std::string read_foreign_json(std::FILE* file, const std::filesystem::path& path, Reader& reader) {
  json_input input{file, path};
  json_events<Reader> events{.reader = &reader, .input = &input};
  if (nlohmann::ordered_json::sax_parse(json_input_iterator{&input}, json_input_iterator{}, &events)) return {};
  if (events.is_overflow) return "byte " + std::to_string(input.taken()) + ": a number that is too large";
  const std::size_t offset = events.fault_position == 0 ? 0 : events.fault_position - 1;
  if (input.taken() == 0 && input.at_end()) return "it is empty";
  if (input.at_end() && offset >= input.taken())
    return "it is cut off after " + std::to_string(input.taken()) + " bytes: the JSON does not end";
  return "byte " + std::to_string(offset) + ": not JSON from here on";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
