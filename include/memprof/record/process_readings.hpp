#pragma once

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/record/process_reading.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a capture knows about itself at the moment of a reading.
struct capture_moment {
  std::int64_t time_ns = 0;
  std::int64_t recorded_bytes = 0;
  std::int64_t recorded_blocks = 0;
  std::int64_t profiler_bytes = 0;
  bool records_operator_new = false;
  bool records_malloc = false;
  std::int64_t alignment_bytes = 0;  ///< see `registry::alignment_bytes`
  std::int64_t allocated_bytes = 0;  ///< of all blocks so far that count in `recorded_bytes`, live or not
  std::int64_t allocated_blocks = 0;
  std::int64_t threads = 1;  ///< that have ever recorded
};

/// The readings of a capture that are kept (`process_moments`), however many there are. Adding one allocates nothing.
class process_readings {
 public:
  static constexpr std::size_t moments = std::size(process_moments);

  process_readings() {
    for (std::size_t index = 0; index < moments; ++index) rows_[index].moment = process_moments[index];
  }

  /// Adds a reading made between two moments, while other threads went on allocating.
  void add(process_reading reading, const capture_moment& before, const capture_moment& at) noexcept {
    if (!reading.is_there()) return;
    if (reading.heap == 0) reading.heap = reading.free_heap = -1;  // the program uses another `malloc`
    const std::int64_t known_threads = reading.threads < 0 ? at.threads : reading.threads;
    const std::int64_t threads = std::clamp<std::int64_t>(known_threads, 1, std::int64_t{1} << 22);
    if (heap_before_ < 0 && reading.heap >= 0) {
      heap_before_ = std::max<std::int64_t>(0, reading.heap - least_recorded(before, at));
      alignment_before_ = at.alignment_bytes;
    }
    const std::int64_t recorded_heap = most_recorded(before, at, threads);
    const std::int64_t most_cached = most_cached_by_thread * threads;
    process_memory row;
    row.time_ns = at.time_ns;
    row.resident_bytes = reading.resident;
    row.peak_resident_bytes = reading.peak_resident;
    row.anonymous_bytes = reading.anonymous;
    row.swapped_bytes = reading.swapped;
    row.heap_bytes = reading.heap;
    row.free_heap_bytes = reading.free_heap;
    row.heap_before_bytes = heap_before_;
    row.recorded_bytes = at.recorded_bytes;
    row.profiler_bytes = at.profiler_bytes;
    row.container_limit_bytes = container_limit_;
    row.records_operator_new = at.records_operator_new ? 1 : 0;
    row.records_malloc = at.records_malloc ? 1 : 0;
    if (at.records_malloc) {
      row.unrecorded_heap_bytes = 0;
      // If the heap has less than was recorded, the program uses another `malloc`, of which this one knows nothing.
    } else if (reading.heap >= 0 && reading.heap >= least_recorded(before, at) / 2) {
      const std::int64_t rest =
          reading.heap - heap_before_ - recorded_heap - std::max<std::int64_t>(0, at.alignment_bytes - alignment_before_);
      row.unrecorded_heap_bytes = rest > most_cached ? rest : 0;
    }
    const bool is_first = is_empty();
    const auto keep = [&](std::size_t index, bool is_kept) {
      if (!is_kept && !is_first) return;
      std::string moment = std::move(rows_[index].moment);
      rows_[index] = row;
      rows_[index].moment = std::move(moment);
    };
    keep(0, false);
    keep(1, true);
    keep(2, row.resident_bytes > rows_[2].resident_bytes);
    keep(3, row.recorded_bytes > rows_[3].recorded_bytes);
    keep(4, row.unrecorded_heap_bytes > rows_[4].unrecorded_heap_bytes);
    is_new_ = true;
    is_empty_ = false;
  }

  /// The same, where nothing else happened meanwhile.
  void add(const process_reading& reading, const capture_moment& at) noexcept { add(reading, at, at); }

  /// Takes the heap of a later moment for that before the capture, if it is the larger one: between the first reading and the
  /// first event, other threads allocate what nobody records.
  void raise_heap_before(std::int64_t heap) noexcept {
    if (heap_before_ < 0 || heap <= heap_before_) return;
    heap_before_ = heap;
    for (process_memory& row : rows_) row.heap_before_bytes = heap;
    is_new_ = true;
  }

