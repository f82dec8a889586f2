#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/toolkit/analysis/reserved_causes_json.hpp>
#include <memprof/toolkit/analysis/reserved_causes_text.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::analysis_reserved_causes {

using memprof::caching_allocator;
using memprof::fragmentation;
using memprof::reserved_causes;
using memprof::reserved_causes_in;
using memprof::segment_action;
using memprof::extend::event_kind;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A run on a device, as a trace of the allocator with these settings has it.
class device_run {
 public:
  explicit device_run(std::string_view settings = {}, std::int64_t capacity = 0, std::uint64_t moved_by = 0)
      : allocator_{options_of(settings, capacity),
                   [this](segment_action action, std::uint64_t address, std::int64_t bytes) {
                     put(action == segment_action::reserve ? event_kind::reserve : event_kind::release, address, bytes);
                   }},
        moved_by_{moved_by} {
    (void)writer_.label_of("default\x1f");
  }

  const memprof::cached_block* allocate(std::int64_t bytes) {
    const memprof::cached_block* const block = allocator_.allocate(static_cast<std::uint64_t>(bytes));
    if (block != nullptr) {
      put(event_kind::allocate_on_stream, block->address + moved_by_, bytes);
    } else {
      const std::int64_t free = allocator_.options().capacity - allocator_.stats().reserved_bytes.current;
      put(event_kind::out_of_memory, static_cast<std::uint64_t>(free), bytes);
    }
    return block;
  }
  void deallocate(const memprof::cached_block* block) {
    put(event_kind::deallocate_on_stream, block->address + moved_by_, 0);
    allocator_.deallocate(block);
  }
  void say_setting(const std::string& value) {
    writer_.add_facts(memprof::extend::to_table<memprof::torch_setting_fact>({{"PYTORCH_CUDA_ALLOC_CONF", value}}));
  }

  /// Of every memory space.
  [[nodiscard]] std::vector<reserved_causes> all_causes() {
    writer_.finish();
    return memprof::all_reserved_causes_in(events_, memprof::profile_of(events_));
  }
  [[nodiscard]] std::optional<reserved_causes> causes() {
    writer_.finish();
    const memprof::profile profile = memprof::profile_of(events_);
    return reserved_causes_in(events_, profile, profile.space("cuda:0"));
  }

 private:
  [[nodiscard]] static memprof::caching_allocator_options options_of(std::string_view settings, std::int64_t capacity) {
    memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(settings);
    options.capacity = capacity;
    return options;
  }
  void put(event_kind kind, std::uint64_t address, std::int64_t bytes) {
    writer_.put_event(
        {0, address, static_cast<std::uint64_t>(bytes), kind == event_kind::out_of_memory ? 0 : stream_, kind, space_.value, 0});
  }

  memprof::trace events_;
  memprof::extend::trace_writer writer_{events_};
  memprof::extend::space_id space_ = writer_.space("cuda:0");
  memprof::extend::label stream_ = writer_.label_of("default\x1f");
  caching_allocator allocator_;
  std::uint64_t moved_by_;
};

/// Ever larger blocks, of which none fits where the one before was: 6 segments of 100 to 150 MiB, and the last is used.
void grow(device_run& run) {
  for (std::int64_t size = 100; size < 150; size += 10) run.deallocate(run.allocate(size * mib));
  run.allocate(150 * mib);
}

/// The program of PyTorch's issue 123548.
void fence(device_run& run, int cycles) {
  run.allocate(64 * mib);
  for (int index = 0; index < cycles; ++index) {
    const memprof::cached_block* const first = run.allocate(91 * mib);
    const memprof::cached_block* const second = run.allocate(91 * mib / 2);
    run.allocate(2 * mib);
    run.deallocate(first);
    run.deallocate(second);
  }
}

}  // namespace

TEST_CASE("reserved causes: segments that never merge, and the setting with which they do") {
  device_run run;
  grow(run);
  const std::optional<reserved_causes> found = run.causes();
  REQUIRE(found);
  CHECK_FALSE(found->is_modelled);
  CHECK_FALSE(found->is_setting_recorded);
  CHECK(found->found.at_peak.parts == fragmentation{.reserved = 750 * mib, .live = 150 * mib, .soft = 600 * mib});
  CHECK(found->setting.empty());
  CHECK(found->as_it_was.reserved_peak == 750 * mib);
  REQUIRE(found->help() != nullptr);
  CHECK(found->help()->setting == "expandable_segments:True");
  CHECK(found->help()->reserved_peak == 160 * mib);  // 8 pages of 20 MiB
  CHECK(to_text(*found) ==
        "Unused    cuda:0, at the peak of what was reserved: 600 MiB of 750 MiB reserved: 600 MiB soft (free\n"
        "          segments and ends of segments, which never merge)\n"
        "Helps     expandable_segments:True: 160 MiB reserved in place of 750 MiB, in the model of the\n"
        "          allocator\n");
}

TEST_CASE("reserved causes: of all spaces, those in which they are notable") {
  device_run grown;
  grow(grown);
  const std::vector<reserved_causes> found = grown.all_causes();
  REQUIRE(found.size() == 1);
  CHECK(found[0].space == "cuda:0");
  CHECK(found[0].found.at_peak.parts.soft == 600 * mib);
  device_run full;
  full.allocate(150 * mib);
  CHECK(full.all_causes().empty());
}

