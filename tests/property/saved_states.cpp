// Whoever begins at a saved state goes on as if it had seen all events before.
#include <memprof/ledger/saved_state.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/folded_head.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <property/ledger_model_profile.hpp>
#include <property/random_sequence.hpp>
#include <property/sequence_settings.hpp>
#include <property/sequence_text.hpp>
#include <property/training_sequence.hpp>
#include <unit/trace/trace_records.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace {

using namespace memprof;
using namespace memprof::extend;
using namespace memprof::property;

/// A sequence as the records of a trace.
class recorded_sequence {
 public:
  explicit recorded_sequence(sequence made) : made_(std::move(made)) {
    info_.begin_stamp = first_stamp;
    info_.timeline_points = made_.options.timeline_points;
    info_.largest_blocks = made_.options.largest_blocks;
    info_.owners_per_segment = made_.options.owners_per_segment;
    info_.full_segments = made_.options.full_segments;
    info_.segment_names = made_.options.segment_names;
    info_.operations = made_.options.operations;
  }

  template <class Visitor>
  void define(Visitor& visitor) const {
    visitor.info(info_);
    for (label id = 1; id <= label_count + space_count; ++id) visitor.name(id, "name " + std::to_string(id));
    for (std::uint8_t id = 0; id < space_count; ++id)
      visitor.space({id, label_count + 1U + id, made_.capacities[id], made_.are_per_core[id], made_.memories[id]});
  }
  /// Steps [first, last), of which each may end a segment.
  template <class Visitor>
  void put(Visitor& visitor, std::size_t first, std::size_t last) const {
    for (; first != last; ++first) {
      event recorded = made_.steps[first].recorded;
      std::uint32_t ring = made_.steps[first].thread;
      if (made_.steps[first].is_segment_end) {
        recorded.kind = event_kind::segment_end;
        ring = detail::no_ring_id;
      }
      visitor.events(&recorded, &recorded + 1, ring);
      if (first % 60 == 11) {
        const event looked{0, 0, 0, static_cast<label>(first % 3), event_kind::checkpoint, any_space, 0};
        visitor.events(&looked, &looked + 1, detail::no_ring_id);
      }
      if (first % 50 != 7) continue;
      const event reading{recorded.stamp + 1, recorded.stamp, 0, 0, event_kind::clock_reading, any_space, 0};
      visitor.events(&reading, &reading + 1, detail::no_ring_id);
    }
  }
  [[nodiscard]] std::size_t size() const { return made_.steps.size(); }
  [[nodiscard]] const char* personality() const { return made_.personality; }

 private:
  sequence made_;
  capture_info info_;
};

[[nodiscard]] recorded_sequence sequence_number(std::uint64_t index) {
  const auto& kind = personalities[index % personalities.size()];
  return recorded_sequence{sequence_generator{kind, base_seed() + index}.make(index % 41 == 40 ? 6 : 1)};
}

/// Whether its totals are within what a saved state can hold: an exabyte or two. Sequences of impossible sizes go beyond.
[[nodiscard]] bool is_possible(const profile& made) {
  constexpr std::int64_t most = std::int64_t{1} << 60U;
  return std::all_of(made.spaces.begin(), made.spaces.end(), [](const space_profile& space) {
    return space.allocations < most && space.reserved.peak < most &&
           std::all_of(space.streams.begin(), space.streams.end(),
                       [](const stream_usage& stream) { return stream.cumulative_peak < most; });
  });
}

void put_saved_state(trace& target, trace_fold& known) {
  detail::page_array<unsigned char> saved;
  REQUIRE(known.write_saved_state(saved));
  target.saved_state(saved);
}

}  // namespace

TEST_CASE("property: a trace that begins with a saved state gives the profile of the whole") {
  std::size_t compared = 0;
  for (std::uint64_t index = 0; index < sequence_count() / 8; ++index) {
    const recorded_sequence made = sequence_number(index);
    random_numbers random{base_seed() + index};
    const std::size_t cut = random.below(made.size() + 1);
    trace_fold whole;
    made.define(whole);
    made.put(whole, 0, cut);
    trace cut_off;
    made.define(cut_off);
    const event gap{0, 0, cut, 0, event_kind::gap, any_space, 0};
    cut_off.events(&gap, &gap + 1, detail::no_ring_id);
    detail::page_array<unsigned char> saved;
    REQUIRE(whole.write_saved_state(saved));
    cut_off.saved_state(saved);
    trace_fold resumed;
    cut_off.visit(resumed);
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index << " of personality '" << made.personality()
                              << "', cut off after " << cut << " of " << made.size() << " steps");
    const profile so_far = detail::build_profile_of(whole);
    made.put(whole, cut, made.size());
    if (!is_possible(detail::build_profile_of(whole))) continue;
    ++compared;
    REQUIRE(difference(detail::build_profile_of(resumed), so_far) == "");
    made.put(resumed, cut, made.size());
    const profile expected = detail::build_profile_of(whole);
    REQUIRE(difference(detail::build_profile_of(resumed), expected) == "");
    REQUIRE(detail::build_profile_of(resumed) == expected);
    REQUIRE(resumed.events().events() == whole.events().events());
  }
  CHECK(compared > sequence_count() / 16);
}