  /// What later rows say of the container; -1: it has no limit.
  void set_container_limit(std::int64_t bytes) noexcept { container_limit_ = bytes; }

  [[nodiscard]] bool is_empty() const noexcept { return is_empty_; }
  /// Whether there was a reading since the last call.
  [[nodiscard]] bool take_new() noexcept { return std::exchange(is_new_, false); }
  /// Whether the last reading differs from the one at which this was last true by a megabyte, or comes a second later.
  [[nodiscard]] bool take_notable() noexcept {
    constexpr std::int64_t most_bytes = std::int64_t{1} << 20;
    constexpr std::int64_t most_ns = 1'000'000'000;
    const process_memory& last = rows_[1];
    const auto differs = [](std::int64_t bytes, std::int64_t before) { return std::abs(bytes - before) >= most_bytes; };
    if (notable_.time_ns >= 0 && last.time_ns - notable_.time_ns < most_ns &&
        !differs(last.resident_bytes, notable_.resident_bytes) && !differs(last.heap_bytes, notable_.heap_bytes) &&
        !differs(last.recorded_bytes, notable_.recorded_bytes)) {
      return false;
    }
    notable_ = {last.time_ns, last.resident_bytes, last.heap_bytes, last.recorded_bytes};
    return true;
  }
  [[nodiscard]] const process_memory* begin() const noexcept { return rows_.data(); }
  [[nodiscard]] const process_memory* end() const noexcept { return rows_.data() + moments; }

 private:
  struct noted {
    std::int64_t time_ns = -1;  ///< never
    std::int64_t resident_bytes = -1;
    std::int64_t heap_bytes = -1;
    std::int64_t recorded_bytes = 0;
  };

  [[nodiscard]] static std::int64_t allocated_between(const capture_moment& before, const capture_moment& at) noexcept {
    return std::max<std::int64_t>(0, at.allocated_bytes - before.allocated_bytes);
  }

  /// Recorded bytes that were live from `before` to `at`, at least.
  [[nodiscard]] static std::int64_t least_recorded(const capture_moment& before, const capture_moment& at) noexcept {
    return std::max<std::int64_t>(0, std::min(before.recorded_bytes, at.recorded_bytes - allocated_between(before, at)));
  }

  /// What `malloc` may have held of recorded blocks at any time from `before` to `at`: those live before and those allocated
  /// since. A free is recorded before it happens and an allocation after it did, so each other thread that was at work in between
  /// may have had a block more in the heap: one of a mean size.
  [[nodiscard]] static std::int64_t most_recorded(const capture_moment& before, const capture_moment& at,
                                                  std::int64_t threads) noexcept {
    const std::int64_t allocated_blocks = std::max<std::int64_t>(0, at.allocated_blocks - before.allocated_blocks);
    const std::int64_t freed_blocks = std::max<std::int64_t>(0, before.recorded_blocks + allocated_blocks - at.recorded_blocks);
    const std::int64_t unsettled = std::min(threads - 1, allocated_blocks + freed_blocks);
    const std::int64_t mean = at.allocated_blocks > 0 ? at.allocated_bytes / at.allocated_blocks : 0;
    return before.recorded_bytes + allocated_between(before, at) +
           most_overhead_of_block * (before.recorded_blocks + allocated_blocks) + unsettled * (mean + most_overhead_of_block);
  }

  /// glibc's `malloc` takes at least 32 bytes for a block; a larger one has a header and is rounded up to 16 bytes.
  static constexpr std::int64_t most_overhead_of_block = 32;
  /// Freed blocks that glibc keeps for a thread, 7 of each size up to 1,040 bytes, count as in use in `mallinfo2`.
  static constexpr std::int64_t most_cached_by_thread = 7 * (32 + 1040) * 64 / 2;

  std::array<process_memory, moments> rows_;
  std::int64_t container_limit_ = -1;
  std::int64_t heap_before_ = -1;
  std::int64_t alignment_before_ = 0;  ///< when `heap_before_` was found
  bool is_new_ = false;
  bool is_empty_ = true;
  noted notable_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
