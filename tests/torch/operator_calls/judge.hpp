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

/// How far a call goes.
enum class extent : std::uint8_t {
  forward,
  training  ///< and a backward pass from the sum of its results, into all tensors of numbers that it only reads
};
[[nodiscard]] const char* name_of(extent one);

struct outcome {
  std::string fault;    ///< what was thrown; empty: nothing was
  std::string results;  ///< types, sizes, strides, and what they share with arguments
  std::string shapes;   ///< types and sizes alone
  std::vector<at::Tensor> tensors;
  recorded::changes changes;
  recorded::totals totals;        ///< `net` with the results alive
  std::int64_t result_bytes = 0;  ///< of the storages of new results
  bool is_dense = true;           ///< all results are
};

struct verdict {
  outcome real;
  outcome simulated;
  std::string way;             ///< how the simulation did it
  bool is_listed = false;      ///< the profile lists an estimate, of the operator or of one within, or a value that was not known
  bool hangs_on_data = false;  ///< the profile says so of a size, or lists a read of a value that was not known
  bool has_equal_values = true;  ///< where values are known

  [[nodiscard]] bool has_equal_results() const { return real.results == simulated.results && simulated.fault.empty(); }
  [[nodiscard]] bool has_equal_shapes() const { return real.shapes == simulated.shapes && simulated.fault.empty(); }
  [[nodiscard]] bool has_equal_net() const { return real.totals.net == simulated.totals.net; }
  [[nodiscard]] bool has_equal_peak() const { return real.totals.peak == simulated.totals.peak; }
  /// The sum of all allocations, scratch memory among them.
  [[nodiscard]] bool has_equal_sum() const { return real.totals.allocated == simulated.totals.allocated; }
};

/// Judges calls until the end of the scope. There is at most one.
class judge {
 public:
  judge();
  judge(const judge&) = delete;
  judge& operator=(const judge&) = delete;
  ~judge();

  /// None if the real kernel refuses the call, or has no backward pass where one is wanted.
  [[nodiscard]] std::optional<verdict> compare(const operator_call& call, knowledge known, extent wanted = extent::forward);

  /// The same with tensors of fake CUDA, which the real call has on the CPU: what both return can be compared, and no memory.
  [[nodiscard]] std::optional<verdict> compare_on_cuda(const operator_call& call);

 private:
  struct session;
  std::unique_ptr<session> session_;
};

/// How an operator is simulated.
struct operator_state {
  std::string name;
  std::string on_cpu;   ///< as in "rule"
  std::string on_cuda;  ///< the same

  auto operator<=>(const operator_state&) const = default;
};
/// Every operator of libtorch that has a kernel of the CPU, or one that is composed of others; in order.
[[nodiscard]] std::vector<operator_state> states_of_all_operators();

}  // namespace operator_calls
