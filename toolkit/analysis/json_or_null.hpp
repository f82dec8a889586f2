#pragma once

#include <memprof/config.hpp>

#include <nlohmann/json.hpp>
#include <string>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Text as JSON; null for what is empty because it is unknown or absent.
[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
