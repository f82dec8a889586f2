#include "categories.hpp"

#include <ATen/Parallel.h>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Some twenty thousand calls of operators (`record_opinfo.py` and `complete_calls.py` write them down), each run for real and
// simulated. The simulation shall return, allocate and free what the real kernel does, or list the call.

namespace operator_calls {
namespace {

std::string difference(const operator_call& call, const verdict& found) {
  return c10::str(call.text(), "\nreal      ", found.real.results, "\nsimulated ", found.simulated.results, found.simulated.fault,
                  "\nreal      peak ", found.real.totals.peak, ", net ", found.real.totals.net, "\nsimulated peak ",
                  found.simulated.totals.peak, ", net ", found.simulated.totals.net, "\nsums ", found.real.totals.allocated, " ",
                  found.simulated.totals.allocated, "\nby ", found.way);
}

std::string text_of(const recorded::changes& changes) {
  std::string text;
  for (const recorded::change one : changes) text += c10::str(" ", one);
  return text;
}

void check_all(const category& wanted, std::size_t least_calls = 250) {
  tally all;
  judge_all(wanted, [&](const written_call& written, const operator_call& call, const verdict& found) {
    all.add(found);
    const bool is_right = found.simulated.fault.empty() && (is_equal(found) || found.is_listed);
    // Only the sizes of results that hang on data which is not known, and clones that share their bytes for a while.
    const bool may_keep_other_bytes =
        (wanted.known != knowledge::values && found.hangs_on_data) || written.name == "aten::_lazy_clone";
    const bool keeps_right_bytes = found.has_equal_net() || may_keep_other_bytes;
    if (is_right && keeps_right_bytes) return;
    INFO(difference(call, found));
    CHECK(is_right);
    CHECK(keeps_right_bytes);
  });
  CHECK(all.calls > least_calls);
  CHECK(all.refused == 0);
  CHECK(all.silent_errors == 0);
  CHECK(all.equal_peaks * 100 >= all.calls * 99);
}

/// Calls of one operator with one type that are judged, unless `./dev test --long` takes all.
std::size_t max_calls(std::size_t usual) {
  const char* const wanted = std::getenv("MEMPROF_TEST_CALLS");
  return wanted == nullptr ? usual : static_cast<std::size_t>(std::atoi(wanted));
}

/// The same of those that are judged again with other strides or more values.
std::size_t max_calls_again() { return max_calls(2); }

void check_again(category wanted) {
  wanted.max_of_a_type = max_calls_again();
  check_all(wanted);
}

}  // namespace
}  // namespace operator_calls

using operator_calls::extent;
using operator_calls::knowledge;
using operator_calls::layout;

TEST_CASE("torch no_dispatch: calls of operators are simulated as the kernels do") {
  operator_calls::check_all({.max_of_a_type = operator_calls::max_calls(4)});
}
TEST_CASE("torch no_dispatch: calls with transposed tensors are simulated as the kernels do") {
  operator_calls::check_again({.laid_out = layout::transposed});
}
TEST_CASE("torch no_dispatch: calls with slices are simulated as the kernels do") {
  operator_calls::check_again({.laid_out = layout::sliced});
}
TEST_CASE("torch no_dispatch: calls with expanded tensors are simulated as the kernels do") {
  operator_calls::check_again({.laid_out = layout::expanded});
}
TEST_CASE("torch no_dispatch: calls with the channels last are simulated as the kernels do") {
  operator_calls::check_again({.laid_out = layout::channels_last});
}
TEST_CASE("torch no_dispatch: calls with known integers are simulated as the kernels do") {
  operator_calls::check_again({.known = knowledge::indices});
}
TEST_CASE("torch no_dispatch: calls with known values are simulated as the kernels do") {
  operator_calls::check_again({.known = knowledge::values});
}
TEST_CASE("torch no_dispatch: calls and their backward passes are simulated as the kernels do") {
  for (const layout laid_out : operator_calls::all_layouts) {
    INFO(name_of(laid_out));
    operator_calls::check_all({laid_out, knowledge::indices, extent::training, 1});
  }
}

TEST_CASE("torch no_dispatch: calls with tensors of different layouts are simulated as the kernels do") {
  using namespace operator_calls;
  const std::size_t most = std::min<std::size_t>(max_calls_again(), 8);  // there are eight mixtures
  const auto check = [](const category& wanted) {
    INFO(name_of(wanted.goes) << ", " << name_of(wanted.ones) << ", " << name_of(wanted.laid_out));
    const bool has_few = wanted.laid_out == layout::channels_last;  // images of one tensor and more
    check_all(wanted, has_few ? 20 : 250);
  };
  for_each_mixture(extent::forward, most, check);
  for_each_mixture(extent::training, 1, check);
}

