#pragma once

#include <memprof/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

/// Which blocks of the C++ heap a capture records the stacks of.
enum class stack_capture : std::uint8_t {
  off,
  sampled,  ///< all from 64 KiB on, and of those below one in 64 KiB of bytes on average, chosen at random
  all,
};

namespace detail {

/// `stack_capture::sampled`: blocks from this size on all have a stack.
inline constexpr std::size_t stacked_from_bytes = std::size_t{64} << 10;
/// The same: bytes of smaller blocks from one that gets a stack to the next, on average.
inline constexpr std::size_t stack_sample_bytes = std::size_t{64} << 10;

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::abi_1 {

/// What records stacks in a process: a part of the one library or executable that has the hooks of the heap.
struct stack_recorder {
  /// Makes ready to walk stacks. It may call the loader and allocate; not under the registry's lock.
  void (*prepare)(stack_recorder&) noexcept;
  const char* way = "";  ///< how it walks them

  // Under the registry's lock.
  std::uint64_t names = 0;       ///< of stacks and modules
  std::uint64_t text_bytes = 0;  ///< of their text
  std::uint64_t bytes = 0;       ///< of its tables

  std::atomic<std::uint64_t> missing{0};  ///< blocks without a stack that should have one, in this capture
};

}  // namespace memprof::abi_1
