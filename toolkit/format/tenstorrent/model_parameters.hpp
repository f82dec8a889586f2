#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The model's number of parameters, if a source reports it.
struct model_parameters {
  std::int64_t count = 0;  ///< elements of all parameters together

  bool operator==(const model_parameters&) const = default;

  static constexpr std::string_view table = "model_parameters";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("count", row.count);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
