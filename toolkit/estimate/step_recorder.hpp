#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// @file
/// The trace of a step that is never run, folded like that of a program, so that an estimate is a profile like any other.

namespace memprof::inline MEMPROF_ABI {

class allocation_sequence;
class trace;

namespace detail {

/// Makes and folds the events of one thread in one memory space. Time is the number of events. Its tensors and operations must
/// not outlive it.
class step_recorder {
 public:
  /// `sequence` and `recorded`, if given, get the same events: the one for replays through an allocator model, the other to keep
  /// them.
  step_recorder(std::string_view space, std::int64_t capacity, const capture_info& info, allocation_sequence* sequence,
                trace* recorded);
  step_recorder(const step_recorder&) = delete;
  step_recorder& operator=(const step_recorder&) = delete;

  /// The address of a new block. Raises an error if the live bytes do not fit in 63 bits.
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, optional_category kind);
  void deallocate(std::uint64_t address, std::int64_t bytes);

  void begin_operation(std::string_view name, optional_category kind);
  void end_operation(std::string_view name);
  void end_segment(std::string_view name) { record({0, 0, 0, intern(name), event_kind::segment_end, any_space, 0}); }

  /// The profile so far; nothing more is recorded.
  [[nodiscard]] profile finish();

 private:
  [[nodiscard]] label intern(std::string_view name);

  void put_clock_reading() { record({0, stamp_, 0, 0, event_kind::clock_reading, any_space, 0}); }

  void record(event recorded);
  void flush();

  label_table labels_;
  trace_fold fold_;
  allocation_sequence* sequence_;
  trace* recorded_;
  std::array<event, 256> buffer_;
  std::size_t filled_ = 0;
  std::uint64_t stamp_ = 0;
  std::vector<std::uint32_t> open_;
  std::uint32_t last_operation_ = 0;
  std::uint64_t next_address_ = 512;
  std::int64_t live_ = 0;
  bool is_finished_ = false;
};

/// A block that lives as long as this object, or until `free`.
class step_tensor {
 public:
  step_tensor() noexcept = default;
  step_tensor(step_recorder& recorder, std::int64_t bytes, optional_category kind = {});
  step_tensor(step_tensor&& other) noexcept { swap(other); }
  step_tensor& operator=(step_tensor&& other) noexcept;
  ~step_tensor();

  void free() noexcept { step_tensor{}.swap(*this); }
  [[nodiscard]] bool empty() const noexcept { return recorder_ == nullptr; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  void swap(step_tensor& other) noexcept;

  step_recorder* recorder_ = nullptr;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
};

/// An operation that is open until the end of the scope.
class [[nodiscard]] step_operation {
 public:
  /// `name` must outlive the operation.
  step_operation(step_recorder& recorder, std::string_view name, optional_category kind = {});
  step_operation(const step_operation&) = delete;
  step_operation& operator=(const step_operation&) = delete;
  ~step_operation() { recorder_.end_operation(name_); }

 private:
  step_recorder& recorder_;
  std::string_view name_;
};

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
