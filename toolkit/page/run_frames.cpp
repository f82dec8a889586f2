#include <memprof/config.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/invocation_visitor.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/run_frames.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

run_frames::run_frames(const std::vector<std::uint8_t>& spaces, const page_owners& owners, std::vector<page_frame>& frames,
                       std::vector<std::size_t> wanted_segments)
    : spaces_(spaces),
      owners_(owners),
      frames_(frames),
      wanted_segments_(std::move(wanted_segments)),
      operations_(spaces.size()) {
  index_of_.fill(not_shown);
  for (std::size_t index = 0; index < spaces.size(); ++index) index_of_[spaces[index]] = index;
  for (std::size_t index = 1; index < frames.size(); ++index) steps_.push_back(&frames[index]);
  std::sort(steps_.begin(), steps_.end(),
            [](const page_frame* left, const page_frame* right) { return left->begin.event < right->begin.event; });
  is_touched_.resize(spaces.size());
}

void run_frames::info(const capture_info& info) {
  if (event_ == 0) now_ = info.begin_stamp;
  fold_.info(info);
}

void run_frames::events(const event* first, const event* last, std::uint32_t ring) {
  for (; first != last; ++first, ++event_) apply(*first, ring);
}

void run_frames::finish() {
  end_segment(event_);  // the open one, if wanted
  close(frames_[0]);
}

void run_frames::began(std::size_t id, page_block& block) {
  for_each_frame([&](page_frame& frame) { frame.spaces[index_of_[id]].blocks.count_block(); });
  change(id, block, 1);
}

void run_frames::ended(std::size_t id, const page_block& block) {
  const std::size_t slot = owners_.slot_of(id, block);
  for_each_frame([&](page_frame& frame) { frame.spaces[index_of_[id]].blocks.ended(block, slot, {event_, now_}); });
  change(id, block, -1);
}

void run_frames::relabelled(std::size_t id, const page_block& before, const page_block& after) {
  const std::size_t from = owners_.slot_of(id, before);
  const std::size_t to = owners_.slot_of(id, after);
  if (from == to) return;
  for_each_frame(
      [&](page_frame& frame) { frame.spaces[index_of_[id]].timeline.relabel(before.born.event, from, to, before.bytes); });
}

void run_frames::apply(const event& happened, std::uint32_t ring) {
  now_ = std::max(now_, happened.stamp);
  if (next_step_ < steps_.size() && steps_[next_step_]->begin.event == event_) open_step(*steps_[next_step_++]);
  ring_ = ring;
  if (happened.kind == event_kind::segment_end) {
    end_segment(event_ + 1);
  } else {
    visitor_.apply(fold_.events(), happened, ring, {event_, now_}, *this);
    if (changes_allocator(happened.kind)) touch(index_of_[happened.space]);
  }
  operations_.follow(fold_.events(), happened, ring, {event_, now_}, [&](const invocation& ended) {
    for_each_frame([&](page_frame& frame) { add_invocation(frame, ended, {event_, now_}); });
  });
  tell_timelines();
  if (step_ != nullptr && event_ + 1 == step_->end.event) {
    close(*step_);
    step_ = nullptr;
  }
}

void run_frames::change(std::size_t id, const page_block& block, std::int64_t sign) {
  const std::size_t space = index_of_[id];
  const std::size_t slot = owners_.slot_of(id, block);
  for_each_frame([&](page_frame& frame) { frame.spaces[space].timeline.change(slot, sign * block.bytes, sign); });
  operations_.change(fold_.events(), ring_, space, sign * block.bytes);
  touch(space);
}

void run_frames::touch(std::size_t space) {
  if (space == not_shown || is_touched_[space]) return;
  is_touched_[space] = true;
  touched_.push_back(space);
}

void run_frames::tell_timelines() {
  const auto add = [&](page_frame& frame, std::size_t index) {
    const space_ledger* const space = fold_.events().space(spaces_[index]);
    page_frame::in_space& own = frame.spaces[index];
    const std::int64_t live = space == nullptr ? 0 : space->live();
    own.timeline.end_event({event_, now_}, live, space == nullptr ? 0 : static_cast<std::int64_t>(space->blocks().size()),
                           of_allocator(space));
    if (live == own.peak && !own.has_peaked) mark_peak(own, spaces_[index]);
  };
  for_each_frame([&](page_frame& frame) {
    if (frame.begin.event == event_) {
      for (std::size_t index = 0; index < spaces_.size(); ++index) add(frame, index);
    } else {
      for (const std::size_t index : touched_) add(frame, index);
    }
  });
  for (const std::size_t index : touched_) is_touched_[index] = false;
  touched_.clear();
}

frame_timeline::of_allocator run_frames::of_allocator(const space_ledger* space) noexcept {
  if (space == nullptr) return {};
  return {space->reserved().current(), space->active().level().current()};
}

void run_frames::mark_peak(page_frame::in_space& own, std::size_t id) {
  own.has_peaked = true;
  if (own.peak != 0) own.blocks.mark_peak([&](auto&& visit) { visitor_.for_each(id, visit); });
}

void run_frames::open_step(page_frame& step) {
  step_ = &step;
  for (std::size_t index = 0; index < spaces_.size(); ++index) {
    page_frame::in_space& own = step.spaces[index];
    for (std::size_t slot = 0; slot < owners_.of_space(spaces_[index]).size(); ++slot) {
      own.timeline.start_with(slot, frames_[0].spaces[index].timeline.stats(slot));
    }
    const space_ledger* const space = fold_.events().space(spaces_[index]);
    if (space == nullptr) continue;
    own.timeline.start_with_total(space->live(), of_allocator(space));
    visitor_.for_each(spaces_[index], [&](page_block& block) {
      block.marks &= ~step.mark;
      own.blocks.count_block();
    });
    if (space->live() == own.peak) mark_peak(own, spaces_[index]);
  }
}

void run_frames::close(page_frame& frame) {
  for (std::size_t index = 0; index < spaces_.size(); ++index) {
    page_frame::in_space& own = frame.spaces[index];
    own.timeline.finish();
    visitor_.for_each(spaces_[index], [&](const page_block& block) {
      own.blocks.stayed(block, owners_.slot_of(spaces_[index], block), frame.end);
    });
    own.blocks.finish();
  }
  operations_.for_each_open([&](const invocation& open) { add_invocation(frame, open, frame.end); });
  frame.invocations.finish();
}

void run_frames::add_invocation(page_frame& frame, const invocation& ended, const moment& end) {
  const moment begin = ended.begin.event < frame.begin.event ? frame.begin : ended.begin;
  frame.invocations.add({ended.thread, ended.depth, ended.operation, begin, end, 1, 0},
                        [&](std::size_t space) { return ended.delta(space); });
}

void run_frames::end_segment(std::uint64_t behind) {
  if (segment_events_.size() < wanted_segments_.size() && wanted_segments_[segment_events_.size()] == segment_) {
    segment_events_.emplace_back(segment_begin_, behind);
  }
  segment_begin_ = behind;
  ++segment_;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
