#include <memprof/config.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/space_ledger.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/toolkit/page/address_regions.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void run_survey::info(const capture_info& info) {
  if (events_ == 0) {
    segment_begin_.stamp = now_ = info.begin_stamp;
    clock_ = clock_readings{info.begin_stamp};
  }
  fold_.info(info);
}

void run_survey::name(label id, std::string_view text) {
  if (text == detail::end_segment_name) end_name_ = id;
  fold_.name(id, text);
}

void run_survey::events(const event* first, const event* last, std::uint32_t ring) {
  for (; first != last; ++first, ++events_) {
    now_ = std::max(now_, first->stamp);
    if (first->kind == event_kind::segment_end) end_segment(first->label, events_ + 1);
    if (first->kind == event_kind::clock_reading) clock_.add(first->stamp, static_cast<std::int64_t>(first->address));
    visitor_.apply(fold_.events(), *first, ring, {events_, now_}, *this);
    if (changes_allocator(first->kind) && fold_.events().space(first->space) != nullptr) count_activity(first->space);
  }
}

void run_survey::finish() {
  if (!fold_.events().has_ended()) end_segment(0, events_);
  steps_.finish();
  for (address_regions& each : regions_) each.finish();
}

void run_survey::began(std::size_t space, const page_block& block) {
  count_activity(space);
  regions_[space].add(block.address, block.bytes);
  change_owner(space, block.owner_key(), block.bytes);
}

void run_survey::ended(std::size_t space, const page_block& block) {
  count_activity(space);
  change_owner(space, block.owner_key(), -block.bytes);
}

void run_survey::relabelled(std::size_t space, const page_block& before, const page_block& after) {
  change_owner(space, before.owner_key(), -before.bytes);
  change_owner(space, after.owner_key(), after.bytes);
}

void run_survey::count_activity(std::size_t space) {
  if (space >= activity_.size()) {
    activity_.resize(space + 1);
    last_active_.resize(space + 1);
  }
  if (last_active_[space] == events_ + 1) return;  // one event may end several blocks
  if (last_active_[space] <= segment_begin_.event) changed_.push_back(static_cast<std::uint8_t>(space));
  last_active_[space] = events_ + 1;
  ++activity_[space];
}

void run_survey::change_owner(std::size_t space, std::size_t key, std::int64_t bytes) {
  std::vector<owner_total>& totals = owners_[space];
  if (key >= totals.size()) totals.resize(std::max(key + 1, 2 * totals.size()));
  totals[key].live += bytes;
  totals[key].greatest = std::max(totals[key].greatest, totals[key].live);
}

void run_survey::end_segment(label name, std::uint64_t behind) {
  usage_.clear();
  std::sort(changed_.begin(), changed_.end());
  for (const std::uint8_t id : changed_) {
    const segment_record record = fold_.events().space(id)->open_segment();
    const std::int64_t change = record.live_at_end - record.live_at_start;
    usage_.push_back({id, record.peak_live_bytes - record.live_at_start, record.allocated, record.allocated - change, change,
                      record.peak_live_bytes, record.live_at_end});
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

}  // namespace memprof::inline MEMPROF_ABI::detail
