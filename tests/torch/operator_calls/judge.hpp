#pragma once

#include "operator_call.hpp"

#include "../recorded_events.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// @file
/// One call, run for real and simulated, with what both allocate and return.

namespace operator_calls {

/// What the simulated run knows of the arguments.
enum class knowledge : std::uint8_t {
  sizes,    ///< nothing else, as of activations
  indices,  ///< the values of integers
  values    ///< all values
};
[[nodiscard]] const char* name_of(knowledge one);

struct outcome {
  std::string fault;    ///< what was thrown; empty: nothing was
  std::string results;  ///< types, sizes, strides, and what they share with arguments
  std::vector<at::Tensor> tensors;
  recorded::changes changes;
  recorded::totals totals;  ///< `net` with the results alive
};

struct verdict {
  outcome real;
  outcome simulated;
  std::string way;         ///< how the simulation did it
  bool is_listed = false;  ///< the profile lists an estimate, of the operator or of one within, or a value that was not known
  bool has_equal_values = true;  ///< where values are known

  [[nodiscard]] bool has_equal_results() const { return real.results == simulated.results && simulated.fault.empty(); }
  [[nodiscard]] bool has_equal_net() const { return real.totals.net == simulated.totals.net; }
  [[nodiscard]] bool has_equal_peak() const { return real.totals.peak == simulated.totals.peak; }
  [[nodiscard]] bool has_equal_memory() const { return real.changes == simulated.changes; }
};

/// Judges calls until the end of the scope. There is at most one.
class judge {
 public:
  judge();
  judge(const judge&) = delete;
  judge& operator=(const judge&) = delete;
  ~judge();

  /// None if the real kernel refuses the call.
  [[nodiscard]] std::optional<verdict> compare(const operator_call& call, knowledge known);

 private:
  struct session;
  std::unique_ptr<session> session_;
};

/// Every operator of libtorch that has a kernel of the CPU, and how it is simulated, as in "rule".
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ways_of_all_operators();

}  // namespace operator_calls
