#pragma once

#include <memprof/config.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/stack_recorder.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Chooses bytes at random, each with the same probability, independently of all others: a block is in the sample if one of its
/// bytes is, so with the probability 1 - exp(-bytes / `stack_sample_bytes`). Belongs to one thread.
class byte_sample {
 public:
  [[nodiscard]] bool takes(std::size_t bytes) noexcept {
    if (state_ == 0) [[unlikely]]
      seed(static_cast<std::uint64_t>(monotonic_ns()) ^ reinterpret_cast<std::uintptr_t>(this));
    if (bytes < left_) [[likely]] {
      left_ -= bytes;
      return false;
    }
    left_ = distance();
    return true;
  }

  void seed(std::uint64_t value) noexcept {
    state_ = value * 0x9E3779B97F4A7C15U | 1;
    for (int round = 0; round < 8; ++round) (void)random();
    left_ = distance();
  }

 private:
  /// xorshift64*
  [[nodiscard]] std::uint64_t random() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }

  /// The number of the next chosen byte, from 1: exponentially distributed with the mean `stack_sample_bytes`. By von Neumann's
  /// method ("Various techniques used in connection with random digits", 1951), which compares random numbers alone: a logarithm
  /// would have C programs under `memprof run` load the library of mathematics.
  [[nodiscard]] std::uint64_t distance() noexcept {
    for (std::uint64_t whole = 0;; ++whole) {
      const std::uint64_t first = random();
      std::uint64_t last = first;
      bool is_even = true;
      for (std::uint64_t next = random(); next < last; next = random()) {
        last = next;
        is_even = !is_even;
      }
      static_assert(stack_sample_bytes == std::size_t{1} << 16);
      if (is_even) return (whole << 16) + (first >> 48) + 1;
    }
  }

  std::uint64_t state_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
