#include "captures.hpp"
#include "op_battery.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

namespace memprof_tests::torch_no_dispatch_op_battery {

namespace {

bool are_equal(const battery::comparison& row) { return row.real.totals == row.simulated.totals; }

std::string bytes_of(std::int64_t real, std::int64_t simulated) {
  return real == simulated ? std::to_string(real) : std::to_string(real) + " / " + std::to_string(simulated);
}

void write_table(const std::vector<battery::comparison>& all, std::ostream& out) {
  const auto count = [&](auto holds) { return std::count_if(all.begin(), all.end(), holds); };
  const auto has_equal_net = [](const battery::comparison& row) { return row.real.totals.net == row.simulated.totals.net; };
  const auto has_equal_peak = [](const battery::comparison& row) { return row.real.totals.peak == row.simulated.totals.peak; };
  out << "# Single operators, real and simulated\n\n"
         "Written by `build/torch/tests/torch/memprof_torch_tests \"[.report]\"`; `tests/torch/op_cases.hpp` has the operators. "
         "Each is run\n"
         "on the CPU with one thread, forward, and forward with its backward pass, once for real and once under\n"
         "`torch_no_dispatch`. Scalars of 8 bytes or less are left out.\n\n";
  out << "libtorch " << TORCH_VERSION << ": " << battery::all_cases().size() << " operators, " << all.size()
      << " runs. Bytes that stay: " << count(has_equal_net) << " equal. Peak: " << count(has_equal_peak)
      << " equal. Peak, bytes that stay and all that was allocated: " << count(are_equal)
      << " equal. Failed: " << count([](const battery::comparison& row) { return !row.simulated.fault.empty(); }) << ".\n\n"
      << "Where they differ, `real / simulated` in bytes:\n\n"
         "| operator | pass | stays | peak | allocated |\n|---|---|---:|---:|---:|\n";
  for (const battery::comparison& row : all) {
    if (are_equal(row)) continue;
    const auto& [real, simulated] = std::pair{row.real.totals, row.simulated.totals};
    out << "| " << row.name << " | " << (row.has_backward ? "forward, backward" : "forward") << " | "
        << bytes_of(real.net, simulated.net) << " | " << bytes_of(real.peak, simulated.peak) << " | "
        << bytes_of(real.allocated, simulated.allocated) << " |\n";
  }
}

}  // namespace

TEST_CASE("torch no_dispatch: single operators hold and peak as their kernels do") {
  const auto all = battery::compare_all();
  REQUIRE(battery::all_cases().size() >= 130);
  for (const battery::comparison& row : all) {
    INFO(row.name << (row.has_backward ? ", forward and backward" : ", forward"));
    CHECK(row.real.fault.empty());
    CHECK(row.simulated.fault.empty());
    // What other versions of oneDNN keep for a layer is estimated, and the profile says so.
    const bool is_estimate = row.name == "lstm_onednn" && !memprof::detail::has_known_onednn();
    if (!is_estimate) CHECK(are_equal(row));
  }
}

TEST_CASE("torch no_dispatch: single operators run on a claimed CUDA device") {
  auto capture = begin_no_dispatch({.device = {"cuda"}});
  for (const battery::op_case& chosen : battery::all_cases()) {
    INFO(chosen.name);
    battery::tensors inputs;
    for (const auto& shape : chosen.shapes) inputs.push_back(torch::randn(shape, torch::kCUDA).requires_grad_());
    torch::Tensor result;
    try {
      result = battery::on_device(torch::kCUDA, [&] { return chosen.run(inputs); });
      result.sum().backward();
    } catch (const std::exception& thrown) {
      FAIL_CHECK(std::string{thrown.what()}.substr(0, 400));
      continue;
    }
    CHECK(result.is_cuda());
    for (const auto& input : inputs) {
      if (input.grad().defined()) CHECK(input.grad().sizes() == input.sizes());
    }
  }
}

TEST_CASE("torch no_dispatch: writes docs/torch_op_battery.md", "[.report]") {
  std::ofstream out{MEMPROF_SOURCE_DIR "/docs/torch_op_battery.md"};
  write_table(battery::compare_all(), out);
  CHECK(out.good());
}

}  // namespace memprof_tests::torch_no_dispatch_op_battery
