#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The trace of a step that is never run, folded like that of a program, so that an estimate is a profile like any other.

namespace memprof::inline MEMPROF_ABI::detail {

/// Makes and folds the events of one thread in one memory space. Time is the number of events. Its tensors and operations must
/// not outlive it.
class step_recorder {
 public:
  /// `sequence` and `recorded`, if given, get the same events: the one for replays through an allocator model, the other to keep
  /// them.
  step_recorder(std::string_view space, std::int64_t capacity, const capture_info& info, allocation_sequence* sequence,
                trace* recorded)
      : fold_{labels_}, sequence_{sequence}, recorded_{recorded} {
    fold_.info(info);
    if (recorded_ != nullptr) recorded_->info(info);
    const space_definition defined{cpu_space, intern(space), capacity, false};
    fold_.space(defined);
    if (sequence_ != nullptr) sequence_->space(defined);
    if (recorded_ != nullptr) recorded_->space(defined);
    put_clock_reading();
  }
  step_recorder(const step_recorder&) = delete;
  step_recorder& operator=(const step_recorder&) = delete;

  /// The address of a new block. Raises an error if the live bytes do not fit in 63 bits.
  [[nodiscard]] std::uint64_t allocate(std::int64_t bytes, optional_category kind) {
    std::int64_t live = 0;
    if (__builtin_add_overflow(live_, bytes, &live)) raise("the estimate does not fit 63 bits: a size is too large");
    live_ = live;
    constexpr std::uint64_t alignment = 512;
    const std::uint64_t address = next_address_;
    // Addresses are never reused; 2^64 bytes are enough.
    next_address_ += (static_cast<std::uint64_t>(bytes) / alignment + 1) * alignment;
    record({0, address, static_cast<std::uint64_t>(bytes), 0, event_kind::allocate, cpu_space, kind.tag()});
    return address;
  }
  void deallocate(std::uint64_t address, std::int64_t bytes) {
    if (is_finished_) return;
    live_ -= bytes;
    record({0, address, static_cast<std::uint64_t>(bytes), 0, event_kind::deallocate, cpu_space, 0});
  }

  void begin_operation(std::string_view name, optional_category kind) {
    const std::uint32_t outer = open_.empty() ? 0 : open_.back();
    open_.push_back(++last_operation_);
    record({0, scope_address(last_operation_, outer), 0, intern(name), event_kind::scope_begin, any_space, kind.tag()});
  }
  void end_operation(std::string_view name) {
    record({0, scope_address(open_.back(), 0), 0, intern(name), event_kind::scope_end, any_space, 0});
    open_.pop_back();
  }
  void end_segment(std::string_view name) { record({0, 0, 0, intern(name), event_kind::segment_end, any_space, 0}); }

  /// The profile so far; nothing more is recorded.
  [[nodiscard]] profile finish() {
    put_clock_reading();
    record({0, 0, 0, 0, event_kind::capture_end, any_space, 0});
    flush();
    is_finished_ = true;
    return build_profile_of(fold_);
  }

 private:
  [[nodiscard]] label intern(std::string_view name) {
    const std::size_t before = labels_.size();
    const label known = labels_.intern(name);
    if (known == 0) raise("out of memory for the estimate");
    if (labels_.size() == before) return known;
    if (sequence_ != nullptr) sequence_->name(known, name);
    if (recorded_ != nullptr) recorded_->name(known, name);
    return known;
  }

  void put_clock_reading() { record({0, stamp_, 0, 0, event_kind::clock_reading, any_space, 0}); }

  void record(event recorded) {
    recorded.stamp = ++stamp_;
    buffer_[filled_++] = recorded;
    if (filled_ == buffer_.size()) flush();
  }

  void flush() {
    fold_.events(buffer_.data(), buffer_.data() + filled_, 0);
    if (sequence_ != nullptr) sequence_->events(buffer_.data(), buffer_.data() + filled_, 0);
    if (recorded_ != nullptr) recorded_->events(buffer_.data(), buffer_.data() + filled_, 0);
    filled_ = 0;
  }

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
  step_tensor(step_recorder& recorder, std::int64_t bytes, optional_category kind = {})
      : recorder_{&recorder}, address_{recorder.allocate(bytes, kind)}, bytes_{bytes} {}
  step_tensor(step_tensor&& other) noexcept { swap(other); }
  step_tensor& operator=(step_tensor&& other) noexcept {
    step_tensor{std::move(other)}.swap(*this);
    return *this;
  }
  ~step_tensor() {
    if (recorder_ != nullptr) recorder_->deallocate(address_, bytes_);
  }

  void free() noexcept { step_tensor{}.swap(*this); }
  [[nodiscard]] bool empty() const noexcept { return recorder_ == nullptr; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  void swap(step_tensor& other) noexcept {
    std::swap(recorder_, other.recorder_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }

  step_recorder* recorder_ = nullptr;
  std::uint64_t address_ = 0;
  std::int64_t bytes_ = 0;
};

/// An operation that is open until the end of the scope.
class [[nodiscard]] step_operation {
 public:
  /// `name` must outlive the operation.
  step_operation(step_recorder& recorder, std::string_view name, optional_category kind = {}) : recorder_{recorder}, name_{name} {
    recorder_.begin_operation(name, kind);
  }
  step_operation(const step_operation&) = delete;
  step_operation& operator=(const step_operation&) = delete;
  ~step_operation() { recorder_.end_operation(name_); }

 private:
  step_recorder& recorder_;
  std::string_view name_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
