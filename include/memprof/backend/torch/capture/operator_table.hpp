#pragma once

#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// An operator and the shapes of its inputs, as numbers that become text only in a profile.
struct operator_key {
  /// The number before an input's sizes is their count, or one of these.
  static constexpr std::int64_t no_tensor = -1;    ///< not a tensor: a number, a flag, nothing
  static constexpr std::int64_t tensor_list = -2;  ///< followed by the number of tensors, then by each of them
  static constexpr std::int64_t unknown = -3;      ///< the only number: the inputs could not be read

  label name = 0;
  std::vector<std::int64_t> inputs;

  bool operator==(const operator_key&) const = default;
};

struct operator_key_hash {
  [[nodiscard]] std::size_t operator()(const operator_key& key) const noexcept {
    std::uint64_t hash = key.name;
    for (const std::int64_t number : key.inputs) hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 32;
  }
};

/// What an operator allocated minus what it freed, in bytes.
struct operator_memory {
  std::int64_t cpu = 0;
  std::int64_t device = 0;
};

/// Writes "[2, 3], [[4], [5]], []": the sizes of tensors in the order of the inputs. Inputs that are not tensors are left out.
class input_shapes_text {
 public:
  explicit input_shapes_text(const std::vector<std::int64_t>& inputs) : inputs_(inputs) {
    while (next_ < inputs_.size()) append_input();
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  void append_input() {
    const std::int64_t kind = inputs_[next_++];
    if (kind == operator_key::no_tensor) return;
    if (kind == operator_key::unknown) {
      text_ += "(unknown: the program is compiled without NDEBUG)";
      return;
    }
    if (!text_.empty() && text_.back() != '[') text_ += ", ";
    if (kind != operator_key::tensor_list) return append_sizes(kind);
    text_ += '[';
    for (std::int64_t left = inputs_[next_++]; left > 0; --left) append_input();
    text_ += ']';
  }

  void append_sizes(std::int64_t rank) {
    text_ += '[';
    for (std::int64_t dimension = 0; dimension < rank; ++dimension) {
      if (dimension != 0) text_ += ", ";
      text_ += std::to_string(inputs_[next_++]);
    }
    text_ += ']';
  }

  const std::vector<std::int64_t>& inputs_;
  std::size_t next_ = 0;
  std::string text_;
};

/// What `track_pytorch_ops` counts on all threads: a row for each combination of operator and shapes, up to `max_rows`, and one
/// for the rest.
class operator_table {
 public:
  static constexpr std::size_t max_rows = 4096;

  /// Used only by the capture with that number.
  void begin(std::uint32_t capture) {
    const recording_suppressor hidden;
    const lock_guard lock{lock_};
    rows_.clear();
    further_ = {};
    untimed_ = 0;
    capture_ = capture;
  }

  /// Adds a call that has ended; ignored if another capture has begun since.
  void add(std::uint32_t capture, const operator_key& key, std::int64_t cpu_time_ns, const operator_memory& self) {
    const recording_suppressor hidden;
    const lock_guard lock{lock_};
    if (capture != capture_) return;
    const auto known = rows_.find(key);
    totals& row = known != rows_.end() ? known->second : rows_.size() < max_rows ? rows_[key] : further_;
    ++row.count;
    row.cpu_time_ns += cpu_time_ns;
    row.memory.cpu += self.cpu;
    row.memory.device += self.device;
  }

  /// Adds the time that an added call took on the device.
  void add_device_time(std::uint32_t capture, const operator_key& key, std::int64_t device_time_ns) {
    const lock_guard lock{lock_};
    if (capture != capture_) return;
    const auto known = rows_.find(key);
    (known != rows_.end() ? known->second : further_).device_time_ns += device_time_ns;
  }

  /// Counts calls whose device time is unknown.
  void add_untimed(std::int64_t calls) {
    const lock_guard lock{lock_};
    untimed_ += calls;
  }

  /// The rows, those that allocated most first. Takes the registry's lock.
  [[nodiscard]] std::vector<pytorch_operation> rows() {
    const lock_guard lock{lock_};
    std::vector<pytorch_operation> result;
    for (const auto& [key, row] : rows_) {
      result.push_back({std::string{event_sink{}.text_of(key.name)}, input_shapes_text{key.inputs}.take(), row.count,
                        row.cpu_time_ns, row.device_time_ns, row.memory.cpu, row.memory.device});
    }
    std::sort(result.begin(), result.end(), allocated_more);
    if (further_.count != 0) {
      result.push_back({"(beyond the first " + std::to_string(max_rows) + " operators and shapes)", "", further_.count,
                        further_.cpu_time_ns, further_.device_time_ns, further_.memory.cpu, further_.memory.device});
    }
    if (untimed_ != 0) result.push_back({"(calls above without a device time)", "", untimed_, 0, 0, 0, 0});
    return result;
  }

 private:
  struct totals {
    std::int64_t count = 0;
    std::int64_t cpu_time_ns = 0;
    std::int64_t device_time_ns = 0;
    operator_memory memory;
  };

  /// By bytes, then by time; the rest only makes the order reproducible.
  [[nodiscard]] static bool allocated_more(const pytorch_operation& left, const pytorch_operation& right) {
    const std::int64_t of_left = add_saturating(left.cpu_memory, left.device_memory);
    const std::int64_t of_right = add_saturating(right.cpu_memory, right.device_memory);
    return std::tie(of_right, right.cpu_time_ns, left.name, left.input_shapes) <
           std::tie(of_left, left.cpu_time_ns, right.name, right.input_shapes);
  }

  futex_lock lock_;
  std::uint32_t capture_ = 0;
  std::unordered_map<operator_key, totals, operator_key_hash> rows_;
  totals further_;
  std::int64_t untimed_ = 0;
};

/// Never destroyed: operators may end as late as the process does.
[[nodiscard]] inline operator_table& process_operator_table() {
  const recording_suppressor hidden;
  static auto* const table = new operator_table;
  return *table;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
