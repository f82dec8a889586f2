#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// How far a Python script was run for `memprof waterfall`.
struct script_run {
  std::int64_t optimizer_steps = 0;  ///< of the optimizer that made most
  std::int64_t wanted_steps = 0;     ///< after which the run was to end
  std::int64_t ended_itself = 1;     ///< not 0: the script ended before each optimizer had made them

  bool operator==(const script_run&) const = default;

  static constexpr std::string_view table = "script_runs";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("optimizer_steps", row.optimizer_steps);
    visit("wanted_steps", row.wanted_steps);
    visit("ended_itself", row.ended_itself);
  }
};

}  // namespace memprof::inline MEMPROF_ABI
