#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/invocation_visitor.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/trace/capture_info.hpp>
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

/// Fills the frames of a page in the second pass over a trace, after a `run_survey`. A `trace_visitor`.
class run_frames {
 public:
  /// `spaces`: ids in the order of the profile; `owners` and `frames` must outlive this object. `frames[0]` is the whole run, and
  /// no two others share an event. `wanted_segments`: ascending numbers of the segments whose events `segment_events` returns.
  run_frames(const std::vector<std::uint8_t>& spaces, const page_owners& owners, std::vector<page_frame>& frames,
             std::vector<std::size_t> wanted_segments);

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const capture_info& info);
  void name(label, std::string_view) {}
  void space(const space_definition&) {}
  void facts(fact_part&&) {}
  void events(const event* first, const event* last, std::uint32_t ring);

  /// Call after the last event.
  void finish();

  // --- results, besides those in the frames -------------------------------------------------------------------------

  /// The threads that `frame_invocations::row` refers to. The last one may stand for all beyond the first thousand.
  [[nodiscard]] const std::vector<page_thread>& threads() const noexcept { return operations_.threads(); }
  /// For each wanted segment: its first event, and the event after its last.
  [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& segment_events() const noexcept {
    return segment_events_;
  }

  // --- called by a block_visitor -----------------------------------------------------------------------------------

  void began(std::size_t id, page_block& block);
  void ended(std::size_t id, const page_block& block);
  void relabelled(std::size_t id, const page_block& before, const page_block& after);

 private:
  static constexpr std::size_t max_spaces = ledger::max_spaces + 1;
  static constexpr std::size_t not_shown = max_spaces;

  template <class Visitor>
  void for_each_frame(Visitor&& visit) {
    visit(frames_[0]);
    if (step_ != nullptr) visit(*step_);
  }

  void apply(const event& happened, std::uint32_t ring);

  // --- blocks -------------------------------------------------------------------------------------------------------

  void change(std::size_t id, const page_block& block, std::int64_t sign);

  void touch(std::size_t space);

  void tell_timelines();

  [[nodiscard]] static frame_timeline::of_allocator of_allocator(const space_ledger* space) noexcept;

  void mark_peak(page_frame::in_space& own, std::size_t id);

  // --- frames -------------------------------------------------------------------------------------------------------

  /// Initialises a step with the current state of the whole run.
  void open_step(page_frame& step);

  void close(page_frame& frame);

  static void add_invocation(page_frame& frame, const invocation& ended, const moment& end);

  /// `behind`: the first event after it.
  void end_segment(std::uint64_t behind);

  const std::vector<std::uint8_t>& spaces_;
  const page_owners& owners_;
  std::vector<page_frame>& frames_;
  std::vector<page_frame*> steps_;  ///< all frames but the first, in order of time
  std::size_t next_step_ = 0;
  page_frame* step_ = nullptr;  ///< the open one
  std::vector<std::size_t> wanted_segments_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> segment_events_;
  std::size_t segment_ = 0;
  std::uint64_t segment_begin_ = 0;

  trace_fold fold_;  ///< without names and segments, which it does not need
  block_visitor visitor_;
  invocation_visitor operations_;
  std::array<std::size_t, max_spaces> index_of_{};
  std::vector<bool> is_touched_;  ///< by the current event
  std::vector<std::size_t> touched_;
  std::uint64_t event_ = 0;
  std::uint64_t now_ = 0;
  std::uint32_t ring_ = 0;
};
static_assert(trace_visitor<run_frames>);

}  // namespace memprof::inline MEMPROF_ABI::detail
