#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/event_writer.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/open_operation.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// Makes a trace of data recorded elsewhere: a file of another system, or a test. Needs no capture and disturbs none.
///
/// Events get the thread and time that were set last. Times must not run backwards: an event earlier than its predecessor is
/// given the predecessor's time. `finish` ends the trace.
///
/// @code
/// memprof::trace result;
/// memprof::extend::trace_writer writer{result};
/// const memprof::extend::space_id dram = writer.space("dram");
/// for (const row& each : rows) {
///   writer.at(each.time_ns);
///   each.is_free ? writer.deallocate(dram, each.address) : writer.allocate(dram, each.address, each.bytes);
/// }
/// writer.finish();
/// @endcode
class trace_writer {
 public:
  using open_operation_type = open_operation;

  /// Begins a trace in `target`, which must be empty and outlive the writer.
  explicit trace_writer(trace& target, capture_info info = {}) : target_(target) {
    info.begin_stamp = 1;
    target_.info(info);
    (void)space("cpu", 0, false, host_memory_name);  // has the same id in every trace
    put_own({stamp(), 0, 0, 0, event_kind::clock_reading, any_space, 0});
  }
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;

  // --- where and when -----------------------------------------------------------------------------------------------

  /// Sets the time of the following events, in nanoseconds since the trace began.
  void at(std::int64_t ns) noexcept {
    if (ns > now_ns_) now_ns_ = ns;
  }
  /// Sets the thread of the following events; the caller numbers threads from 1. A thread's first call may name it.
  void on_thread(std::uint32_t number, std::string_view name = {}, std::uint64_t system_id = 0) {
    thread_ = &threads_[number];
    if (thread_->number != 0) return;
    thread_->number = number;
    put({stamp(), number, system_id, name.empty() ? 0 : label_of(name), event_kind::thread_begin, any_space, 0});
  }

  /// The space with that name, created if new. `capacity` is in bytes, per core if `is_per_core`. `memory` names the memory
  /// shared with other spaces, such as `host_memory_name`; if empty, the space has a memory to itself. Both only matter for a new
  /// space.
  [[nodiscard]] space_id space(std::string_view name, std::int64_t capacity = 0, bool is_per_core = false,
                               std::string_view memory = {}) {
    const label wanted = label_of(name);
    for (std::size_t id = 0; id < space_count_; ++id) {
      if (spaces_[id] == wanted) return {static_cast<std::uint8_t>(id)};
    }
    if (space_count_ == any_space)
      detail::raise("trace_writer: cannot add '" + std::string{name} + "': a trace has at most 255 memory spaces");
    const auto id = static_cast<std::uint8_t>(space_count_);
    spaces_[space_count_++] = wanted;
    const label shared = memory.empty() || memory == name ? 0 : memory == host_memory_name ? host_memory : label_of(memory);
    target_.space({id, wanted, capacity, is_per_core, shared});
    return {id};
  }

  // --- events -------------------------------------------------------------------------------------------------------

  void allocate(space_id space, block_address address, std::size_t bytes, optional_category category = {}) {
    put({stamp(), address.value, bytes, 0, event_kind::allocate, space.value, category.tag()});
  }
  /// `bytes`, if given, is compared with the allocated size.
  void deallocate(space_id space, block_address address, std::size_t bytes = 0) {
    put({stamp(), address.value, bytes, 0, event_kind::deallocate, space.value, 0});
  }
  /// Describes the live block at `address`, whichever space it is in.
  void annotate(block_address address, const annotation& description) {
    const label text = detail::annotation_text::is_empty(description) ? 0 : label_of(detail::annotation_text{description}.view());
    put({stamp(), address.value, 0, text, event_kind::annotate, any_space, description.category.tag()});
  }
  /// Adds any other event and sets its stamp. Its ids are those of `space` and `label_of`.
  void put_event(event other) {
    other.stamp = stamp();
    put(other);
  }

  [[nodiscard]] open_operation begin_operation(std::string_view name, optional_category category = {}) {
    thread_state& self = current();
    const open_operation opened{++self.last_operation, self.number, self.innermost, label_of(name), 0};
    self.innermost = opened.number;
    put({stamp(), detail::scope_address(opened.number, opened.outer), 0, opened.name, event_kind::scope_begin, any_space,
         category.tag()});
    return opened;
  }
  void end_operation(const open_operation& ended) {
    thread_state& self = current();
    const bool is_own = self.number == ended.thread;
    if (is_own && self.innermost == ended.number) self.innermost = ended.outer;
    put({stamp(), detail::scope_address(ended.number, is_own ? 0 : ended.thread), 0, ended.name, event_kind::scope_end, any_space,
         0});
  }

  /// Ends the current segment.
  void end_segment(std::string_view name) { put_own({stamp(), 0, 0, label_of(name), event_kind::segment_end, any_space, 0}); }
  /// Keeps what is live now; an empty name means a periodic checkpoint.
  void checkpoint(std::string_view name) {
    put_own({stamp(), 0, 0, name.empty() ? 0 : label_of(name), event_kind::checkpoint, any_space, 0});
  }
  /// Replaces the table with the same name.
  void add_facts(const fact_table& facts) { target_.facts(facts); }

  /// Ends the trace, with a last segment unless its name is empty.
  void finish(std::string_view last_segment = "END_TRACE") {
    put_own({stamp(), static_cast<std::uint64_t>(now_ns_), 0, 0, event_kind::clock_reading, any_space, 0});
    if (!last_segment.empty()) end_segment(last_segment);
    put_own({stamp(), 0, 0, 0, event_kind::capture_end, any_space, 0});
  }

  /// The id of a name in the trace.
  [[nodiscard]] label label_of(std::string_view text) {
    const std::size_t known = names_.size();
    const label id = names_.intern(text);
    if (names_.size() != known) target_.name(id, names_.text(id));
    return id;
  }

 private:
  struct thread_state {
    std::uint32_t number = 0;
    std::uint32_t last_operation = 0;
    std::uint32_t innermost = 0;
  };

  [[nodiscard]] std::uint64_t stamp() const noexcept { return static_cast<std::uint64_t>(now_ns_) + 1; }
  [[nodiscard]] thread_state& current() {
    if (thread_ == nullptr) on_thread(1);
    return *thread_;
  }
  void put(const event& happened) { target_.events(&happened, &happened + 1, current().number); }
  void put_own(const event& happened) { target_.events(&happened, &happened + 1, detail::no_ring_id); }

  trace& target_;
  detail::label_table names_;
  label spaces_[any_space] = {};
  std::size_t space_count_ = 0;
  std::int64_t now_ns_ = 0;
  std::unordered_map<std::uint32_t, thread_state> threads_;
  thread_state* thread_ = nullptr;
};

static_assert(event_writer<trace_writer>);

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
