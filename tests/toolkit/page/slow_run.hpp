#pragma once

#include <memprof/ledger/ledger.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_tests {

/// What was live after each event of a trace, found out by looking at all live blocks of a ledger after each event.
class slow_run {
 public:
  struct block_life {
    std::uint64_t address;
    std::int64_t bytes;
    std::size_t begin;       ///< the event that allocated it
    std::size_t end;         ///< the one that freed it; the number of all events if none did
    std::int64_t operation;  ///< as `profile::operations` counts, -1 for none
    std::uint32_t category;  ///< the last one
  };
  struct state {
    std::int64_t live = 0;
    std::int64_t blocks = 0;
    std::int64_t reserved = 0;
    std::int64_t active = 0;
  };
  using owner = std::pair<std::int64_t, std::uint32_t>;  ///< operation, category

  void info(const memprof::extend::capture_info& info) {
    if (!ledger_) ledger_.emplace(memprof::extend::ledger_options{}, info.begin_stamp);
  }
  void name(memprof::extend::label, std::string_view) {}
  void space(const memprof::extend::space_definition&) {}
  void facts(memprof::extend::fact_part&&) {}
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring) {
    if (!ledger_) ledger_.emplace();
    for (; first != last; ++first) {
      ledger_->apply(first, first + 1, ring);
      look(first->kind);
      ++event_count;
    }
  }
  void finish() {
    for (auto& [id, space] : spaces) {
      for (block_life& each : space.blocks) each.end = std::min(each.end, event_count);
    }
  }

  struct in_space {
    std::map<std::size_t, state> changes;  ///< by event; only those that changed something
    std::vector<block_life> blocks;

    [[nodiscard]] state after(std::size_t event) const {
      const auto next = changes.upper_bound(event);
      return next == changes.begin() ? state{} : std::prev(next)->second;
    }
    [[nodiscard]] std::map<owner, std::pair<std::int64_t, std::int64_t>> owners_after(std::size_t event) const {
      std::map<owner, std::pair<std::int64_t, std::int64_t>> result;
      for (const block_life& each : blocks) {
        if (each.begin > event || event >= each.end) continue;
        auto& [bytes, count] = result[{each.operation, each.category}];
        bytes += each.bytes;
        ++count;
      }
      return result;
    }
  };
  std::map<std::size_t, in_space> spaces;  ///< by id
  std::size_t event_count = 0;

 private:
  void look(memprof::extend::event_kind kind) {
    if (kind == memprof::extend::event_kind::scope_begin || kind == memprof::extend::event_kind::scope_end) return;
    for (std::size_t id = 0; id < memprof::extend::ledger::max_spaces; ++id) {
      const memprof::detail::space_ledger* const space = ledger_->space(id);
      if (space == nullptr) continue;
      in_space& own = spaces[id];
      const state now{space->live(), static_cast<std::int64_t>(space->blocks().size()), space->reserved().current(),
                      space->active().level().current()};
      const state before = own.changes.empty() ? state{} : own.changes.rbegin()->second;
      const bool has_new = !seen_[id].contains(space->allocation_count()) && space->allocation_count() != 0;
      if (now.live != before.live || now.blocks != before.blocks || now.reserved != before.reserved ||
          now.active != before.active || has_new) {
        own.changes[event_count] = now;
      } else if (kind != memprof::extend::event_kind::annotate) {
        continue;
      }
      std::map<std::uint64_t, std::size_t> still;
      space->blocks().for_each([&](const memprof::detail::block& live) {
        const auto known = seen_[id].find(live.born());
        const std::size_t index = known == seen_[id].end() ? own.blocks.size() : known->second;
        if (index == own.blocks.size())
          own.blocks.push_back({live.address, static_cast<std::int64_t>(live.bytes), event_count, SIZE_MAX, 0, 0});
        own.blocks[index].operation = static_cast<std::int64_t>(live.operation()) - 1;
        own.blocks[index].category = live.category();
        still[live.born()] = index;
      });
      for (const auto& [born, index] : live_[id]) {
        if (!still.contains(born)) own.blocks[index].end = event_count;
      }
      live_[id] = still;
      seen_[id].insert(still.begin(), still.end());
    }
  }

  std::optional<memprof::extend::ledger> ledger_;
  std::map<std::size_t, std::map<std::uint64_t, std::size_t>> live_;
  std::map<std::size_t, std::map<std::uint64_t, std::size_t>> seen_;
};

}  // namespace memprof_tests
