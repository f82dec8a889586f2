#pragma once

#include <memprof/backend/cuda/driver_interface.hpp>
#include <memprof/backend/cuda/driver_questions.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/pool_table.hpp>
#include <memprof/backend/cuda/tracker.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/fact/cuda_memory.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// What the driver says at snapshots, as facts of the capture.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// The readings of a capture that are kept, however many there are: those of devices at three moments, and those of pools by the
/// name of the segment. Every call may be made on any thread; they wait for each other.
class device_readings {
 public:
  /// Begins a capture: the high-water marks of the pools begin now.
  void begin(const driver_questions& driver, pool_table& pools, tracker& blocks) {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    devices_ = {};
    pools_.clear();
    driver_ = driver;
    schedule_.restart(monotonic_ns());
    read_pools(pools, 0, false);
    read_devices(pools, blocks, true);
  }

  /// A segment has ended. Pools are always read, since that resets their marks; devices, for at most a thousandth of the time.
  void segment_ends(std::string_view name, pool_table& pools, tracker& blocks) noexcept {
    if (!event_sink{}.is_thread_recordable()) return;  // a handler that interrupted memprof
    const label segment = event_sink{}.label_of(name);
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    read_pools(pools, segment, true);
    const std::int64_t now_ns = monotonic_ns();
    if (!schedule_.claim(now_ns)) return;
    read_devices(pools, blocks, false);
    schedule_.finish(now_ns, monotonic_ns());
  }

  /// The last reading of the devices.
  void end(pool_table& pools, tracker& blocks) noexcept {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    read_devices(pools, blocks, false);
  }

  /// Adds the tables that have rows.
  void report(event_sink& writer) {
    vector<cuda_device_memory> device_rows;
    vector<cuda_pool_memory> pool_rows;
    {
      const lock_guard guard{lock_};
      for (std::size_t device = 0; device < devices_.size(); ++device) {
        const kept_device& kept = devices_[device];
        if (!kept.is_known) continue;
        add_row(device_rows, device, "first", kept.first);
        add_row(device_rows, device, "last", kept.last);
        add_row(device_rows, device, "most_used", kept.most_used);
      }
      for (const kept_pool& kept : pools_) {
        cuda_pool_memory row;
        row.device = name_of(static_cast<std::size_t>(kept.device));
        row.pool = kept.is_own ? std::string{} : std::string{handle_text{kept.pool}.view()};
        row.segment = event_sink{}.text_of(kept.segment);
        row.segments = kept.segments;
        row.reserved_peak = kept.peaks.reserved_peak;
        row.used_peak = kept.peaks.used_peak;
        row.reserved_bytes = kept.peaks.reserved;
        row.used_bytes = kept.peaks.used;
        pool_rows.push_back(std::move(row));
      }
    }
    if (!device_rows.empty()) writer.add_facts(to_table(device_rows));
    if (!pool_rows.empty()) writer.add_facts(to_table(pool_rows));
  }

 private:
  struct signed_counters {
    std::int64_t reserved = 0;
    std::int64_t reserved_peak = 0;
    std::int64_t used = 0;
    std::int64_t used_peak = 0;
  };

  struct reading {
    std::int64_t total = 0;
    std::int64_t used = 0;
    std::int64_t recorded = 0;
    std::int64_t pending = 0;
    std::int64_t pool_free = 0;
    std::int64_t pending_peak = 0;
  };

  struct kept_device {
    bool is_known = false;
    reading first;
    reading last;
    reading most_used;
  };

  struct kept_pool {
    number pool;
    int device;
    bool is_own;
    label segment;
    std::int64_t segments;
    signed_counters peaks;
  };

  static constexpr std::size_t most_pool_rows = 256;

  [[nodiscard]] static std::string name_of(std::size_t device) { return "cuda:" + std::to_string(device); }

  /// Calls `visit(pool, device, is_own)` for each pool of a device that holds memory of it.
  template <class Visitor>
  void for_each_pool(pool_table& pools, Visitor&& visit) const {
    const int devices = std::min(driver_.device_count(), static_cast<int>(spaces::max_devices));
    for (int device = 0; device < devices; ++device) {
      if (const number own = driver_.own_pool_of(device); own != 0) visit(own, device, true);
    }
    pools.for_each([&](const known_pool& made) {
      if (made.kind == memory_kind::device) visit(made.handle, static_cast<int>(made.device), false);
    });
  }