TEST_CASE("torch no_dispatch: prints the calls that differ", "[.report]") {
  using namespace operator_calls;
  const auto print = [](const category& wanted) {
    judge_all(wanted, [&](const written_call&, const operator_call& call, const verdict& found) {
      if (is_equal(found)) return;
      std::cout << (found.is_listed ? "listed: " : "silent: ") << name_of(wanted.goes) << ": " << difference(call, found)
                << "\nreal     " << text_of(found.real.changes) << "\nsimulated" << text_of(found.simulated.changes) << "\n\n";
    });
  };
  for (const extent goes : {extent::forward, extent::training}) {
    const bool trains = goes == extent::training;
    for (const layout laid_out : all_layouts) {
      print({laid_out, trains ? knowledge::indices : knowledge::sizes, goes, trains ? 1 : every_call});
    }
    for_each_mixture(goes, trains ? 1 : every_call, print);
  }
}

TEST_CASE("torch no_dispatch: every operator runs on fake CUDA, with results of the real types and sizes") {
  using namespace operator_calls;
  at::set_num_threads(1);
  std::set<std::string> done;
  judge judging;
  // One call each, of single precision if there is one: of 16-bit numbers CUDA's kernels return statistics in single precision.
  for (const bool is_any : {false, true}) {
    for (const written_call& written : all_calls()) {
      if (done.count(written.name) != 0 || reads_lengths(written.name) || (!is_any && written.dtype != "f32")) continue;
      const operator_call call{written.line};
      const std::optional<verdict> found = judging.compare_on_cuda(call);
      if (!found.has_value() || !found->real.is_dense) continue;
      done.insert(written.name);
      if (found->simulated.fault.empty() && found->hangs_on_data) continue;
      if (written.name == "aten::log_sigmoid_forward") continue;  // its second result is what the CPU's backward pass needs alone
      if (written.name.find("embedding_bag") != std::string::npos) continue;  // on CUDA it also returns the bag of each index
      const bool is_right = found->has_equal_shapes() && (found->real.result_bytes == found->simulated.result_bytes ||
                                                          found->real.results != found->simulated.results);
      INFO(difference(call, *found));
      CHECK(is_right);
    }
  }
  CHECK(done.size() > 2000);
}

TEST_CASE("torch no_dispatch: operators that were once wrong are simulated as the kernels do") {
  using namespace operator_calls;
  std::map<std::string, tally> found_of{
      {"aten::_ctc_loss", {}},
      {"aten::_embedding_bag", {}},
      {"aten::_fft_c2c", {}},
      {"aten::_fft_c2r", {}},
      {"aten::_fft_r2c", {}},
      {"aten::_grouped_mm", {}},
      {"aten::_pack_padded_sequence", {}},
      {"aten::_pdist_forward", {}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", {}},
      {"aten::avg_pool3d", {}},
      {"aten::avg_pool3d_backward", {}},
      {"aten::binary_cross_entropy", {}},
      {"aten::bincount", {}},
      {"aten::complex.out", {}},
      {"aten::cross_entropy_loss", {}},
      {"aten::ctc_loss.Tensor", {}},
      {"aten::histc", {}},
      {"aten::linalg_eig", {}},
      {"aten::linalg_lstsq", {}},
      {"aten::linalg_solve_triangular", {}},
      {"aten::max_pool2d_with_indices", {}},
      {"aten::max_pool3d_with_indices", {}},
      {"aten::max_unpool2d", {}},
      {"aten::multi_margin_loss", {}},
      {"aten::multinomial", {}},
      {"aten::native_batch_norm_backward", {}},
      {"aten::polar.out", {}},
      {"aten::reflection_pad2d", {}},
      {"aten::repeat_interleave.Tensor", {}},
      {"aten::searchsorted.Tensor", {}},
      {"aten::take", {}},
      {"aten::tril_indices", {}},
      {"aten::upsample_bilinear2d_backward", {}},
      {"aten::upsample_nearest2d_backward", {}},
  };
  at::set_num_threads(1);
  judge judging;
  for (const written_call& written : all_calls()) {
    const auto one = found_of.find(written.name);
    if (one == found_of.end() || one->second.calls >= 12) continue;
    for (const extent goes : {extent::forward, extent::training}) {
      const operator_call call{written.line};
      const std::optional<verdict> found = judging.compare(call, knowledge::indices, goes);
      if (!found.has_value()) continue;
      one->second.add(*found);
      INFO(difference(call, *found));
      CHECK((is_equal(*found) || found->is_listed));
    }
  }
  for (const auto& [name, counts] : found_of) {
    INFO(name);
    CHECK(counts.calls > 0);
    CHECK(counts.refused == 0);
  }
}
