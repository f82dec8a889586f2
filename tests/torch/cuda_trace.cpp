#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch/capture/cuda_trace.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/memprof.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace memprof_tests::torch_cuda_trace {

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
  void* stream_ = nullptr;
};

/// That of 2.10 and later.
struct trace_entry_with_pool : trace_entry {
  std::pair<std::uint64_t, std::uint64_t> mempool_;
};

/// Likewise, of `SegmentInfo`.
struct reserved_segment {
  std::int8_t device;
  std::size_t address;
  std::size_t total_size;
  void* stream = nullptr;
  std::pair<std::uint64_t, std::uint64_t> owner_private_pool_id;
};

constexpr std::size_t megabyte = 1 << 20;

memprof::detail::cuda_trace two_devices() {
  memprof::detail::cuda_trace trace;
  trace.name_devices(2);
  return trace;
}

}  // namespace

TEST_CASE("torch cuda trace: a block ends when its tensor dies, and is active until its streams are done") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SEGMENT_ALLOC, 0, 0x10000000, 2 * megabyte, nullptr});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 1000, nullptr});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000400, 600, nullptr});
  trace.record(trace_entry{trace_entry::FREE_REQUESTED, 0, 0x10000000, 1000, nullptr});
  CHECK(capture.profile().space("cuda:0").cumulative_current == 600);
  CHECK(capture.profile().space("cuda:0").active.current == 1600);
  trace.record(trace_entry{trace_entry::FREE_COMPLETED, 0, 0x10000000, 1000, nullptr});
  capture.end();
  CHECK(capture.profile().space("cuda:0").cumulative_peak == 1600);
  CHECK(capture.profile().space("cuda:0").reserved.peak == 2 * megabyte);
  CHECK(capture.profile().space("cuda:0").active.current == 600);
  CHECK(capture.profile().space("cuda:0").active.peak == 1600);
  CHECK(capture.profile().spaces.size() == 1);
  CHECK(capture.profile().space("cuda:0").anomalies == memprof::space_anomalies{});
}

TEST_CASE("torch cuda trace: a block that a stream keeps counts as active in later segments, and not as live") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 1000, nullptr});
  trace.record(trace_entry{trace_entry::FREE_REQUESTED, 0, 0x10000000, 1000, nullptr});
  memprof::snapshot("FIRST");
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000400, 600, nullptr});
  memprof::snapshot("SECOND");
  trace.record(trace_entry{trace_entry::FREE_COMPLETED, 0, 0x10000000, 1000, nullptr});
  capture.end("THIRD");
  const memprof::space_profile& space = capture.profile().space("cuda:0");
  CHECK(space.cumulative_peak == 1000);
  CHECK(space.active.peak == 1600);
  REQUIRE(space.active.segments.size() == 3);
  CHECK(space.active.segments[0] == memprof::active_usage{1000, 1000});
  CHECK(space.active.segments[1] == memprof::active_usage{1600, 1600});
  CHECK(space.active.segments[2] == memprof::active_usage{1600, 600});
  CHECK(space.segments[1].cumulative_current == 600);
}

TEST_CASE("torch cuda trace: expandable segments are reserved and released by pages") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SEGMENT_MAP, 1, 0x20000000, 40 * megabyte, nullptr});
  trace.record(trace_entry{trace_entry::SEGMENT_UNMAP, 1, 0x20000000 + 20 * megabyte, 20 * megabyte, nullptr});
  capture.end();
  const memprof::reserved_profile& reserved = capture.profile().space("cuda:1").reserved;
  CHECK(reserved.peak == 40 * megabyte);
  CHECK(reserved.current == 20 * megabyte);
  CHECK(reserved.unmatched_releases == memprof::event_tally{});
}

TEST_CASE("torch cuda trace: what was reserved before the capture counts as reserved in it") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record_reserved<trace_entry>(std::vector<reserved_segment>{{0, 0x10000000, 20 * megabyte, nullptr, {}},
                                                                   {1, 0x20000000, 2 * megabyte, nullptr, {}},
                                                                   {0, 0x30000000, 2 * megabyte, nullptr, {}},
                                                                   {7, 0x40000000, megabyte, nullptr, {}}});
  trace.record(trace_entry{trace_entry::SEGMENT_ALLOC, 0, 0x50000000, 4 * megabyte, nullptr});
  trace.record(trace_entry{trace_entry::SEGMENT_FREE, 0, 0x10000000, 20 * megabyte, nullptr});
  capture.end();
  const memprof::reserved_profile& reserved = capture.profile().space("cuda:0").reserved;
  CHECK(reserved.peak == 26 * megabyte);
  CHECK(reserved.current == 6 * megabyte);
  CHECK(reserved.unmatched_releases == memprof::event_tally{});
  CHECK(capture.profile().space("cuda:1").reserved.peak == 2 * megabyte);
}

TEST_CASE("torch cuda trace: what says nothing of blocks changes nothing, nor do devices that were not there") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record(trace_entry{trace_entry::SNAPSHOT, 0, 0, 0, nullptr});
  trace.record(trace_entry{trace_entry::ALLOC, 7, 0x10000000, 100, nullptr});
  trace.record(trace_entry{trace_entry::ALLOC, -1, 0x10000000, 100, nullptr});
  capture.end();
  CHECK(capture.profile().spaces.empty());
}

TEST_CASE("torch cuda trace: a block belongs to the operator that allocates it, and may be annotated") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = begin_torch();
  {
    RECORD_USER_SCOPE("model");
    trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 100, nullptr});
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

