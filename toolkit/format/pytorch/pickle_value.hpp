#pragma once

#include <memprof/config.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// A value of a pickle. Containers and texts are indices into a `pickle_reader`.
struct pickle_value {
  enum class type : std::uint8_t { none, boolean, integer, too_large, real, text, list, tuple, dictionary, dropped };

  type kind = type::none;
  union {
    std::int64_t integer = 0;
    double real;
    std::uint32_t index;
  };

  [[nodiscard]] bool is(type wanted) const noexcept { return kind == wanted; }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
