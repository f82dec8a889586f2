#include <memprof/profile/profile.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

namespace memprof_tests::profile_profile {

namespace {

memprof::profile two_spaces() {
  memprof::profile result;
  result.spaces.resize(2);
  result.spaces[0].name = "cpu";
  result.spaces[1].name = "cuda:0";
  result.spaces[1].cumulative_peak = 5;
  result.operations = {{"a", "a", -1, 1, {}}, {"a/b", "b", 0, 2, {}}};
  return result;
}

}  // namespace

TEST_CASE("profile: spaces and operations are found by name") {
  const memprof::profile profile = two_spaces();
  CHECK(profile.space("cuda:0").cumulative_peak == 5);
  CHECK(profile.find_space("cpu") == &profile.spaces[0]);
  CHECK(profile.find_space("cp") == nullptr);
  CHECK(profile.find_operation("a/b") == &profile.operations[1]);
  CHECK(profile.find_operation("b") == nullptr);
}

TEST_CASE("profile: asking for a space that is not there names those that are") {
  CHECK_THROWS_MATCHES(two_spaces().space("dram"), memprof::error,
                       Catch::Matchers::Message("the profile has no memory space 'dram'; it has 'cpu', 'cuda:0'"));
  CHECK_THROWS_MATCHES(
      memprof::profile{}.space("cpu"), memprof::error,
      Catch::Matchers::Message("the profile has no memory space 'cpu'; it has none: no allocation was recorded"));
}

TEST_CASE("profile: the names of run modes") {
  CHECK(to_string(memprof::run_mode::normal) == "normal");
  CHECK(to_string(memprof::run_mode::no_dispatch) == "no_dispatch");
}

}  // namespace memprof_tests::profile_profile
