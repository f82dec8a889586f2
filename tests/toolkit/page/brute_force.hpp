#pragma once

#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/trace.hpp>
#include <toolkit/page/page_reader.hpp>
#include <toolkit/page/slow_run.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests {

/// Requires that what a page says of a trace is what `slow_run` finds.
class page_check {
 public:
  page_check(const page_reader& page, const memprof::trace& source) : page_(page) {
    source.visit(run_);
    run_.finish();
  }

  void everything() {
    const auto& detail = page_.run.at("detail");
    REQUIRE(detail.at("events").get<std::size_t>() == run_.event_count);
    REQUIRE(page_.run.at("profile").at("spaces").size() == run_.spaces.size());
    for (std::size_t frame = 0; frame < detail.at("frames").size(); ++frame) {
      std::int64_t index = 0;
      for (const auto& [id, space] : run_.spaces) {
        timeline(frame, index, space);
        parts(frame, index, space);
        blocks(frame, index, space);
        ++index;
      }
    }
    std::int64_t index = 0;
    for (std::size_t each = 0; each < run_.spaces.size(); ++each) peak(index++);
  }

  [[nodiscard]] const slow_run& run() const noexcept { return run_; }

 private:
  [[nodiscard]] std::pair<std::size_t, std::size_t> range_of(std::size_t frame) const {
    const auto& row = page_.run["detail"]["frames"][frame];
    return {row["begin_event"], row["end_event"]};
  }

  /// The greatest total of each bucket, when it was first there, and the least, from all values between its events.
  void timeline(std::size_t frame, std::int64_t index, const slow_run::in_space& space) {
    const page_table& line = page_.table("timeline", frame, index);
    const page_column& begins = line.at("begin_event");
    const auto [first, last] = range_of(frame);
    REQUIRE(begins.size() >= 1);
    REQUIRE(begins.size() <= 4096);
    REQUIRE(begins.front() == static_cast<std::int64_t>(first));
    for (std::size_t row = 0; row < begins.size(); ++row) {
      const auto begin = static_cast<std::size_t>(begins[row]);
      const std::size_t end = row + 1 < begins.size() ? static_cast<std::size_t>(begins[row + 1]) : last;
      REQUIRE(begin < end);
      const slow_run::state before = begin == 0 ? slow_run::state{} : space.after(begin - 1);
      slow_run::state highest = space.after(begin);
      std::size_t at = begin;
      std::int64_t low = std::min(before.live, highest.live);
      std::int64_t reserved = std::max(before.reserved, highest.reserved);
      std::int64_t active = std::max(before.active, highest.active);
      for (auto next = space.changes.upper_bound(begin); next != space.changes.end() && next->first < end; ++next) {
        low = std::min(low, next->second.live);
        reserved = std::max(reserved, next->second.reserved);
        active = std::max(active, next->second.active);
        if (next->second.live <= highest.live) continue;
        highest = next->second;
        at = next->first;
      }
      CAPTURE(frame, index, row, begin, end);
      REQUIRE(line.at("total")[row] == highest.live);
      REQUIRE(line.at("event")[row] == static_cast<std::int64_t>(at));
      REQUIRE(line.at("blocks")[row] == highest.blocks);
      REQUIRE(line.at("low")[row] == low);
      REQUIRE((line.contains("reserved") ? line.at("reserved")[row] : 0) == reserved);
      if (line.contains("active")) {
        REQUIRE(line.at("active")[row] == active);
      } else {
        REQUIRE(active <= highest.live);
      }
    }
  }

  [[nodiscard]] slow_run::owner owner(std::int64_t index) const {
    const auto& row = page_.run["detail"]["owners"][static_cast<std::size_t>(index)];
    return {row["operation"],
            static_cast<std::uint32_t>(memprof::category_from_string(row["category"].get<std::string>()).tag() - 1)};
  }

