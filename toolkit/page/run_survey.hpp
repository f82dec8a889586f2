#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/page/address_regions.hpp>
#include <memprof/toolkit/page/block_follower.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a page must know about a trace before it can choose what to show: its length, the bytes of each owner, the addresses of
/// blocks, the steps. A `trace_visitor` that also folds the profile, so that one pass gives both.
class run_survey {
 public:
  /// Bytes of one owner, by `followed_block::owner_key`.
  struct owner_total {
    std::int64_t live = 0;
    std::int64_t greatest = -1;  ///< -1: it never had a block
  };

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info) {
    if (events_ == 0) {
      segment_begin_.stamp = now_ = info.begin_stamp;
      clock_ = clock_readings{info.begin_stamp};
    }
    fold_.info(info);
  }
  void name(label id, std::string_view text) {
    if (text == end_segment_name) end_name_ = id;
    fold_.name(id, text);
  }
  void space(const space_definition& space) { fold_.space(space); }
  void facts(fact_part&& part) { fold_.facts(std::move(part)); }
  void events(const event* first, const event* last, std::uint32_t ring) {
    for (; first != last; ++first, ++events_) {
      now_ = std::max(now_, first->stamp);
      if (first->kind == event_kind::segment_end) end_segment(first->label, events_ + 1);
      if (first->kind == event_kind::clock_reading) clock_.add(first->stamp, static_cast<std::int64_t>(first->address));
      follower_.apply(fold_.events(), *first, ring, {events_, now_}, *this);
      if (changes_allocator(first->kind) && fold_.events().space(first->space) != nullptr) count_activity(first->space);
    }
  }

  /// Call after the last event.
  void finish() {
    if (!fold_.events().has_ended()) end_segment(0, events_);
    steps_.finish();
    for (address_regions& each : regions_) each.finish();
  }

  // --- results ------------------------------------------------------------------------------------------------------

  [[nodiscard]] trace_fold& fold() noexcept { return fold_; }
  [[nodiscard]] const trace_fold& fold() const noexcept { return fold_; }
  [[nodiscard]] std::uint64_t event_count() const noexcept { return events_; }
  /// The stamp of the last event.
  [[nodiscard]] std::uint64_t last_stamp() const noexcept { return now_; }
  /// The readings of the whole trace, so that earlier events can be placed too.
  [[nodiscard]] const clock_readings& clock() const noexcept { return clock_; }
  [[nodiscard]] const step_survey& steps() const noexcept { return steps_; }
  /// By id of the space, like the next.
  [[nodiscard]] const std::vector<owner_total>& owners(std::size_t space) const noexcept { return owners_[space]; }
  [[nodiscard]] const address_regions& regions(std::size_t space) const noexcept { return regions_[space]; }
  /// Events that changed what was live, active or reserved.
  [[nodiscard]] std::uint64_t activity(std::size_t space) const noexcept {
    return space < activity_.size() ? activity_[space] : 0;
  }

  // --- called by a block_follower -----------------------------------------------------------------------------------

  void began(std::size_t space, const followed_block& block) {
    count_activity(space);
    regions_[space].add(block.address, block.bytes);
    change_owner(space, block.owner_key(), block.bytes);
  }
  void ended(std::size_t space, const followed_block& block) {
    count_activity(space);
    change_owner(space, block.owner_key(), -block.bytes);
  }
  void relabelled(std::size_t space, const followed_block& before, const followed_block& after) {
    change_owner(space, before.owner_key(), -before.bytes);
    change_owner(space, after.owner_key(), after.bytes);
  }

 private:
  static constexpr std::size_t max_spaces = ledger::max_spaces + 1;

  void count_activity(std::size_t space) {
    if (space >= activity_.size()) {
      activity_.resize(space + 1);
      last_active_.resize(space + 1);
    }
    if (last_active_[space] == events_ + 1) return;  // one event may end several blocks
    if (last_active_[space] <= segment_begin_.event) changed_.push_back(static_cast<std::uint8_t>(space));
    last_active_[space] = events_ + 1;
    ++activity_[space];
  }

  void change_owner(std::size_t space, std::size_t key, std::int64_t bytes) {
    std::vector<owner_total>& totals = owners_[space];
    if (key >= totals.size()) totals.resize(std::max(key + 1, 2 * totals.size()));
    totals[key].live += bytes;
    totals[key].greatest = std::max(totals[key].greatest, totals[key].live);
  }

  /// Called before the ledger sees the event, so the segment is still open there. `behind`: the first event after it.
  void end_segment(label name, std::uint64_t behind) {
    usage_.clear();
    std::sort(changed_.begin(), changed_.end());
    for (const std::uint8_t id : changed_) {
      const segment_record record = fold_.events().space(id)->open_segment();
      const std::int64_t change = record.live_at_end - record.live_at_start;
      usage_.push_back({id, record.live_at_peak - record.live_at_start, record.allocated, record.allocated - change, change,
                        record.live_at_peak, record.live_at_end});
    }
    changed_.clear();
    const moment end{behind, now_};
    if (name != 0 && name == end_name_) {
      steps_.end_of_capture(usage_, activity_);
    } else {
      steps_.end_segment(name, segment_begin_, end, usage_, activity_);
    }
    segment_begin_ = end;
  }

  trace_fold fold_;
  block_follower follower_;
  std::uint64_t events_ = 0;
  std::uint64_t now_ = 0;
  clock_readings clock_;
  step_survey steps_;
  label end_name_ = 0;  ///< of the segment that ends with the capture
  moment segment_begin_;
  std::vector<std::uint8_t> changed_;  ///< the spaces with activity in the open segment
  std::vector<page_segment_usage> usage_;
  std::vector<std::uint64_t> activity_;     ///< by id of the space, for the spaces so far; likewise the next
  std::vector<std::uint64_t> last_active_;  ///< the last event counted, plus 1
  std::array<std::vector<owner_total>, max_spaces> owners_;
  std::array<address_regions, max_spaces> regions_;
};
static_assert(trace_visitor<run_survey>);

}  // namespace memprof::inline MEMPROF_ABI::detail
