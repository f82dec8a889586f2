#pragma once

#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

/// A task: it allocates `bytes` and frees them.
inline void work_on(std::size_t bytes) { std::vector<std::byte, memprof::allocator<std::byte>> scratch(bytes); }

/// Prints what an operation of the capture allocated, with everything nested in it, and what had no operation.
inline void print_bytes(const memprof::profile& profile, std::string_view path) {
  const memprof::operation_profile* const operation = profile.find_operation(path);
  const long long bytes = operation == nullptr || operation->usage.empty() ? 0 : operation->usage[0].allocated;
  std::printf("%.*s: %lld of %lld bytes\n", static_cast<int>(path.size()), path.data(), bytes,
              profile.spaces.empty() ? 0LL : static_cast<long long>(profile.spaces[0].allocations));
}
