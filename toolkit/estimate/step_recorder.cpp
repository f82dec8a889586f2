#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/estimate/step_recorder.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

step_recorder::step_recorder(std::string_view space, std::int64_t capacity, const capture_info& info,
                             allocation_sequence* sequence, trace* recorded)
    : fold_{labels_}, sequence_{sequence}, recorded_{recorded} {
  fold_.info(info);
  if (recorded_ != nullptr) recorded_->info(info);
  const space_definition defined{cpu_space, intern(space), capacity, false};
  fold_.space(defined);
  if (sequence_ != nullptr) sequence_->space(defined);
  if (recorded_ != nullptr) recorded_->space(defined);
  put_clock_reading();
}

std::uint64_t step_recorder::allocate(std::int64_t bytes, optional_category kind) {
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

void step_recorder::deallocate(std::uint64_t address, std::int64_t bytes) {
  if (is_finished_) return;
  live_ -= bytes;
  record({0, address, static_cast<std::uint64_t>(bytes), 0, event_kind::deallocate, cpu_space, 0});
}

void step_recorder::begin_operation(std::string_view name, optional_category kind) {
  const std::uint32_t outer = open_.empty() ? 0 : open_.back();
  open_.push_back(++last_operation_);
  record({0, scope_address(last_operation_, outer), 0, intern(name), event_kind::scope_begin, any_space, kind.tag()});
}

void step_recorder::end_operation(std::string_view name) {
  record({0, scope_address(open_.back(), 0), 0, intern(name), event_kind::scope_end, any_space, 0});
  open_.pop_back();
}

profile step_recorder::finish() {
  put_clock_reading();
  record({0, 0, 0, 0, event_kind::capture_end, any_space, 0});
  flush();
  is_finished_ = true;
  return build_profile_of(fold_);
}

label step_recorder::intern(std::string_view name) {
  const std::size_t before = labels_.size();
  const label known = labels_.intern(name);
  if (known == 0) raise("out of memory for the estimate");
  if (labels_.size() == before) return known;
  if (sequence_ != nullptr) sequence_->name(known, name);
  if (recorded_ != nullptr) recorded_->name(known, name);
  return known;
}

void step_recorder::record(event recorded) {
  recorded.stamp = ++stamp_;
  buffer_[filled_++] = recorded;
  if (filled_ == buffer_.size()) flush();
}

void step_recorder::flush() {
  fold_.events(buffer_.data(), buffer_.data() + filled_, 0);
  if (sequence_ != nullptr) sequence_->events(buffer_.data(), buffer_.data() + filled_, 0);
  if (recorded_ != nullptr) recorded_->events(buffer_.data(), buffer_.data() + filled_, 0);
  filled_ = 0;
}

step_tensor::step_tensor(step_recorder& recorder, std::int64_t bytes, optional_category kind)
    : recorder_{&recorder}, address_{recorder.allocate(bytes, kind)}, bytes_{bytes} {}

step_tensor& step_tensor::operator=(step_tensor&& other) noexcept {
  step_tensor{std::move(other)}.swap(*this);
  return *this;
}

step_tensor::~step_tensor() {
  if (recorder_ != nullptr) recorder_->deallocate(address_, bytes_);
}

void step_tensor::swap(step_tensor& other) noexcept {
  std::swap(recorder_, other.recorder_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
}

step_operation::step_operation(step_recorder& recorder, std::string_view name, optional_category kind)
    : recorder_{recorder}, name_{name} {
  recorder_.begin_operation(name, kind);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
