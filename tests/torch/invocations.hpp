#pragma once

#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <string_view>

/// How often an operation began; 0 if the profile has none of that path.
[[nodiscard]] inline std::int64_t invocations_of(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr ? 0 : found->invocations;
}
