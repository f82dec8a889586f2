#pragma once

#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/simulation/simulating_thread.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <c10/util/Exception.h>

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// @file
/// What the simulation does not know but the program decides by: values that it reads, through `item()` or a comparison that
/// controls a loop, and sizes that depend on data. The program may take another path than in a real run. The profile therefore
/// lists them, with the operation around them, and is not exact.

namespace memprof::inline MEMPROF_ABI::detail {

/// The libtorch operator that the program called; 0 if there is none.
[[nodiscard]] inline label outermost_operator() noexcept {
  const torch_thread* const self = this_torch_thread();
  if (self == nullptr) return 0;
  std::uint32_t first = self->open_count;
  while (first != 0 && self->open[first - 1].end == nullptr) --first;  // a scope with its own end is the program's
  while (first != self->open_count && self->open[first].scope.name == 0) ++first;
  return first == self->open_count ? 0 : self->open[first].scope.name;
}

[[nodiscard]] inline std::string text_of_label(label name) {
  return name == 0 ? std::string{} : std::string{event_sink{}.text_of(name)};
}

/// What a read value does in most programs.
enum class read_use : std::uint8_t {
  is_certain,  ///< a truth value that is the same for all finite numbers
  prints,      ///< a floating-point number
  steers       ///< a truth value or an integer, or a number whose truth is asked for
};

/// How often one reader may read while no other reads for the first time; see `set_torch_read_limit`.
[[gnu::visibility("default")]] inline constinit std::atomic<std::int64_t> read_limit{100'000};

/// The unknown reads of a capture. Thread-safe; grows with the number of different operations.
class unknown_reads {
 public:
  [[nodiscard]] static unknown_reads& instance() {
    const recording_suppressor hidden;
    static auto* const all = new unknown_reads;
    return *all;
  }

  void begin() {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    counts_.clear();
  }

  /// Call when the current thread reads such a value.
  void add(read_use use) { add(use, outermost_operator()); }

  /// The same, by the operator or function `called`. Throws `c10::Error` at the limit.
  void add(read_use use, label called) {
    static const label asks_for_truth = event_sink{}.label_of("aten::is_nonzero");
    const bool decides = use != read_use::is_certain && this_simulating_thread.open_prints == 0;
    reader who{called, event_sink{}.innermost_name(), decides ? use : read_use::prints};
    if (decides && who.called == asks_for_truth) who.use = read_use::steers;
    const std::int64_t repeats = count(who);
    // Relaxed: the program sets the limit before it runs.
    if (repeats >= read_limit.load(std::memory_order_relaxed)) [[unlikely]]
      refuse(who, repeats);
  }

  /// Call when the program decides by a number that it has read before. Many such decisions are no loop that waits.
  void add_decision(label called) { (void)count({called, event_sink{}.innermost_name(), read_use::steers}); }

  /// A row for each reader. Takes the registry's lock.
  [[nodiscard]] std::vector<unknown_read> rows() const {
    const lock_guard guard{lock_};
    std::vector<unknown_read> result;
    for (const auto& [who, reads] : counts_) {
      const bool steers = who.use == read_use::steers;
      result.push_back({text_of_label(who.called), text_of_label(who.operation), reads.all, steers ? 1 : 0});
    }
    return result;
  }

 private:
  struct reader {
    label called = 0;
    label operation = 0;
    read_use use = read_use::prints;

    auto operator<=>(const reader&) const = default;
  };
  struct tally {
    std::int64_t all = 0;
    std::int64_t repeats = 0;  ///< since a reader last read for the first time
  };

  /// A loop may read several values in each round, such as the one that ends it and one to print: each has its own number. Only
  /// a reader that is new shows that the program has come further.
  [[nodiscard]] std::int64_t count(const reader& who) {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    const auto [found, is_new] = counts_.try_emplace(who);
    if (is_new) {
      for (auto& [other, reads] : counts_) reads.repeats = 0;
    }
    ++found->second.all;
    return ++found->second.repeats;
  }

  /// Ends a loop that waits for data which a simulated run does not have.
  [[noreturn, gnu::cold]] static void refuse(const reader& who, std::int64_t repeats) {
    const std::string around = who.operation == 0 ? "" : " in '" + text_of_label(who.operation) + "'";
    TORCH_CHECK(
        false, "NO_DISPATCH: '", text_of_label(who.called), "'", around, " has read a value that the simulation does not know ",
        repeats,
        " times without any progress, so the program seems to wait for it; make the data that decides in a memprof::real_scope, ",
        "limit the loop, or call memprof::set_torch_read_limit with a higher number");
  }

  mutable futex_lock lock_;
  std::map<reader, tally> counts_;
};

/// The calls of a capture whose results have sizes that depend on unknown data. Thread-safe; grows with the number of different
/// operators and operations.
class assumed_sizes {
 public:
  [[nodiscard]] static assumed_sizes& instance() {
    const recording_suppressor hidden;
    static auto* const all = new assumed_sizes;
    return *all;
  }

  void begin() {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    rows_.clear();
  }

  /// A call of the operator `name` that allocated `bytes`. `name` and `cause` must never be destroyed.
  void add(const std::string& name, const char* cause, std::int64_t assumed, std::int64_t most, std::int64_t bytes) {
    if (this_simulating_thread.open_prints != 0) return;  // the numbers that are not zero: few, and mostly all
    const place where{&name, event_sink{}.innermost_name(), cause};
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    assumed_size& row = rows_[where];
    ++row.count;
    row.assumed += assumed;
    row.most += most;
    row.bytes += bytes;
  }

  /// A row for each operator, operation and cause. Takes the registry's lock.
  [[nodiscard]] std::vector<assumed_size> rows() const {
    const lock_guard guard{lock_};
    std::vector<assumed_size> result;
    for (const auto& [where, row] : rows_) {
      result.push_back(row);
      result.back().name = *where.name;
      result.back().operation = text_of_label(where.operation);
      result.back().cause = where.cause;
    }
    return result;
  }

 private:
  struct place {
    const std::string* name;
    label operation;
    const char* cause;

    auto operator<=>(const place&) const = default;
  };

  mutable futex_lock lock_;
  std::map<place, assumed_size> rows_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
