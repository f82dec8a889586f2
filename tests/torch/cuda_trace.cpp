#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch/cuda_trace.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// As libtorch documents its own in CUDACachingAllocator.h, with the members that are read.
struct trace_entry {
  enum Action {
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    SNAPSHOT,
    OOM,
  };
  Action action_;
  std::int8_t device_;
  std::size_t addr_;
  std::size_t size_;
};

/// Likewise, of `SegmentInfo`.
struct reserved_segment {
  std::int8_t device;
  std::size_t address;
  std::size_t total_size;
};

constexpr std::size_t megabyte = 1 << 20;

memprof::detail::cuda_trace two_devices() {
  memprof::detail::cuda_trace trace;
  trace.name_devices(2);
  return trace;
}

}  // namespace

TEST_CASE("torch cuda trace: a block ends when its tensor dies, and is active until its streams are done") {
  const memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SEGMENT_ALLOC, 0, 0x10000000, 2 * megabyte});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 1000});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000400, 600});
  trace.record(trace_entry{trace_entry::FREE_REQUESTED, 0, 0x10000000, 1000});
  CHECK(capture.profile().space("cuda:0").cumulative_current == 600);
  CHECK(capture.profile().space("cuda:0 active").cumulative_current == 1600);
  trace.record(trace_entry{trace_entry::FREE_COMPLETED, 0, 0x10000000, 1000});
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_peak == 1600);
  CHECK(capture.profile().space("cuda:0").reserved.peak == 2 * megabyte);
  CHECK(capture.profile().space("cuda:0 active").cumulative_current == 600);
  CHECK(capture.profile().space("cuda:0").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch cuda trace: expandable segments are reserved and released by pages") {
  const memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SEGMENT_MAP, 1, 0x20000000, 40 * megabyte});
  trace.record(trace_entry{trace_entry::SEGMENT_UNMAP, 1, 0x20000000 + 20 * megabyte, 20 * megabyte});
  capture.end();
  const memprof::reserved_profile& reserved = capture.profile().space("cuda:1").reserved;
  CHECK(reserved.peak == 40 * megabyte);
  CHECK(reserved.current == 20 * megabyte);
  CHECK(reserved.unmatched_releases == memprof::event_tally{});
}

TEST_CASE("torch cuda trace: what was reserved before the capture counts as reserved in it") {
  const memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record_reserved(std::vector<reserved_segment>{
      {0, 0x10000000, 20 * megabyte}, {1, 0x20000000, 2 * megabyte}, {0, 0x30000000, 2 * megabyte}, {7, 0x40000000, megabyte}});
  trace.record(trace_entry{trace_entry::SEGMENT_ALLOC, 0, 0x50000000, 4 * megabyte});
  trace.record(trace_entry{trace_entry::SEGMENT_FREE, 0, 0x10000000, 20 * megabyte});
  capture.end();
  const memprof::reserved_profile& reserved = capture.profile().space("cuda:0").reserved;
  CHECK(reserved.peak == 26 * megabyte);
  CHECK(reserved.current == 6 * megabyte);
  CHECK(reserved.unmatched_releases == memprof::event_tally{});
  CHECK(capture.profile().space("cuda:1").reserved.peak == 2 * megabyte);
}

TEST_CASE("torch cuda trace: what says nothing of blocks changes nothing, nor do devices that were not there") {
  const memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SNAPSHOT, 0, 0, 0});
  trace.record(trace_entry{trace_entry::OOM, 0, 5000, 10000});
  trace.record(trace_entry{trace_entry::ALLOC, 7, 0x10000000, 100});
  trace.record(trace_entry{trace_entry::ALLOC, -1, 0x10000000, 100});
  capture.end();
  CHECK(capture.profile().spaces.empty());
}

TEST_CASE("torch cuda trace: a block belongs to the operator that allocates it, and may be annotated") {
  const memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture<memprof::torch_backend>();
  {
    RECORD_USER_SCOPE("model");
    trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 100});
  }
  memprof::annotate(reinterpret_cast<const void*>(std::uintptr_t{0x10000000}),
                    {.name = "weight", .category = memprof::category::parameter});
  capture.end();
  const memprof::live_set& live = capture.profile().space("cuda:0").live_at_peak;
  REQUIRE(live.largest_blocks.size() == 1);
  CHECK(live.largest_blocks[0].operation == "model");
  CHECK(live.largest_blocks[0].name == "weight");
  CHECK(live.largest_blocks[0].category == memprof::category::parameter);
}