  void read_pools(pool_table& pools, label segment, bool is_kept) noexcept {
    for_each_pool(pools, [&](number pool, int device, bool is_own) {
      pool_counters found;
      if (!driver_.counters_of(pool, found)) return;
      driver_.reset_peaks_of(pool);
      found.reserved_peak = std::max(found.reserved_peak, found.reserved);
      found.used_peak = std::max(found.used_peak, found.used);
      if (!is_kept || found.reserved_peak == 0) return;  // nothing in it, as in the pools of devices that are not used
      kept_pool* const row = row_of(pool, device, is_own, segment);
      if (row == nullptr) return;
      ++row->segments;
      row->peaks.reserved_peak = std::max(row->peaks.reserved_peak, static_cast<std::int64_t>(found.reserved_peak));
      row->peaks.used_peak = std::max(row->peaks.used_peak, static_cast<std::int64_t>(found.used_peak));
      row->peaks.reserved = static_cast<std::int64_t>(found.reserved);
      row->peaks.used = static_cast<std::int64_t>(found.used);
    });
  }

  /// Null if the system has no memory.
  [[nodiscard]] kept_pool* row_of(number pool, int device, bool is_own, label segment) noexcept {
    const auto find = [&](label wanted) -> kept_pool* {
      for (kept_pool& kept : pools_) {
        if (kept.pool == pool && kept.segment == wanted) return &kept;
      }
      return nullptr;
    };
    if (kept_pool* const known = find(segment)) return known;
    if (pools_.size() >= most_pool_rows) {
      if (kept_pool* const others = find(0)) return others;
      segment = 0;
    }
    return pools_.push_back({pool, device, is_own, segment, 0, {}}) ? &pools_.back() : nullptr;
  }

  void read_devices(pool_table& pools, tracker& blocks, bool is_first) noexcept {
    const int devices = std::min(driver_.device_count(), static_cast<int>(spaces::max_devices));
    for (int device = 0; device < devices; ++device) {
      device_counters found;
      if (!driver_.memory_of(device, found)) continue;
      reading now;
      now.total = static_cast<std::int64_t>(found.total);
      now.used = static_cast<std::int64_t>(found.total - found.free);
      const recorded_bytes recorded = blocks.recorded_on(static_cast<std::uint32_t>(device));
      now.recorded = recorded.live;
      now.pending_peak = recorded.pending_peak;
      signed_counters held;
      for_each_pool(pools, [&](number pool, int of, bool) {
        pool_counters counters;
        if (of != device || !driver_.counters_of(pool, counters)) return;
        held.reserved += static_cast<std::int64_t>(counters.reserved);
        held.used += static_cast<std::int64_t>(counters.used);
      });
      now.pending = std::max<std::int64_t>(held.used - recorded.on_streams, 0);
      now.pool_free = held.reserved - held.used;
      kept_device& kept = devices_[static_cast<std::size_t>(device)];
      if (is_first || !kept.is_known) kept.first = now;
      if (!kept.is_known || now.used > kept.most_used.used) kept.most_used = now;
      kept.last = now;
      kept.is_known = true;
    }
  }

  static void add_row(vector<cuda_device_memory>& rows, std::size_t device, std::string_view moment, const reading& at) {
    cuda_device_memory row;
    row.device = name_of(device);
    row.moment = moment;
    row.total_bytes = at.total;
    row.used_bytes = at.used;
    row.recorded_bytes = at.recorded;
    row.pending_bytes = at.pending;
    row.pool_free_bytes = at.pool_free;
    row.unexplained_bytes = at.used - at.recorded - at.pending - at.pool_free;
    row.pending_peak = at.pending_peak;
    rows.push_back(std::move(row));
  }

  futex_lock lock_;
  driver_questions driver_;
  reading_schedule schedule_;
  std::array<kept_device, spaces::max_devices> devices_{};
  page_array<kept_pool> pools_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
