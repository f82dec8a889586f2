// Spaces that share one memory: the most that they hold together, and whose that was.
#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/joint_peaks.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace memprof_tests::profile_joint_peaks {

using memprof::host_memory_name;
using memprof::owned_bytes;

namespace {

[[nodiscard]] std::vector<std::string> names_of(const memprof::vector<memprof::memory_profile>& memories) {
  std::vector<std::string> names;
  for (const memprof::memory_profile& memory : memories) names.push_back(memory.name);
  return names;
}

}  // namespace

TEST_CASE("joint peak: resources on the host share its memory, and its peak is at none of theirs") {
  memprof::memory_resource weights{"weights"};
  memprof::memory_resource activations{"activations"};
  memprof::memory_resource staging{"staging"};
  memprof::memory_resource device{"cuda:0"};
  memprof::memory_resource other_device{"pool", std::pmr::new_delete_resource(), "cuda:0 memory"};
  auto capture = memprof::begin_capture();
  void* const large = weights.allocate(1000);
  void* const on_device = device.allocate(5000);
  void* const in_pool = other_device.allocate(7000);
  weights.deallocate(large, 1000);  // the peak of weights: 1000
  void* const kept = weights.allocate(600);
  memprof::snapshot("LOAD");
  {
    auto scope = memprof::track_operation<"forward">(memprof::category::activation);
    void* const first = activations.allocate(700);
    activations.deallocate(first, 700);  // the joint peak: 600 + 700
    void* const second = activations.allocate(650);
    weights.deallocate(kept, 600);
    void* const third = activations.allocate(200);  // the peak of activations: 850
    activations.deallocate(second, 650);
    activations.deallocate(third, 200);
  }
  memprof::snapshot("FORWARD");
  staging.deallocate(staging.allocate(10), 10);
  device.deallocate(on_device, 5000);
  other_device.deallocate(in_pool, 7000);
  capture.end();
  const memprof::profile profile = capture.profile();
  REQUIRE(names_of(profile.memories) == std::vector<std::string>{"host"});
  const memprof::memory_profile& host = profile.memories[0];
  CHECK(profile.space("weights").cumulative_peak == 1000);
  CHECK(profile.space("activations").cumulative_peak == 850);
  CHECK(host.cumulative_peak == 1300);
  CHECK(host.cumulative_current == 0);
  CHECK(host.peak_segment == 1);
  CHECK(host.peak_space == "activations");
  CHECK(host.peak_operation == "forward");
  CHECK(host.spaces == memprof::vector<owned_bytes>{{"activations", 700, 1}, {"weights", 600, 1}, {"staging", 0, 0}});
  CHECK(host.live_at_peak.bytes == 1300);
  CHECK(host.live_at_peak.by_operation == memprof::vector<owned_bytes>{{"forward", 700, 1}, {"", 600, 1}});
  CHECK(host.live_at_peak.by_category == memprof::vector<owned_bytes>{{"activation", 700, 1}, {"other", 600, 1}});
  REQUIRE(host.live_at_peak.largest_blocks.size() == 2);
  CHECK(host.live_at_peak.largest_blocks[0].bytes == 700);
  const std::string text = memprof::to_text(profile, {.columns = 200});
  CHECK(text.find("\nTogether  1.27 KiB (1,300 B) of host at ") != std::string::npos);
  CHECK(text.find(" in FORWARD, operation forward: activations 700 B, weights 600 B, staging 0 B\n") != std::string::npos);
}

TEST_CASE("joint peak: one that rises where a space only equals its own peak leaves that one alone") {
  memprof::memory_resource weights{"weights"};
  memprof::memory_resource activations{"activations"};
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"first">();
    weights.deallocate(weights.allocate(100), 100);  // the peak of weights, and the joint peak
  }
  void* const activation = activations.allocate(50);
  void* weight = nullptr;
  {
    auto scope = memprof::track_operation<"second">();
    weight = weights.allocate(100);  // the joint peak: 50 + 100
  }
  capture.end();
  const memprof::profile profile = capture.profile();
  weights.deallocate(weight, 100);
  activations.deallocate(activation, 50);
  CHECK(profile.space("weights").cumulative_peak == 100);
  CHECK(profile.space("weights").live_at_peak.by_operation == memprof::vector<owned_bytes>{{"first", 100, 1}});
  REQUIRE(profile.memories.size() == 1);
  CHECK(profile.memories[0].cumulative_peak == 150);
  CHECK(profile.memories[0].live_at_peak.by_operation == memprof::vector<owned_bytes>{{"second", 100, 1}, {"", 50, 1}});
}

