#pragma once

#include <memprof/check.hpp>
#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/quantity.hpp>

#include <gtest/gtest-matchers.h>
#include <gtest/gtest.h>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Matchers of profiles for GoogleTest 1.11 or later, which this needs; EXPECT_THAT is part of GoogleMock. Without that:
/// `EXPECT_TRUE(assertion(check_peak(...)))`.
///
/// @code
/// using namespace memprof::gtest;
/// EXPECT_THAT(capture.profile(), peak_at_most({.space = "cpu", .at_most = 64_MiB}));
/// EXPECT_THAT(capture.profile(), allocates_nothing("step"));
/// @endcode

namespace memprof::inline MEMPROF_ABI {

namespace gtest {

/// A result as GoogleTest's own, whose message it prints.
[[nodiscard]] inline testing::AssertionResult assertion(const check_result& of) {
  return of.passed ? testing::AssertionSuccess() << of.message : testing::AssertionFailure() << of.message;
}

/// A limit as a matcher, which explains what it found by the message of the check.
class profile_matcher {
 public:
  using is_gtest_matcher = void;

  profile_matcher(std::string what, std::function<check_result(const profile&)> check)
      : what_{std::move(what)}, check_{std::move(check)} {}

  bool MatchAndExplain(const profile& source, testing::MatchResultListener* listener) const {  // NOLINT(*-naming): GoogleTest's
    const check_result result = check_(source);
    if (listener != nullptr) *listener << result.message;
    return result.passed;
  }
  void DescribeTo(std::ostream* out) const { *out << what_; }                     // NOLINT(*-naming): GoogleTest's
  void DescribeNegationTo(std::ostream* out) const { *out << "not: " << what_; }  // NOLINT(*-naming): GoogleTest's

 private:
  std::string what_;
  std::function<check_result(const profile&)> check_;
};

namespace detail {

/// Keeps the names of a limit, which may be temporaries, as long as the matcher.
template <class Limit>
[[nodiscard]] profile_matcher matcher_of(std::string what, const Limit& limit,
                                         check_result (*check)(const profile&, const Limit&)) {
  std::string space{limit.space};
  std::string operation;
  std::string segment;
  if constexpr (requires { limit.operation; }) operation = limit.operation;
  if constexpr (requires { limit.segment; }) segment = limit.segment;
  return {std::move(what), [=](const profile& source) {
            Limit kept = limit;
            kept.space = space;
            if constexpr (requires { kept.operation; }) kept.operation = operation;
            if constexpr (requires { kept.segment; }) kept.segment = segment;
            return check(source, kept);
          }};
}

}  // namespace detail

/// `check_peak`.
[[nodiscard]] inline profile_matcher peak_at_most(const peak_limit& limit) {
  return detail::matcher_of("has a peak of at most " + memprof::detail::short_bytes(limit.at_most), limit, check_peak);
}
/// The same for each memory space.
[[nodiscard]] inline profile_matcher peak_at_most(std::int64_t bytes) { return peak_at_most(peak_limit{.at_most = bytes}); }

/// `check_growth`.
[[nodiscard]] inline profile_matcher grows_at_most(const growth_limit& limit) {
  return detail::matcher_of("grows by at most " + memprof::detail::short_bytes(limit.at_most) + " per step", limit, check_growth);
}
/// The same for each memory space.
[[nodiscard]] inline profile_matcher grows_at_most(std::int64_t bytes_per_step) {
  return grows_at_most(growth_limit{.at_most = bytes_per_step});
}

/// `check_allocations`.
[[nodiscard]] inline profile_matcher allocates_at_most(const allocation_limit& limit) {
  return detail::matcher_of("makes at most " + memprof::detail::grouped(limit.at_most, "allocation", "allocations"), limit,
                            check_allocations);
}
/// The same for the scope of that operation, or for the whole capture.
[[nodiscard]] inline profile_matcher allocates_at_most(std::int64_t count, std::string_view operation = {}) {
  return allocates_at_most(allocation_limit{.operation = operation, .at_most = count});
}
[[nodiscard]] inline profile_matcher allocates_nothing(std::string_view operation = {}) {
  return allocates_at_most(0, operation);
}

/// `check_leftover`.
[[nodiscard]] inline profile_matcher leaves_at_most(const leftover_limit& limit) {
  return detail::matcher_of("leaves at most " + memprof::detail::short_bytes(limit.at_most) + " behind", limit, check_leftover);
}
/// All that the scope of that operation, or the whole capture, allocates is freed.
[[nodiscard]] inline profile_matcher frees_all_it_allocates(std::string_view operation = {}) {
  return leaves_at_most(leftover_limit{.operation = operation});
}

}  // namespace gtest

}  // namespace memprof::inline MEMPROF_ABI
