#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The length of the UTF-8 sequence at the start of `text`, which is not empty; 0 if it is not well-formed.
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

/// Appends `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD: names in programs are not always
/// text, and readers of JSON and Protocol Buffers reject anything else.
void append_utf8(std::string& out, std::string_view text);

/// Appends a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

/// Appends `"key":`.
void append_json_key(std::string& out, std::string_view key);

}  // namespace memprof::inline MEMPROF_ABI::detail
