#pragma once

#include <cstdint>
#include <cstdlib>

/// @file
/// How many random sequences are tried, and from which seed: the environment may say otherwise.

namespace memprof::property {

using namespace extend;

[[nodiscard]] inline std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}
[[nodiscard]] inline std::uint64_t sequence_count() { return from_environment("MEMPROF_TEST_SEQUENCES", 10'000); }
[[nodiscard]] inline std::uint64_t base_seed() { return from_environment("MEMPROF_TEST_SEED", 20'260'801); }

}  // namespace memprof::property