  /// Every owner that has rows, to the byte, and what all others have together.
  void parts(std::size_t frame, std::int64_t index, const slow_run::in_space& space) {
    const page_table& line = page_.table("timeline", frame, index);
    const page_table& parts = page_.table("parts", frame, index);
    std::set<slow_run::owner> recorded;
    for (const std::int64_t owner_index : parts.at("owner")) recorded.insert(owner(owner_index));
    for (const std::int64_t owner_index : page_.table("blocks", frame, index).at("owner")) recorded.insert(owner(owner_index));
    std::map<slow_run::owner, std::pair<std::int64_t, std::int64_t>> now;
    std::size_t row = 0;
    for (std::size_t bucket = 0; bucket < line.at("total").size(); ++bucket) {
      for (; row < parts.at("bucket").size() && parts.at("bucket")[row] == static_cast<std::int64_t>(bucket); ++row) {
        now[owner(parts.at("owner")[row])] = {parts.at("bytes")[row], parts.at("blocks")[row]};
      }
      std::int64_t bytes = 0;
      std::int64_t blocks = 0;
      for (const auto& [who, has] : now) {
        bytes += has.first;
        blocks += has.second;
      }
      REQUIRE(bytes == line.at("total")[bucket]);
      REQUIRE(blocks == line.at("blocks")[bucket]);
      if (line.at("total").size() > 500 && bucket % 16 != 0) continue;
      std::map<slow_run::owner, std::pair<std::int64_t, std::int64_t>> expected;
      for (const auto& [who, has] : space.owners_after(static_cast<std::size_t>(line.at("event")[bucket]))) {
        auto& sum = expected[recorded.contains(who) ? who : slow_run::owner{-2, who.second}];
        sum.first += has.first;
        sum.second += has.second;
      }
      auto shown = now;
      std::erase_if(shown, [](const auto& each) { return each.second == std::pair<std::int64_t, std::int64_t>{}; });
      CAPTURE(frame, index, bucket);
      REQUIRE(shown == expected);
    }
    REQUIRE(row == parts.at("bucket").size());
  }

  void blocks(std::size_t frame, std::int64_t index, const slow_run::in_space& space) {
    const page_table& rows = page_.table("blocks", frame, index);
    const auto [first, last] = range_of(frame);
    // With what the row says of them: an owner without rows of its own is -2.
    using life = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint64_t>;
    std::multiset<life> lives;
    for (const slow_run::block_life& each : space.blocks) {
      if (each.begin >= last || each.end < first) continue;
      if (each.end == first && each.begin < first) {
        lives.insert({static_cast<std::int64_t>(first), static_cast<std::int64_t>(first), each.bytes, each.address});
        continue;
      }
      lives.insert({static_cast<std::int64_t>(std::max(each.begin, first)), static_cast<std::int64_t>(std::min(each.end, last)),
                    each.bytes, each.address});
    }
    REQUIRE(page_.run["detail"]["frames"][frame]["blocks"][static_cast<std::size_t>(index)] == lives.size());
    const std::size_t limit = frame == 0 ? 20000 : 4000;
    if (run_.spaces.size() <= 4) REQUIRE(rows.at("bytes").size() == std::min(lives.size(), limit));
    for (std::size_t row = 0; row < rows.at("bytes").size(); ++row) {
      const life shown{rows.at("begin_event")[row], rows.at("end_event")[row], rows.at("bytes")[row],
                       address(index, rows.at("offset")[row])};
      const auto found = lives.find(shown);
      CAPTURE(frame, index, row, shown);
      REQUIRE(found != lives.end());
      lives.erase(found);
    }
  }

  [[nodiscard]] std::uint64_t address(std::int64_t space, std::int64_t offset) const {
    for (const auto& region : page_.run["detail"]["regions"][static_cast<std::size_t>(space)]) {
      const std::int64_t within = offset - region["offset"].get<std::int64_t>();
      if (within < 0 || static_cast<std::uint64_t>(within) >= region["bytes"].get<std::uint64_t>()) continue;
      return std::stoull(region["address"].get<std::string>(), nullptr, 16) + static_cast<std::uint64_t>(within);
    }
    FAIL("offset " << offset << " is in no region");
    return 0;
  }

  /// The highest bucket is the profile's peak.
  void peak(std::int64_t index) {
    const page_column& totals = page_.table("timeline", 0, index).at("total");
    REQUIRE(*std::max_element(totals.begin(), totals.end()) ==
            page_.run["profile"]["spaces"][static_cast<std::size_t>(index)]["cumulative_peak"].get<std::int64_t>());
  }

  const page_reader& page_;
  slow_run run_;
};

}  // namespace memprof_tests
