#include <memprof/toolkit/estimate/fit_text.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::report_fit_text {

using memprof::fit_sentence;

TEST_CASE("fit text: the answer is a sentence that begins with yes or no") {
  CHECK(fit_sentence({.batch_size = 4, .seq_len = 1024, .fits = true, .fits_recomputed = true}, "gpu-80gb") ==
        "Yes: a step of B=4, T=1024 fits on gpu-80gb with all activations kept.");
  CHECK(fit_sentence({.batch_size = 1, .seq_len = 4096, .fits = false, .fits_recomputed = true}, "80GB") ==
        "Yes, with blocks recomputed: a step of B=1, T=4096 fits on 80GB; with all activations kept it does not.");
  CHECK(fit_sentence({.batch_size = 64, .seq_len = 8, .fits = false, .fits_recomputed = false}, "1GB") ==
        "No: a step of B=64, T=8 does not fit on 1GB, even with blocks recomputed.");
}

}  // namespace memprof_tests::report_fit_text
