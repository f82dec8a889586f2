#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/page/address_regions.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

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
  /// Bytes of one owner, by `page_block::owner_key`.
  struct owner_total {
    std::int64_t live = 0;
    std::int64_t greatest = -1;  ///< -1: it never had a block
  };

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info);
  void name(label id, std::string_view text);
  void space(const space_definition& space) { fold_.space(space); }
  void facts(fact_part&& part) { fold_.facts(std::move(part)); }
  void events(const event* first, const event* last, std::uint32_t ring);

  /// Call after the last event.
  void finish();

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

  // --- called by a block_visitor -----------------------------------------------------------------------------------

  void began(std::size_t space, const page_block& block);
  void ended(std::size_t space, const page_block& block);
  void relabelled(std::size_t space, const page_block& before, const page_block& after);

 private:
  static constexpr std::size_t max_spaces = ledger::max_spaces + 1;

  void count_activity(std::size_t space);

  void change_owner(std::size_t space, std::size_t key, std::int64_t bytes);

  /// Called before the ledger sees the event, so the segment is still open there. `behind`: the first event after it.
  void end_segment(label name, std::uint64_t behind);

  trace_fold fold_;
  block_visitor visitor_;
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