TEST_CASE("joint peak: spaces of a described device, and those with a memory to themselves, share nothing") {
  memprof::device_description device;
  device.name = "small";
  device.add({.name = "joint_dram", .capacity = 1 << 20});
  memprof::memory_resource dram{"joint_dram"};
  memprof::memory_resource apart{"joint_apart", std::pmr::new_delete_resource(), "joint_apart"};
  memprof::memory_resource host{"joint_host"};
  const memprof::memory_space own{"joint_own"};
  memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture({.device = device});
  for (memprof::memory_resource* from : {&dram, &apart, &host}) from->deallocate(from->allocate(100), 100);
  sink.allocate(own, memprof::extend::block_address{16}, 100);
  capture.end();
  CHECK(capture.profile().memories.empty());
  CHECK(memprof::to_text(capture.profile()).find("Together") == std::string::npos);
}

TEST_CASE("joint peak: a trace says which spaces share a memory, the host's first, and a lone peak is that of its space") {
  memprof::trace made;
  memprof::extend::trace_writer writer{made};
  const memprof::extend::space_id bank = writer.space("bank 0", 0, false, "banks");
  const memprof::extend::space_id cpu = writer.space("cpu");
  const memprof::extend::space_id other_bank = writer.space("bank 1", 0, false, "banks");
  const memprof::extend::space_id pinned = writer.space("pinned", 0, false, host_memory_name);
  writer.allocate(bank, {100}, 40);
  writer.allocate(cpu, {200}, 500, memprof::category::parameter);
  writer.deallocate(cpu, {200});
  writer.end_segment("FIRST");
  writer.allocate(other_bank, {300}, 2);
  writer.allocate(pinned, {400}, 499);
  writer.finish();
  const memprof::profile profile = memprof::profile_of(made);
  REQUIRE(names_of(profile.memories) == std::vector<std::string>{"host", "banks"});
  const memprof::memory_profile& host = profile.memories[0];
  CHECK(host.cumulative_peak == 500);  // reached before there was another space
  CHECK(host.cumulative_current == 499);
  CHECK(host.peak_segment == 0);
  CHECK(host.peak_space == "cpu");
  CHECK(host.spaces == memprof::vector<owned_bytes>{{"cpu", 500, 1}, {"pinned", 0, 0}});
  CHECK(host.live_at_peak == profile.space("cpu").live_at_peak);
  CHECK(profile.memories[1].cumulative_peak == 42);
  CHECK(profile.memories[1].peak_segment == 1);
}

TEST_CASE("joint peak: more than 64 bits hold is the greatest number there is") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  memprof::trace made;
  memprof::extend::trace_writer writer{made};
  const memprof::extend::space_id cpu = writer.space("cpu");
  const memprof::extend::space_id pinned = writer.space("pinned", 0, false, host_memory_name);
  writer.allocate(cpu, {100}, static_cast<std::size_t>(most));
  writer.allocate(pinned, {200}, static_cast<std::size_t>(most));
  writer.finish();
  const memprof::profile profile = memprof::profile_of(made);
  REQUIRE(profile.memories.size() == 1);
  CHECK(profile.memories[0].cumulative_peak == most);
  CHECK(profile.memories[0].live_at_peak.bytes == most);
  CHECK(profile.memories[0].live_at_peak.remaining_bytes == 0);
  CHECK(profile.memories[0].spaces == memprof::vector<owned_bytes>{{"cpu", most, 1}, {"pinned", most, 1}});
}

TEST_CASE("joint peak: a space of an older trace lies in no memory, but for the one that every trace has") {
  struct collector {
    std::vector<memprof::extend::space_definition> spaces;
    void info(const memprof::extend::capture_info&) {}
    void name(memprof::extend::label, std::string_view) {}
    void space(const memprof::extend::space_definition& space) { spaces.push_back(space); }
    void facts(memprof::extend::fact_part&&) {}
    void events(const memprof::extend::event*, const memprof::extend::event*, std::uint32_t) {}
  } found;
  for (const std::uint8_t id : {std::uint8_t{0}, std::uint8_t{1}}) {
    const auto payload = memprof::detail::small_payload{}.number(id).number(7).number(0).number(0);
    REQUIRE(memprof::detail::visit_definition(memprof::detail::control::space, payload.view(), found));
  }
  for (const memprof::extend::label memory :
       {memprof::extend::label{0}, memprof::extend::label{3}, memprof::extend::host_memory}) {
    const auto payload = memprof::detail::encode_space({2, 7, 64, true, memory});
    REQUIRE(memprof::detail::visit_definition(memprof::detail::control::space, payload.view(), found));
  }
  const std::vector<memprof::extend::space_definition> expected{{0, 7, 0, false, memprof::extend::host_memory},
                                                                {1, 7, 0, false, 0},
                                                                {2, 7, 64, true, 0},
                                                                {2, 7, 64, true, 3},
                                                                {2, 7, 64, true, memprof::extend::host_memory}};
  CHECK(found.spaces == expected);
  const auto impossible = memprof::detail::small_payload{}.number(2).number(7).number(0).number(0).number(
      std::uint64_t{memprof::extend::host_memory} + 1);
  CHECK(!memprof::detail::visit_definition(memprof::detail::control::space, impossible.view(), found));
}

}  // namespace memprof_tests::profile_joint_peaks