TEST_CASE("reserved causes: in issue 123548 the recorded options are tried apart, and either alone helps") {
  device_run run{"max_split_size_mb:128,expandable_segments:True"};
  run.say_setting("max_split_size_mb:128,expandable_segments:True");
  fence(run, 101);
  const std::optional<reserved_causes> found = run.causes();
  REQUIRE(found);
  CHECK(found->is_setting_recorded);
  CHECK(found->as_it_was.reserved_peak == 14'060 * mib);
  // At the peak the 45.5 and 91 MiB of the last cycle are live: the last guard block of 2 MiB came after them.
  CHECK(found->found.at_peak.parts.reserved == 14'060 * mib);
  CHECK(found->found.at_peak.parts.hard == 100 * 273 * mib / 2);
  REQUIRE(found->help() != nullptr);
  CHECK(found->help()->setting == "expandable_segments:True");
  CHECK(found->help()->reserved_peak < 500 * mib);
}

TEST_CASE("reserved causes: at an out-of-memory, the setting that serves the request comes first") {
  device_run run{"", 400 * mib};
  run.deallocate(run.allocate(200 * mib));
  const memprof::cached_block* const first = run.allocate(50 * mib);
  run.allocate(30 * mib);  // keeps the segment of 200 MiB
  run.deallocate(first);
  run.allocate(190 * mib);
  run.allocate(100 * mib);
  CHECK(run.allocate(70 * mib) == nullptr);
  const std::optional<reserved_causes> found = run.causes();
  REQUIRE(found);
  REQUIRE(found->found.at_failure);
  CHECK(found->found.at_failure->requested == 70 * mib);
  // The 100 MiB lie behind the 80 of the first segment, and 20 MiB are left behind them.
  CHECK(found->found.at_failure->parts == fragmentation{.reserved = 390 * mib, .live = 320 * mib, .soft = 70 * mib});
  CHECK(found->as_it_was.serves_failure == false);
  REQUIRE(found->help() != nullptr);
  CHECK(found->help()->setting == "expandable_segments:True");  // which gives two pages of the first 50 MiB back
  CHECK(found->help()->serves_failure == true);
  CHECK(to_text(*found, {.columns = 300}).find("and the request that failed is served") != std::string::npos);
}

TEST_CASE("reserved causes: blocks elsewhere than in the allocator's memory, as in a simulated run, take the model") {
  device_run run{"", 0, std::uint64_t{1} << 50};
  grow(run);
  const std::optional<reserved_causes> found = run.causes();
  REQUIRE(found);
  CHECK(found->is_modelled);
  CHECK(found->found.at_peak.parts == fragmentation{.reserved = 750 * mib, .live = 150 * mib, .soft = 600 * mib});
}

TEST_CASE("reserved causes: a run whose allocator uses what it has gets no verdict") {
  device_run run;
  run.allocate(500 * mib);
  run.allocate(15 * mib);
  CHECK_FALSE(run.causes());
}

TEST_CASE("reserved causes: no setting helps against blocks that lie between") {
  device_run run{"expandable_segments:True"};
  run.say_setting("expandable_segments:True");
  std::vector<const memprof::cached_block*> blocks;
  for (int index = 0; index < 40; ++index) blocks.push_back(run.allocate(40 * mib));
  for (std::size_t index = 0; index + 1 < blocks.size(); index += 2) run.deallocate(blocks[index]);
  run.allocate(60 * mib);
  const std::optional<reserved_causes> found = run.causes();
  REQUIRE(found);
  // The first 40 MiB are at the beginning of the segment.
  CHECK(found->found.at_peak.parts ==
        fragmentation{.reserved = 1660 * mib, .live = 860 * mib, .hard = 760 * mib, .soft = 40 * mib});
  CHECK(found->help() == nullptr);
  CHECK(to_text(*found).find("Helps     no setting that was tried reserves notably less than 1.62 GiB, in the model") !=
        std::string::npos);
}

TEST_CASE("reserved causes: the JSON has the parts, which add up, and each setting that was tried") {
  device_run run;
  grow(run);
  const nlohmann::ordered_json json = memprof::to_json(std::vector<reserved_causes>{*run.causes()});
  REQUIRE(json.size() == 1);
  CHECK(json[0]["space"] == "cuda:0");
  CHECK(json[0]["from"] == "addresses");
  CHECK(json[0]["at_out_of_memory"].is_null());
  const auto& peak = json[0]["at_peak"];
  CHECK(peak["unused_bytes"] == 600 * mib);
  CHECK(peak["stream"] == "default");
  CHECK(peak["pool"].is_null());
  CHECK(peak["hard_bytes"].get<std::int64_t>() + peak["soft_bytes"].get<std::int64_t>() +
            peak["stream_bytes"].get<std::int64_t>() + peak["pending_bytes"].get<std::int64_t>() ==
        peak["unused_bytes"].get<std::int64_t>());
  CHECK(json[0]["helps"] == "expandable_segments:True");
  CHECK(json[0]["trials"].size() == 7);
  CHECK(json[0]["trials"][0]["reserved_peak_bytes"] == 160 * mib);
}

}  // namespace memprof_tests::analysis_reserved_causes
