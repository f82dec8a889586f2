#pragma once

#include <memprof/profile/operation_profile.hpp>
#include <memprof/profile/profile.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof::test {

using namespace extend;

/// What an operation did in `cpu`, the only space that it used.
inline const operation_usage& usage_in_cpu(const profile& made, const char* path) {
  const operation_profile* const operation = made.find_operation(path);
  REQUIRE(operation != nullptr);
  REQUIRE(operation->usage.size() == 1);
  return operation->usage[0];
}

}  // namespace memprof::test
