// Each matcher of <memprof/check_gtest.hpp>, where it passes and where it fails.
#include <memprof/check_gtest.hpp>
#include <memprof/memprof.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <list>
#include <vector>

namespace {

using namespace memprof::gtest;
using namespace memprof::literals;
using testing::Not;

using buffer = std::vector<char, memprof::allocator<char>>;

/// 256 bytes of log_metrics more in each of ten steps, and 1000 of forward that are freed.
const memprof::profile& leaking() {
  static const memprof::profile made = [] {
    auto capture = memprof::begin_capture();
    std::list<buffer> kept;
    for (int step = 0; step < 10; ++step) {
      {
        const auto scope = memprof::track_operation<"forward">();
        const buffer activations(1000);
      }
      {
        const auto scope = memprof::track_operation<"log_metrics">();
        kept.emplace_back(256);
      }
      memprof::snapshot("STEP");
    }
    capture.end();
    return capture.profile();
  }();
  return made;
}

TEST(matchers, that_pass) {
  EXPECT_THAT(leaking(), peak_at_most(9 * 256 + 1000));
  EXPECT_THAT(leaking(), peak_at_most({.space = "cpu", .operation = "forward", .at_most = 1000}));
  EXPECT_THAT(leaking(), grows_at_most(256));
  EXPECT_THAT(leaking(), allocates_at_most(20));
  EXPECT_THAT(leaking(), allocates_at_most(10, "forward"));
  EXPECT_THAT(leaking(), frees_all_it_allocates("forward"));
  EXPECT_THAT(leaking(), leaves_at_most({.at_most = 10 * 256}));
  EXPECT_THAT(leaking(), Not(allocates_nothing("forward")));
  EXPECT_TRUE(assertion(memprof::check_peak(leaking(), {.at_most = 4_KiB})));
}

TEST(matchers, that_fail) {
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), peak_at_most(9 * 256 + 999)),
                          "is 1 B over 3.23 KiB: log_metrics holds 2.25 KiB, forward holds 1000 B");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), peak_at_most(1)), "has a peak of at most 1 B");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), grows_at_most(255)),
                          "cpu grows by 256 B per step, most of it by log_metrics, over 255 B");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), allocates_nothing()), "20 allocations, at most 0 allowed");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), allocates_at_most(9, "forward")), "10 allocations in operation forward");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), frees_all_it_allocates()), "what is live at the end in cpu 2.50 KiB");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(leaking(), frees_all_it_allocates("log_metrics")), "what operation log_metrics left");
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(assertion(memprof::check_peak(leaking(), {.at_most = 3_KiB}))), "over 3.00 KiB");
}

}  // namespace
