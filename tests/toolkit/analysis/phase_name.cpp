#include <memprof/toolkit/analysis/phase_name.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::analysis_phase_name {

using memprof::is_occurrence;

static_assert(is_occurrence("FORWARD_PASS", "FORWARD_PASS"));
static_assert(is_occurrence("FORWARD_PASS_micro_0", "FORWARD_PASS"));
static_assert(is_occurrence("FORWARD_PASS_12", "FORWARD_PASS"));
static_assert(is_occurrence("FORWARD_PASS/2", "FORWARD_PASS"));
static_assert(is_occurrence("FORWARD_PASS__000123", "FORWARD_PASS"));
static_assert(!is_occurrence("FORWARD_PASS_DONE", "FORWARD_PASS"));
static_assert(!is_occurrence("FORWARD_PASSES1", "FORWARD_PASS"));
static_assert(!is_occurrence("FORWARD_PASS2", "FORWARD_PASS"));
static_assert(!is_occurrence("MY_FORWARD_PASS", "FORWARD_PASS"));
static_assert(!is_occurrence("FORWARD", "FORWARD_PASS"));

TEST_CASE("phase name: numbers after a separator are occurrences of a phase, other endings other phases") { SUCCEED(); }

}  // namespace memprof_tests::analysis_phase_name
