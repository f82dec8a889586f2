#include <memprof/config.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/format_losses.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// What a profile has of the operations: sums, and in each space the first, the last and the largest call.
session_operations session_operations_of(const profile& run) {
  session_operations operations;
  for (const operation_profile& called : run.operations) {
    session_operation& all = operations[called.name];
    all.invocations += called.invocations;
    if (called.parent >= 0) operations[run.operations[static_cast<std::size_t>(called.parent)].name].children.insert(called.name);
    std::size_t spaces = 0;
    for (const operation_usage& usage : called.usage) {
      all.total_delta += usage.total_delta;
      all.max_delta = spaces++ == 0 && all.calls.empty() ? usage.max_delta : std::max(all.max_delta, usage.max_delta);
      all.has_max = all.has_max && spaces == 1;
      for (const operation_invocation* run_of_it : {&usage.first_invocation, &usage.largest_invocation, &usage.last_invocation}) {
        session_call call{run.begin_unix_ns + run_of_it->end_ns, run_of_it->delta};
        call.begin_unix_ns = run.begin_unix_ns + run_of_it->begin_ns;
        call.thread = run_of_it->thread;
        const bool is_known = std::any_of(all.calls.begin(), all.calls.end(), [&](const session_call& other) {
          return other.unix_ns == call.unix_ns && other.delta == call.delta;
        });
        if (run_of_it->thread >= 0 && !is_known) all.calls.push_back(call);
      }
    }
  }
  for (auto& [name, operation] : operations) {
    std::sort(operation.calls.begin(), operation.calls.end(),
              [](const session_call& left, const session_call& right) { return left.unix_ns < right.unix_ns; });
  }
  return operations;
}

/// A memory space at a checkpoint.
session_device session_device_of(const profile& run, const checkpoint_usage& usage) {
  session_device device{usage.space, usage.live_bytes, usage.live_blocks, {}};
  for (const live_block& block : usage.largest_blocks) {
    if (device.largest.size() == session_largest_blocks) break;
    const operation_profile* const operation = run.find_operation(block.operation);
    device.largest.push_back({block.bytes, block.shape, block.dtype, usage.space,
                              operation == nullptr ? std::string_view{block.operation} : std::string_view{operation->name},
                              block.requires_grad, block.category});
  }
  return device;
}

/// The greatest live bytes of a space where a session profile has a snapshot.
std::int64_t greatest_snapshot(const profile& run, const space_profile& space) {
  std::int64_t greatest = 0;
  for (const segment_summary& each : space.segments_by_name) greatest = std::max(greatest, each.cumulative_current.greatest);
  for (const checkpoint& point : run.checkpoints) {
    for (const checkpoint_usage& usage : point.spaces) {
      if (usage.space == space.name) greatest = std::max(greatest, usage.live_bytes);
    }
  }
  return greatest;
}

/// What a session profile made from a profile lacks.
std::vector<std::string> missing_in_session_of(const profile& run) {
  std::vector<std::string> missing;
  const auto kept_segments = static_cast<std::int64_t>(run.segments.size());
  const auto kept_checkpoints = static_cast<std::int64_t>(run.checkpoints.size());
  if (kept_segments != 0)
    missing.emplace_back("the largest blocks at the ends of segments: a profile has them only at checkpoints");
  if (run.segment_count > kept_segments)
    missing.push_back("snapshots of " + std::to_string(run.segment_count - kept_segments) +
                      " segments folded by name, and the number of blocks at the others");
  if (run.checkpoint_count > kept_checkpoints)
    missing.push_back(std::to_string(run.checkpoint_count - kept_checkpoints) + " of " + std::to_string(run.checkpoint_count) +
                      " checkpoints: a profile keeps only some");
  if (!run.operations.empty())
    missing.emplace_back(
        "all calls of operations except the first, the last and the largest, and what was live before and after them");
  return missing;
}

}  // namespace
}  // namespace detail

std::vector<std::string> write_session(const profile& run, byte_sink_view out) {
  const bool has_all_segments = static_cast<std::size_t>(std::max<std::int64_t>(run.segment_count, 0)) <= run.segments.size();
  std::vector<std::string> missing = detail::missing_in_session_of(run);
  detail::session_writer writer{out};
  writer.begin(run, run.segments.size() + run.checkpoints.size(), !run.operations.empty(), missing);
  std::size_t next_checkpoint = 0;
  const auto put_checkpoints_until = [&](std::int64_t time_ns) {
    for (; next_checkpoint < run.checkpoints.size() && run.checkpoints[next_checkpoint].time_ns <= time_ns; ++next_checkpoint) {
      const checkpoint& point = run.checkpoints[next_checkpoint];
      std::vector<detail::session_device> devices;
      for (const checkpoint_usage& usage : point.spaces) devices.push_back(detail::session_device_of(run, usage));
      writer.snapshot(run.begin_unix_ns + point.time_ns,
                      detail::checkpoint_name(point.name, static_cast<std::uint64_t>(point.number)), devices);
    }
  };
  std::vector<std::int64_t> blocks(run.spaces.size());
  for (std::size_t index = 0; index < run.segments.size(); ++index) {
    put_checkpoints_until(run.segments[index].end_ns);
    std::vector<detail::session_device> devices;
    for (std::size_t at = 0; at < run.spaces.size(); ++at) {
      const space_profile& space = run.spaces[at];
      if (index >= space.segments.size()) continue;
      const segment_usage& usage = space.segments[index];
      blocks[at] += usage.allocation_count - usage.deallocation_count;
      devices.push_back({space.name, usage.cumulative_current, has_all_segments ? blocks[at] : -1, {}});
    }
    writer.snapshot(run.begin_unix_ns + run.segments[index].end_ns, run.segments[index].name, devices);
  }
  put_checkpoints_until(std::numeric_limits<std::int64_t>::max());
  writer.finish(detail::session_operations_of(run), run);
  return missing;
}

std::vector<std::string> session_losses(const profile& run) {
  std::vector<std::string> lost;
  const auto missed = std::count_if(run.spaces.begin(), run.spaces.end(), [&](const space_profile& space) {
    return space.cumulative_peak > detail::greatest_snapshot(run, space);
  });
  if (missed != 0)
    lost.push_back("peaks of " + std::to_string(missed) + (missed == 1 ? " memory space" : " memory spaces") +
                   ", which are between snapshots");
  if (detail::has_space(run, [](const space_profile& space) { return space.reserved.peak != 0 || !space.streams.empty(); }))
    lost.emplace_back("what allocators reserved, and on which streams");
  if (detail::has_space(run, [](const space_profile& space) { return !space.out_of_memory.empty(); }))
    lost.emplace_back("requests for which a device had no memory");
  if (detail::has_space(run, [](const space_profile& space) { return !space.cores.ranges.empty(); }))
    lost.emplace_back("on which cores blocks were");
  constexpr std::int64_t kept_blocks = 10;
  if (detail::has_space(run, [](const space_profile& space) { return space.live_at_peak.blocks > kept_blocks; }))
    lost.emplace_back("blocks beyond the ten largest of a memory space in each snapshot");
  detail::add_lost_facts(lost, run, pytorch_operation::table);
  return lost;
}

}  // namespace memprof::inline MEMPROF_ABI
