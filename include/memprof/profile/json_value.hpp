#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

enum class json_kind : std::uint8_t { null, boolean, integer, natural, real, string, array, object };

/// A value as a parser delivers it; for an array or object, only its beginning.
struct json_value {
  json_kind kind = json_kind::null;
  bool truth = false;
  std::int64_t integer = 0;   ///< if negative
  std::uint64_t natural = 0;  ///< an integer without a minus sign
  double real = 0;
  std::string_view text = {};  ///< of a string; of a real number, as written, if known
};

}  // namespace memprof::inline MEMPROF_ABI::detail
