#pragma once

#include <memprof/check.hpp>
#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>

#include <catch2/matchers/catch_matchers.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Matchers of profiles for Catch2 3, which this needs.
///
/// @code
/// using namespace memprof::catch2;
/// REQUIRE_THAT(capture.profile(), peak_at_most({.space = "cpu", .at_most = 64_MiB}));
/// REQUIRE_THAT(capture.profile(), allocates_nothing("step") && frees_all_it_allocates());
/// @endcode

namespace memprof::inline MEMPROF_ABI::catch2 {

/// A limit as a matcher. Its description is the message of the check.
class profile_matcher final : public Catch::Matchers::MatcherBase<profile> {
 public:
  explicit profile_matcher(std::function<check_result(const profile&)> check) : check_{std::move(check)} {}

  [[nodiscard]] bool match(const profile& source) const override {
    check_result result = check_(source);
    description_ = std::move(result.message);
    return result.passed;
  }
  [[nodiscard]] std::string describe() const override { return description_; }

 private:
  std::function<check_result(const profile&)> check_;
  mutable std::string description_;  ///< of the last match
};

namespace detail {

/// Keeps the names of a limit, which may be temporaries, as long as the matcher.
template <class Limit>
[[nodiscard]] profile_matcher matcher_of(const Limit& limit, check_result (*check)(const profile&, const Limit&)) {
  const auto keep = [](std::string_view name) { return std::string{name}; };
  std::string space = keep(limit.space);
  std::string operation;
  std::string segment;
  if constexpr (requires { limit.operation; }) operation = keep(limit.operation);
  if constexpr (requires { limit.segment; }) segment = keep(limit.segment);
  return profile_matcher{[=](const profile& source) {
    Limit kept = limit;
    kept.space = space;
    if constexpr (requires { kept.operation; }) kept.operation = operation;
    if constexpr (requires { kept.segment; }) kept.segment = segment;
    return check(source, kept);
  }};
}

}  // namespace detail

/// `check_peak`.
[[nodiscard]] inline profile_matcher peak_at_most(const peak_limit& limit) { return detail::matcher_of(limit, check_peak); }
/// The same for each memory space.
[[nodiscard]] inline profile_matcher peak_at_most(std::int64_t bytes) { return peak_at_most(peak_limit{.at_most = bytes}); }

/// `check_growth`.
[[nodiscard]] inline profile_matcher grows_at_most(const growth_limit& limit) { return detail::matcher_of(limit, check_growth); }
/// The same for each memory space.
[[nodiscard]] inline profile_matcher grows_at_most(std::int64_t bytes_per_step) {
  return grows_at_most(growth_limit{.at_most = bytes_per_step});
}

/// `check_allocations`.
[[nodiscard]] inline profile_matcher allocates_at_most(const allocation_limit& limit) {
  return detail::matcher_of(limit, check_allocations);
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
  return detail::matcher_of(limit, check_leftover);
}
/// All that the scope of that operation, or the whole capture, allocates is freed.
[[nodiscard]] inline profile_matcher frees_all_it_allocates(std::string_view operation = {}) {
  return leaves_at_most(leftover_limit{.operation = operation});
}

}  // namespace memprof::inline MEMPROF_ABI::catch2
