#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr std::uint64_t hash_of_no_frames = 0x9E3779B97F4A7C15U;

/// The innermost frames of a walk that may be the hook's own, at most.
inline constexpr std::size_t most_hook_frames = 8;

/// The hash of some frames and one more at their end. Never 0.
[[nodiscard, gnu::always_inline]] inline std::uint64_t hash_of_frames(std::uint64_t hash, std::uintptr_t next) noexcept {
  hash = (hash ^ next) * 0xD6E8FEB86659FD93U;
  hash ^= hash >> 32;
  return hash == 0 ? 1 : hash;
}

/// The addresses of a stack, and the hash of each outer part of it.
struct walked_stack {
  void* const* frames;  ///< innermost first
  std::size_t count;
  std::uint64_t hashes[max_stack_frames + 1];  ///< of so many frames, from the outermost on

  walked_stack(void* const* walked, std::size_t found) noexcept : frames(walked), count(found) {
    hashes[0] = hash_of_no_frames;
    for (std::size_t index = 0; index < count; ++index) hashes[index + 1] = hash_of_frames(hashes[index], address(index));
  }

  /// From the outermost on.
  [[nodiscard]] std::uintptr_t address(std::size_t index) const noexcept {
    return reinterpret_cast<std::uintptr_t>(frames[count - 1 - index]);
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hashes[count]; }

  /// The hash of each inner part, from the innermost frame on, up to so many frames.
  void hash_inner_frames(std::size_t most, std::uint64_t* inner_hashes) const noexcept {
    inner_hashes[0] = hash_of_no_frames;
    for (std::size_t index = 0; index < most; ++index)
      inner_hashes[index + 1] = hash_of_frames(inner_hashes[index], reinterpret_cast<std::uintptr_t>(frames[index]));
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
