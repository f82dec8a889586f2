#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/saved_state.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/trace/state_bytes.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof_tests::ledger_saved_state {

using namespace memprof;
using namespace memprof::extend;

namespace {

profile profile_of(ledger& events) {
  const detail::label_table labels;
  const label spaces[any_space + 1] = {};
  return detail::build_profile(events, {labels, spaces, events.clock(), true});
}

/// The state as an earlier version wrote it: with its revision, and with no section after `last`.
std::vector<unsigned char> as_of_revision(const detail::page_array<unsigned char>& saved, unsigned char revision,
                                          detail::state_section last) {
  std::vector<unsigned char> earlier{revision};
  for (std::size_t at = 1; at < saved.size();) {
    std::size_t size = 5;
    for (std::size_t byte = 0; byte < 4; ++byte) size += std::size_t{saved.data()[at + 1 + byte]} << (8 * byte);
    if (saved.data()[at] <= static_cast<unsigned char>(last)) {
      earlier.insert(earlier.end(), saved.data() + at, saved.data() + at + size);
    }
    at += size;
  }
  return earlier;
}

}  // namespace

TEST_CASE("saved state: one of an earlier revision, which lacks later sections, is read") {
  using detail::state_section;
  ledger events;
  constexpr std::uint32_t ring = 1;
  for (std::uint64_t number = 0; number < 40; ++number) {
    const event made[] = {{0, 0x1000 + 64 * number, 64 + number, 0, event_kind::allocate, 0, 0},
                          {0, 0x1000 + 64 * (number / 2), 0, 0, event_kind::deallocate, 0, 0}};
    events.apply(made, made + (number % 3 == 0 ? 2 : 1), ring);
  }
  detail::page_array<unsigned char> saved;
  REQUIRE(detail::write_saved_state(events, saved));
  REQUIRE(saved.data()[0] == 4);
  const profile expected = profile_of(events);
  REQUIRE(expected.spaces.size() == 1);
  REQUIRE(expected.spaces[0].cumulative_current > 0);

  for (const auto& [revision, last] :
       {std::pair{1, state_section::memories}, std::pair{2, state_section::step_ends}, std::pair{3, state_section::inferred}}) {
    CAPTURE(revision);
    const std::vector<unsigned char> earlier = as_of_revision(saved, static_cast<unsigned char>(revision), last);
    REQUIRE(earlier.size() < saved.size());
    ledger copy;
    REQUIRE(detail::read_saved_state(copy, earlier.data(), earlier.size()));
    CHECK(profile_of(copy).spaces == expected.spaces);
    // Of the present revision, the same bytes lack a section.
    std::vector<unsigned char> claimed = earlier;
    claimed[0] = saved.data()[0];
    ledger other;
    CHECK_FALSE(detail::read_saved_state(other, claimed.data(), claimed.size()));
  }
}

}  // namespace memprof_tests::ledger_saved_state
