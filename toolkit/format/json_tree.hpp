#pragma once

#include <memprof/profile/json_document.hpp>

#include <nlohmann/json.hpp>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Parses a small document into memory, for files that other programs define. Errors name the byte of invalid JSON, or the
/// duplicate key; a document above 1 MiB, or nested deeper than 100 levels, is rejected.
[[nodiscard]] nlohmann::ordered_json parse_tree(std::string_view text, const document_source& source);

}  // namespace memprof::inline MEMPROF_ABI::detail
