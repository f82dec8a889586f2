// A program with the backends for CUDA starts where there is no CUDA, and says so.
#include <stderr_of.hpp>

#include <memprof/backend/cuda.hpp>
#include <memprof/backend/cuda_no_dispatch.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/missing_source.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

#include <dlfcn.h>

TEST_CASE("cuda: a program starts without CUDA, goes on, and says once that there is none") {
  if (::dlopen("libcuda.so.1", RTLD_NOW) != nullptr) SKIP("this machine has CUDA's driver");
  const std::string said = memprof_tests::stderr_of([] {
    for (int times = 0; times < 2; ++times) {
      auto capture = memprof::begin_capture<memprof::cuda_backend>();
      const std::vector<char, memprof::allocator<char>> weights(1000);
      capture.end();
      const memprof::profile profile = capture.profile();
      CHECK(profile.space("cpu").cumulative_peak == 1000);
      CHECK(profile.exact);
      const auto missing = memprof::rows_of<memprof::missing_source>(profile.facts);
      REQUIRE(missing.size() == 1);
      CHECK(missing[0].source == "CUDA");
      CHECK_THAT(missing[0].reason, Catch::Matchers::StartsWith("there is no CUDA: libcuda.so.1"));
    }
  });
  CHECK(said ==
        "memprof: CUDA is not captured: there is no CUDA: libcuda.so.1, which NVIDIA's driver installs, cannot be loaded\n");
}

TEST_CASE("cuda without dispatch: a program in which nothing replaces CUDA's runtime gets an error that says how to") {
  CHECK_THROWS_WITH(memprof::begin_capture<memprof::cuda_no_dispatch>(),
                    Catch::Matchers::StartsWith("cuda_no_dispatch: the program has CUDA's own runtime") &&
                        Catch::Matchers::ContainsSubstring("<memprof/backend/cuda_no_dispatch_runtime.hpp>"));
  CHECK(memprof::dispatching());
  auto capture = memprof::begin_capture();  // none was left
}
