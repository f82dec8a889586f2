#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/ledger/block_listener.hpp>
#include <memprof/ledger/facet_names.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/space_facets.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

/// The facets that follow single blocks, for all memory spaces; models `block_listener`.
class facet_folds {
 public:
  void allocated(std::uint8_t space, const detail::block& made, std::uint64_t stamp) { of(space).allocated(made, stamp); }
  void freed(std::uint8_t space, const detail::block& gone, std::uint64_t stamp) { of(space).freed(gone, stamp); }
  void segment_ended(const detail::segment_history& history) noexcept {
    const std::uint32_t name = history.marks()[history.marks().size() - 1].row;
    for (const auto& space : spaces_) {
      if (space) space->segment_ended(name);
    }
  }

  /// Fills the facets of a profile built from the same ledger.
  void fill(profile& result, extend::ledger& events, extend::name_view labels) const {
    const vector<std::string> paths = detail::operation_paths(events.operations(), labels);
    vector<std::string> segments;
    for (const named_segments& row : result.segments_by_name) segments.push_back(row.name);
    const detail::facet_names names{paths, segments, !result.complete, events.clock(), events.begin_stamp()};
    for (std::size_t id = 0, index = 0; id < extend::ledger::max_spaces; ++id) {
      if (events.space(id) == nullptr) continue;
      result.spaces[index++].facets = spaces_[id] ? spaces_[id]->build(names) : detail::space_facet_folds{}.build(names);
    }
  }

 private:
  [[nodiscard]] detail::space_facet_folds& of(std::uint8_t space) {
    if (!spaces_[space]) spaces_[space] = std::make_unique<detail::space_facet_folds>();
    return *spaces_[space];
  }

  std::array<std::unique_ptr<detail::space_facet_folds>, extend::ledger::max_spaces> spaces_;
};

/// A `trace_visitor` that feeds a given `trace_fold` and the facets along with it.
class following_fold {
 public:
  explicit following_fold(extend::trace_fold& fold) noexcept : fold_(fold) {}

  void info(const extend::capture_info& info) { fold_.info(info); }
  void name(extend::label id, std::string_view text) noexcept { fold_.name(id, text); }
  void space(const extend::space_definition& space) noexcept { fold_.space(space); }
  void facts(extend::fact_part&& part) { fold_.facts(std::move(part)); }
  void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
    detail::apply_and_notify(fold_.events(), first, last, ring, facets_);
  }
  bool saved_state(const detail::saved_state_part& part) noexcept { return fold_.saved_state(part); }

  /// Like `facet_folds::fill`, for a profile built from the fold.
  void fill(profile& result) const { facets_.fill(result, fold_.events(), fold_.names()); }

 private:
  extend::trace_fold& fold_;
  facet_folds facets_;
};
static_assert(extend::trace_visitor<following_fold>);

}  // namespace memprof::inline MEMPROF_ABI