TEST_CASE("property: who grows does not depend on whether the steps before were seen or saved") {
  std::size_t growing = 0;
  for (std::uint64_t index = 0; index < 150; ++index) {
    const recorded_sequence made{training_sequence{base_seed() + index}.make()};
    random_numbers random{base_seed() + index};
    const std::size_t cut = random.below(made.size() + 1);
    trace_fold whole;
    trace_fold resumed;
    made.define(whole);
    made.define(resumed);
    made.put(whole, 0, cut);
    detail::page_array<unsigned char> saved;
    REQUIRE(whole.write_saved_state(saved));
    REQUIRE(detail::read_saved_state(resumed.events(), saved.data(), saved.size()));
    made.put(whole, cut, made.size());
    made.put(resumed, cut, made.size());
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", training " << index << ", saved after " << cut << " of " << made.size());
    const profile expected = detail::build_profile_of(whole);
    REQUIRE(difference(detail::build_profile_of(resumed), expected) == "");
    for (const space_profile& space : expected.spaces) growing += space.growing.size();
  }
  CHECK(growing > 4);
}

TEST_CASE("property: a saved state after a gap makes up for it, and one without a gap before it changes nothing") {
  std::size_t compared = 0;
  for (std::uint64_t index = 0; index < sequence_count() / 8; ++index) {
    const recorded_sequence made = sequence_number(index);
    random_numbers random{base_seed() + index};
    trace_fold whole;
    trace with_gaps;
    made.define(whole);
    made.define(with_gaps);
    std::size_t kept = 0;
    for (std::size_t at = 0; at < made.size();) {
      const std::size_t next = at + 1 + random.below(made.size() - at);
      made.put(whole, at, next);
      if (random.chance(50)) {
        made.put(with_gaps, at, next);
        kept += next - at;
      } else {
        const event gap{0, 0, next - at, 0, event_kind::gap, any_space, 0};
        with_gaps.events(&gap, &gap + 1, detail::no_ring_id);
      }
      put_saved_state(with_gaps, whole);
      at = next;
    }
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index << " of personality '" << made.personality() << "', "
                              << kept << " of " << made.size() << " steps kept");
    const profile expected = detail::build_profile_of(whole);
    if (!is_possible(expected)) continue;
    ++compared;
    REQUIRE(difference(profile_of(with_gaps), expected) == "");
    REQUIRE(profile_of(with_gaps) == expected);
  }
  CHECK(compared > sequence_count() / 16);
}

TEST_CASE("property: a trace that keeps its newest events gives the profile of all of them") {
  constexpr std::size_t chunk = 128;
  std::size_t compared = 0;
  std::size_t dropped = 0;
  for (std::uint64_t index = 0; index < sequence_count() / 8; ++index) {
    const recorded_sequence made = sequence_number(index);
    trace_fold whole;
    trace all;
    trace limited;
    const std::size_t limit = chunk * (1 + index % 7);
    limited.keep_newest(limit, chunk, detail::folded_head::make());
    made.define(whole);
    made.define(all);
    made.define(limited);
    made.put(whole, 0, made.size());
    made.put(all, 0, made.size());
    made.put(limited, 0, made.size());
    INFO("MEMPROF_TEST_SEED=" << base_seed() << ", sequence " << index << " of personality '" << made.personality() << "', limit "
                              << limit);
    REQUIRE(limited.size() + limited.dropped() == all.size());
    REQUIRE(limited.left_out() == 0);
    const profile expected = detail::build_profile_of(whole);
    if (!is_possible(expected)) continue;
    ++compared;
    dropped += limited.dropped() != 0 ? 1 : 0;
    REQUIRE(difference(profile_of(limited), expected) == "");
    REQUIRE(profile_of(limited) == expected);
    memprof_tests::trace_records everything;
    all.visit(everything);
    memprof_tests::trace_records kept;
    limited.visit(kept);
    const std::size_t gaps = limited.dropped() != 0 ? 1 : 0;
    REQUIRE(kept.all.size() == limited.size() + gaps);
    REQUIRE(std::equal(kept.all.begin() + static_cast<std::ptrdiff_t>(gaps), kept.all.end(),
                       everything.all.end() - static_cast<std::ptrdiff_t>(limited.size())));
  }
  CHECK(compared > sequence_count() / 16);
  CHECK(dropped > sequence_count() / 32);
}
