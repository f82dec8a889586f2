#pragma once

#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// @file
/// Values that the program reads but the simulation does not know, through `item()` or a comparison that controls a loop: the
/// program may take another path than in a real run. The profile therefore lists them, with the operation that read them.

namespace memprof::inline MEMPROF_ABI::detail {

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
  void add() {
    const std::pair<label, label> reader{outermost_operator(), event_sink{}.innermost_name()};
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    ++counts_[reader];
  }

  /// A row for each reader. Takes the registry's lock.
  [[nodiscard]] std::vector<unknown_read> rows() const {
    const lock_guard guard{lock_};
    std::vector<unknown_read> result;
    for (const auto& [reader, count] : counts_) {
      const auto& [operation, scope] = reader;
      result.push_back({text_of(operation), text_of(scope), count});
    }
    return result;
  }

 private:
  [[nodiscard]] static std::string text_of(label name) {
    return name == 0 ? std::string{} : std::string{event_sink{}.text_of(name)};
  }

  /// The libtorch operator that the program called; 0 if there is none.
  [[nodiscard]] static label outermost_operator() noexcept {
    const torch_thread* const self = this_torch_thread();
    if (self == nullptr) return 0;
    std::uint32_t first = self->open_count;
    while (first != 0 && self->open[first - 1].end == nullptr) --first;  // a scope with its own end is the program's
    while (first != self->open_count && self->open[first].scope.name == 0) ++first;
    return first == self->open_count ? 0 : self->open[first].scope.name;
  }

  mutable futex_lock lock_;
  std::map<std::pair<label, label>, std::int64_t> counts_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
