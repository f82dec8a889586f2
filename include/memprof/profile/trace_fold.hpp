#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/saved_state.hpp>
#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/fact_tables.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/saved_state_collector.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// The fold of a trace so far: the ledger of its events, and what explains them. Profiles are built from it.
///
/// A capture feeds one while it records; a trace read from memory or a file feeds another in the same way. Both give the same
/// profile. Not synchronised.
class trace_fold {
 public:
  trace_fold() noexcept = default;
  /// Uses `names`, which must outlive it, instead of the trace's own name records.
  explicit trace_fold(const detail::label_table& names) noexcept : borrowed_names_(&names) {}
  trace_fold(const trace_fold&) = delete;
  trace_fold& operator=(const trace_fold&) = delete;

  /// Like `ledger::limit_work`. Call before the first record.
  void limit_work(std::uint64_t steps) noexcept { work_limit_ = steps; }
  /// Keeps this many segments in full, whatever the capture did; 0: as many as the capture kept. Call before the first record.
  void keep_full_segments(std::uint32_t count) noexcept { full_segments_ = count; }

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info) {
    const std::string encoded = detail::encode_info(info);
    info_.clear();
    if (info_.resize(encoded.size())) std::memcpy(info_.data(), encoded.data(), encoded.size());
    if (!events_) begin(info);
  }
  void name(label id, std::string_view text) noexcept {
    // Ids are 1, 2, 3, ...: a repeated name, as after a gap, is already known.
    if (borrowed_names_ == nullptr && id == own_names_.size() + 1) own_names_.append(text);
  }
  void space(const space_definition& space) noexcept {
    space_names_[space.id] = space.name;
    space_memories_[space.id] = space.memory;
    if (events_) return define(space);
    if (!early_spaces_.push_back(space)) begin({});  // and this one has no limit
  }
  void facts(fact_part&& part) {
    if (part.table.name == process_memory::table) complete_recorded_bytes(part.table);
    facts_.add(std::move(part));
  }
  void events(const event* first, const event* last, std::uint32_t ring) noexcept {
    if (!events_) begin({});
    events_->apply(first, last, ring);
  }
  /// The same for events of several threads, in order.
  void events(const detail::ordered_event* first, const detail::ordered_event* last) noexcept {
    if (!events_) begin({});
    events_->apply(first, last);
  }
  /// Continues from a saved state if events are missing before it.
  bool saved_state(const detail::saved_state_part& part) noexcept {
    if (!events().is_behind()) return true;
    if (!saved_state_.add(part)) return true;
    const bool is_sound = detail::read_saved_state(events(), saved_state_.data(), saved_state_.size());
    saved_state_.clear();
    if (is_sound) return true;
    const event gap{0, 0, 1, 0, event_kind::gap, any_space, 0};
    events().apply(&gap, &gap + 1, detail::no_ring_id);
    return false;
  }

  // --- queries for a profile ----------------------------------------------------------------------------------------

  [[nodiscard]] capture_info info() const {
    capture_info decoded;
    (void)detail::decode_info({info_.data(), info_.size()}, decoded);
    return decoded;
  }
  [[nodiscard]] name_view names() const noexcept { return borrowed_names_ != nullptr ? *borrowed_names_ : name_view{own_names_}; }
  /// By memory space id.
  [[nodiscard]] const label* space_names() const noexcept { return space_names_; }
  [[nodiscard]] const vector<fact_table>& facts() const noexcept { return facts_.all(); }
  [[nodiscard]] std::array<const void*, 2> memory_of_facts() const noexcept { return facts_.memory(); }
  /// The same, for the last profile.
  [[nodiscard]] vector<fact_table> take_facts() noexcept { return facts_.take(); }
  /// Rows of facts that the trace lacks, or that are beyond the limits.
  [[nodiscard]] std::uint64_t missing_fact_rows() const noexcept { return facts_.missing_rows(); }
  [[nodiscard]] ledger& events() noexcept {
    if (!events_) begin({});
    return *events_;
  }

  /// Writes a saved state of the trace so far; the reader must know all its names. False if the system has no memory for it.
  [[nodiscard]] bool write_saved_state(detail::page_array<unsigned char>& bytes) noexcept {
    return detail::write_saved_state(events(), bytes);
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(trace_fold) + (events_ ? events_->bytes() - sizeof(ledger) : 0) + own_names_.bytes() + info_.bytes() +
           early_spaces_.bytes();
  }

 private:
  void begin(const capture_info& info) noexcept {
    events_.emplace(ledger_options{info.timeline_points, info.largest_blocks, info.owners_per_segment,
                                   full_segments_ == 0 ? info.full_segments : full_segments_, info.segment_names, info.operations,
                                   info.leading_thread},
                    info.begin_stamp);
    if (work_limit_) events_->limit_work(*work_limit_);
    for (std::size_t index = 0; index < early_spaces_.size(); ++index) define(early_spaces_[index]);
    early_spaces_.clear();
  }
  void define(const space_definition& space) noexcept {
    if (space.capacity != 0) (void)events_->limit(space.id, space.capacity, space.is_per_core);
    if (space.memory != 0) (void)events_->place(space.id, space.memory);
  }

  /// Of the live blocks in the host's memory.
  [[nodiscard]] std::int64_t live_host_bytes() noexcept {
    std::int64_t sum = 0;
    for (std::size_t id = 0; id < ledger::max_spaces; ++id) {
      if (space_memories_[id] != host_memory && space_names_[id] != other_names) continue;
      if (const detail::space_ledger* const space = events().space(static_cast<std::uint8_t>(id))) sum += space->live();
    }
    return sum;
  }

  /// The cell of a row of `process_memory` in that column; null if it has none.
  [[nodiscard]] static std::int64_t* number_in(fact_table& table, vector<fact_value>& row, std::string_view column) {
    for (std::size_t index = 0; index < table.columns.size() && index < row.size(); ++index)
      if (table.columns[index] == column) return std::get_if<std::int64_t>(&row[index]);
    return nullptr;
  }

  /// Fills in what the capture left to the reader: `process_memory::recorded_bytes`. A table has the earlier readings again.
  [[gnu::cold, gnu::noinline]] void complete_recorded_bytes(fact_table& table) {
    for (vector<fact_value>& row : table.rows) {
      std::int64_t* const recorded = number_in(table, row, "recorded_bytes");
      const std::int64_t* const time = number_in(table, row, "time_ns");
      if (recorded == nullptr || time == nullptr || *recorded != -1) continue;
      *recorded = recorded_at(*time);
    }
  }

  /// As the reading of that time in the table so far says; if there is none, it is of now.
  [[nodiscard]] std::int64_t recorded_at(std::int64_t time_ns) {
    std::int64_t bytes = -1;
    detail::for_each_fact<process_memory>(facts_.all(), [&](const process_memory& earlier) {
      if (earlier.time_ns == time_ns) bytes = earlier.recorded_bytes;
    });
    return bytes == -1 ? live_host_bytes() : bytes;
  }

  const detail::label_table* borrowed_names_ = nullptr;
  detail::label_table own_names_;
  detail::page_array<char> info_;  ///< encoded, because an active capture holds nothing from `operator new`
  label space_names_[any_space + 1] = {};
  label space_memories_[any_space + 1] = {};
  detail::page_array<space_definition> early_spaces_;  ///< those before the capture's information, without which no ledger begins
  detail::fact_tables facts_;
  std::optional<std::uint64_t> work_limit_;
  std::uint32_t full_segments_ = 0;
  std::optional<ledger> events_;
  detail::saved_state_collector saved_state_;
};

static_assert(trace_visitor<trace_fold>);

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
