#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// What an assistant reads at once.
inline constexpr std::size_t most_answer_bytes = 8000;

/// The JSON of an answer with lists cut, the longer ones more, until it has at most `most_bytes`: each begins with the rows that
/// count most. An object whose lists were cut says in "left_out" how many rows of each are missing. Caveats are cut
/// last, and names not at all: long ones make it longer.
[[nodiscard]] nlohmann::ordered_json short_answer(const nlohmann::ordered_json& whole,
                                                  std::size_t most_bytes = most_answer_bytes);

/// The JSON of an answer with further caveats, such as why only the beginning of a file was read; empty ones are none.
[[nodiscard]] nlohmann::ordered_json with_caveats(nlohmann::ordered_json answer, const std::vector<std::string>& more);

}  // namespace memprof::inline MEMPROF_ABI
