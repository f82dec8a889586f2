#include "judge.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Some twenty thousand calls of operators (`record_opinfo.py` writes them down), each run for real and simulated. The simulation
// shall return, allocate and free what the real kernel does, or list the call.

namespace operator_calls {
namespace {

struct tally {
  std::size_t calls = 0;
  std::size_t equal_net = 0;
  std::size_t equal_peaks = 0;
  std::size_t equal = 0;  ///< results, net and peak
};

bool is_equal(const verdict& found) { return found.has_equal_results() && found.has_equal_net() && found.has_equal_peak(); }

std::string name_in(const std::string& line) { return line.substr(0, line.find(' ')); }

/// Calls `judged(line, call, verdict)` for each call that the real kernel takes.
template <class Judged>
void judge_all(knowledge known, layout wanted, Judged judged) {
  at::set_num_threads(1);  // scratch memory of kernels may be one piece a thread
  std::ifstream in{MEMPROF_SOURCE_DIR "/tests/torch/operator_calls/calls.txt"};
  judge judging;
  for (std::string line; std::getline(in, line);) {
    std::optional<operator_call> call{operator_call{line}};
    if (wanted != layout::as_written) call = call->with(wanted);
    if (!call.has_value()) continue;
    if (const std::optional<verdict> found = judging.compare(*call, known)) judged(name_in(line), *call, *found);
  }
}

/// Operators whose kernels refuse data that is not known, though a program would have other.
const std::set<std::string>& operators_that_refuse_zeros() {
  static const std::set<std::string> names{"aten::repeat_interleave.Tensor", "aten::segment_reduce"};
  return names;
}

void check_all(knowledge known, layout wanted) {
  tally all;
  judge_all(known, wanted, [&](const std::string& name, const operator_call& call, const verdict& found) {
    ++all.calls;
    if (!found.simulated.fault.empty()) {
      INFO(call.text() << "\n" << found.simulated.fault);
      CHECK(operators_that_refuse_zeros().count(name) == 1);
      return;
    }
    all.equal_net += found.has_equal_net() ? 1 : 0;
    all.equal_peaks += found.has_equal_peak() ? 1 : 0;
    if (is_equal(found) || found.is_listed) return;
    INFO(call.text() << "\nreal      " << found.real.results << "\nsimulated " << found.simulated.results << "\nreal      peak "
                     << found.real.totals.peak << ", net " << found.real.totals.net << "\nsimulated peak "
                     << found.simulated.totals.peak << ", net " << found.simulated.totals.net << "\nby " << found.way);
    CHECK(is_equal(found));
  });
  CHECK(all.calls > 1000);
  CHECK(all.equal_net * 1000 >= all.calls * 985);
  CHECK(all.equal_peaks * 100 >= all.calls * 99);
}

}  // namespace
}  // namespace operator_calls

using operator_calls::knowledge;
using operator_calls::layout;

TEST_CASE("torch no_dispatch: calls of operators are simulated as the kernels do") {
  operator_calls::check_all(knowledge::sizes, layout::as_written);
}
TEST_CASE("torch no_dispatch: calls with transposed tensors are simulated as the kernels do") {
  operator_calls::check_all(knowledge::sizes, layout::transposed);
}
TEST_CASE("torch no_dispatch: calls with slices are simulated as the kernels do") {
  operator_calls::check_all(knowledge::sizes, layout::sliced);
}
TEST_CASE("torch no_dispatch: calls with expanded tensors are simulated as the kernels do") {
  operator_calls::check_all(knowledge::sizes, layout::expanded);
}
TEST_CASE("torch no_dispatch: calls with the channels last are simulated as the kernels do") {
  operator_calls::check_all(knowledge::sizes, layout::channels_last);
}
TEST_CASE("torch no_dispatch: calls with known integers are simulated as the kernels do") {
  operator_calls::check_all(knowledge::indices, layout::as_written);
}
TEST_CASE("torch no_dispatch: calls with known values are simulated as the kernels do") {
  operator_calls::check_all(knowledge::values, layout::as_written);
}

TEST_CASE("torch no_dispatch: writes docs/torch_operators.md", "[.report]") {
  using namespace operator_calls;
  std::map<std::string, tally> rows;
  for (const layout wanted : all_layouts) {
    judge_all(knowledge::sizes, wanted, [&](const std::string& name, const operator_call&, const verdict& found) {
      tally& row = rows[name];
      ++row.calls;
      row.equal += is_equal(found) ? 1 : 0;
    });
  }
  const auto ways = ways_of_all_operators();
  std::map<std::string, std::size_t> counts;
  for (const auto& [name, way] : ways) ++counts[way];
  std::ofstream out{MEMPROF_SOURCE_DIR "/docs/torch_operators.md"};
  out << "# How operators are simulated\n\n"
         "Written by `build/torch/tests/torch/memprof_torch_tests \"torch no_dispatch: writes docs/torch_operators.md\"`: every\n"
         "operator of libtorch "
      << TORCH_VERSION
      << " that has a kernel for the CPU, in what way its larger calls are simulated, and how many of the calls in\n"
         "`tests/torch/operator_calls/calls.txt`, as they are written, transposed, sliced, expanded and with the channels last,\n"
         "had the results, the bytes and the peak of the real kernel when nothing but sizes was known.\n\n";
  for (const auto& [way, count] : counts) out << "- " << way << ": " << count << "\n";
  out << "\n| operator | way | equal / calls |\n|---|---|---:|\n";
  for (const auto& [name, way] : ways) {
    out << "| `" << name << "` | " << way << " | ";
    if (const auto known = rows.find(name); known != rows.end()) out << known->second.equal << " / " << known->second.calls;
    out << " |\n";
  }
  CHECK(out.good());
}