TEST_CASE("torch cuda trace: rows by stream and pool say who holds the memory") {
  memprof::detail::cuda_trace trace = two_devices();
  auto* const stream = reinterpret_cast<void*>(std::uintptr_t{0x5500a0});
  const auto entry = [](trace_entry::Action action, std::size_t address, std::size_t bytes, void* on, std::uint64_t pool) {
    return trace_entry_with_pool{{action, 0, address, bytes, on}, {0, pool}};
  };
  auto capture = memprof::begin_capture();
  trace.record_reserved<trace_entry_with_pool>(std::vector<reserved_segment>{{0, 0x10000000, 2 * megabyte, nullptr, {0, 0}}});
  trace.record(entry(trace_entry::ALLOC, 0x10000000, 1000, nullptr, 0));
  trace.record(entry(trace_entry::SEGMENT_ALLOC, 0x20000000, 20 * megabyte, stream, 3));
  trace.record(entry(trace_entry::ALLOC, 0x20000000, 5000, stream, 3));
  trace.record(entry(trace_entry::ALLOC, 0x20002000, 6000, stream, 3));
  trace.record(entry(trace_entry::FREE_REQUESTED, 0x20000000, 5000, stream, 3));
  trace.record(entry(trace_entry::FREE_COMPLETED, 0x20000000, 5000, stream, 3));
  capture.end();
  const memprof::profile& profile = capture.profile();
  const memprof::vector<memprof::stream_usage>& rows = profile.space("cuda:0").streams;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == memprof::stream_usage{"0x5500a0", "0:3", 11000, 6000, 2, 20 * megabyte, 20 * megabyte});
  CHECK(rows[1] == memprof::stream_usage{"default", "", 1000, 1000, 1, 2 * megabyte, 2 * megabyte});
  CHECK(profile.space("cuda:0").active.peak == 12000);
}

TEST_CASE("torch cuda trace: where libtorch does not tell the pool, it is unknown, also that of older segments") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  trace.record_reserved<trace_entry>(std::vector<reserved_segment>{{0, 0x10000000, 2 * megabyte, nullptr, {0, 3}}});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 1000, nullptr});
  capture.end();
  const memprof::vector<memprof::stream_usage>& rows = capture.profile().space("cuda:0").streams;
  REQUIRE(rows.size() == 1);
  CHECK(rows[0] == memprof::stream_usage{"default", "unknown", 1000, 1000, 1, 2 * megabyte, 2 * megabyte});
}

TEST_CASE("torch cuda trace: streams whose names meet in one place of the cache keep their own rows") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = memprof::begin_capture();
  constexpr std::size_t streams = 40;
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t index = 1; index <= streams; ++index) {
      auto* const stream = reinterpret_cast<void*>(index << 10);  // 64 bytes times 16 places
      trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000 + (round * streams + index) * 512, index, stream});
    }
  }
  capture.end();
  const memprof::vector<memprof::stream_usage>& rows = capture.profile().space("cuda:0").streams;
  REQUIRE(rows.size() == streams);
  for (std::size_t row = 0; row < streams; ++row) {
    CHECK(rows[row].cumulative_current == static_cast<std::int64_t>(3 * (streams - row)));
    CHECK(rows[row].allocation_count == 3);
  }
}

TEST_CASE("torch cuda trace: an out-of-memory event tells the operator, what was asked for, and what was free") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = begin_torch();
  trace.record(trace_entry{trace_entry::SEGMENT_ALLOC, 0, 0x10000000, 20 * megabyte, nullptr});
  trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 7 * megabyte, nullptr});
  {
    RECORD_USER_SCOPE("attention");
    trace.record(trace_entry{trace_entry::OOM, 0, 3 * megabyte, 90 * megabyte, nullptr});
  }
  capture.end();
  const memprof::space_profile& space = capture.profile().space("cuda:0");
  REQUIRE(space.out_of_memory.size() == 1);
  const memprof::out_of_memory_failure& failure = space.out_of_memory.front();
  CHECK(failure.requested == 90 * megabyte);
  CHECK(failure.device_free == 3 * megabyte);
  CHECK(failure.live_bytes == 7 * megabyte);
  CHECK(failure.reserved_bytes == 20 * megabyte);
  CHECK(failure.operation == "attention");
  CHECK(failure.segment == 0);
}

TEST_CASE("torch cuda trace: track_pytorch_ops counts the bytes of a device apart from those of the CPU") {
  memprof::detail::cuda_trace trace = two_devices();
  auto capture = begin_torch();
  {
    auto ops = memprof::track_pytorch_ops();
    RECORD_USER_SCOPE("outer");
    trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000000, 1000, nullptr});
    {
      RECORD_USER_SCOPE("inner");
      trace.record(trace_entry{trace_entry::ALLOC, 1, 0x20000000, 300, nullptr});
      trace.record(trace_entry{trace_entry::ALLOC, 0, 0x10000400, 70, nullptr});
      trace.record(trace_entry{trace_entry::FREE_REQUESTED, 0, 0x10000400, 70, nullptr});
      trace.record(trace_entry{trace_entry::FREE_COMPLETED, 0, 0x10000400, 70, nullptr});
    }
    trace.record(trace_entry{trace_entry::FREE_REQUESTED, 1, 0x20000000, 300, nullptr});
  }
  capture.end();
  const memprof::vector<memprof::pytorch_operation>& rows = operators_of(capture.profile());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "outer");  // 700 bytes are more than 300
  CHECK(rows[0].device_memory == 1000 - 300);
  CHECK(rows[0].cpu_memory == 0);
  CHECK(rows[1].name == "inner");
  CHECK(rows[1].device_memory == 300);
  CHECK(rows[1].cpu_memory == 0);
}

}  // namespace memprof_tests::torch_cuda_trace
