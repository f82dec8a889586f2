#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace memprof::test {

using namespace extend;

using detail::label_table;
using detail::scope_address;

/// Where an event happens. A tag is a category's value plus one; 0 is none.
struct where {
  std::uint8_t space = 0;
  std::uint32_t thread = 0;
  std::uint16_t tag = 0;
};

/// Feeds a ledger one event at a time, by name. Stamps are nanoseconds, 100 for the first event and 100 more for each.
class ledger_driver {
 public:
  explicit ledger_driver(const ledger_options& options = {}) : events{options} {
    for (const std::string_view name : {"cpu", "cuda:0", "dram", "l1"}) spaces_[space_count_++] = labels_.intern(name);
  }

  void allocate(std::uint64_t address, std::uint64_t bytes, where at = {}) {
    record({next_stamp(), address, bytes, 0, event_kind::allocate, at.space, at.tag}, at.thread);
  }
  void free(std::uint64_t address, std::uint64_t bytes = 0, where at = {}) {
    record({next_stamp(), address, bytes, 0, event_kind::deallocate, at.space, 0}, at.thread);
  }
  void allocate_on_cores(std::uint64_t address, std::uint64_t bytes, core_range cores, buffer_kind kind, where at = {}) {
    const auto tag = static_cast<std::uint16_t>(at.tag | static_cast<unsigned>(kind) << 8);
    record({next_stamp(), address_on_cores(address, cores), bytes, cores.packed(), event_kind::allocate_on_cores, at.space, tag},
           at.thread);
  }
  void free_on_cores(std::uint64_t address, core_range cores, std::uint64_t bytes = 0, where at = {}) {
    record({next_stamp(), address_on_cores(address, cores), bytes, cores.packed(), event_kind::deallocate_on_cores, at.space, 0},
           at.thread);
  }
  void free_circular_buffers(core_range cores = any_core, where at = {}) {
    record({next_stamp(), 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, at.space, 0}, at.thread);
  }
  void reserve(std::uint64_t address, std::uint64_t bytes, where at = {}, std::string_view stream = {}) {
    record({next_stamp(), address, bytes, label_of(stream), event_kind::reserve, at.space, 0}, at.thread);
  }
  void release(std::uint64_t address, std::uint64_t bytes = 0, where at = {}, std::string_view stream = {}) {
    record({next_stamp(), address, bytes, label_of(stream), event_kind::release, at.space, 0}, at.thread);
  }
  void allocate_on_stream(std::uint64_t address, std::uint64_t bytes, std::string_view stream, where at = {}) {
    record({next_stamp(), address, bytes, label_of(stream), event_kind::allocate_on_stream, at.space, at.tag}, at.thread);
  }
  void free_on_stream(std::uint64_t address, std::string_view stream, where at = {}, std::uint64_t bytes = 0) {
    record({next_stamp(), address, bytes, label_of(stream), event_kind::deallocate_on_stream, at.space, 0}, at.thread);
  }
  void request_free(std::uint64_t address, std::string_view stream, where at = {}, std::uint64_t bytes = 0) {
    record({next_stamp(), address, bytes, label_of(stream), event_kind::deallocate_on_stream, at.space, 1}, at.thread);
  }
  void complete_free(std::uint64_t address, where at = {}, std::uint64_t bytes = 0) {
    record({next_stamp(), address, bytes, 0, event_kind::complete_deallocation, at.space, 0}, at.thread);
  }
  void out_of_memory(std::uint64_t bytes, std::uint64_t device_free, where at = {}) {
    record({next_stamp(), device_free, bytes, 0, event_kind::out_of_memory, at.space, 0}, at.thread);
  }
  void annotate(std::uint64_t address, std::string_view text, category kind, where at = {}) {
    record({next_stamp(), address, 0, labels_.intern(text), event_kind::annotate, at.space, tag_of(kind)}, at.thread);
  }
  /// By default the one begun before is around it: numbers count down the depth.
  void begin(std::string_view name, std::uint32_t number = 1, where at = {}, std::int64_t outer = -1) {
    const std::uint32_t around = outer < 0 ? number - 1 : static_cast<std::uint32_t>(outer);
    record({next_stamp(), scope_address(number, around), 0, labels_.intern(name), event_kind::scope_begin, 0, at.tag}, at.thread);
  }
  /// The thread works for the operation of that number and name on thread `of`. As for `begin`, `number` is its own.
  void adopt(std::string_view name, std::uint32_t adopted, std::uint32_t of, where at, std::uint32_t number = 1,
             std::uint32_t outer = 0) {
    record({next_stamp(), scope_address(number, outer), scope_address(adopted, of), labels_.intern(name), event_kind::scope_begin,
            0, 0},
           at.thread);
  }
  void begin_thread(std::uint32_t thread, std::uint64_t system_id) {
    record({next_stamp(), thread, system_id, 0, event_kind::thread_begin, 0, 0}, thread);
  }
  void end(std::string_view name, std::uint32_t number = 1, where at = {}, std::uint32_t thread = 0) {
    record({next_stamp(), scope_address(number, thread), 0, labels_.intern(name), event_kind::scope_end, 0, 0}, at.thread);
  }
  void snapshot(std::string_view name) { events.end_segment(labels_.intern(name), stamp_); }
  void record(const event& recorded, std::uint32_t thread = 0) { events.apply(&recorded, &recorded + 1, thread); }

  [[nodiscard]] profile open_profile() { return detail::build_profile(events, {labels_, spaces_.data(), clock_, false}); }
  [[nodiscard]] profile finished_profile() { return detail::build_profile(events, {labels_, spaces_.data(), clock_, true}); }
  [[nodiscard]] std::uint64_t next_stamp() { return stamp_ += 100; }
  [[nodiscard]] static std::uint16_t tag_of(category kind) { return static_cast<std::uint16_t>(static_cast<unsigned>(kind) + 1); }

  ledger events;

 private:
  [[nodiscard]] label label_of(std::string_view name) { return name.empty() ? 0 : labels_.intern(name); }

  label_table labels_;
  std::array<label, ledger::max_spaces> spaces_{};
  std::size_t space_count_ = 0;
  clock_readings clock_;
  std::uint64_t stamp_ = 0;
};

}  // namespace memprof::test
