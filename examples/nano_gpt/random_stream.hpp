#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace nano_gpt {

/// Random numbers that are the same on every platform, unlike those of the distributions in <random>.
/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class random_stream {
 public:
  explicit random_stream(std::uint64_t seed) : state_{seed} {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }

  /// In [0, bound). The bias of the remainder is below 2^-32 for the length of any realistic text.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

  /// In (0, 1]: never 0, so that its logarithm exists.
  double uniform() { return (static_cast<double>(next() >> 11U) + 1.0) * 0x1.0p-53; }

  /// Mean 0, standard deviation 1 (Box and Muller, 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace nano_gpt
