#include <memprof/toolkit/analysis/what_if_rank.hpp>

#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if_json.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>
#include <memprof/trace/category.hpp>

#include <toolkit/analysis/schema_keys.hpp>

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace memprof_tests::analysis_what_if_rank {

using Catch::Matchers::ContainsSubstring;
using memprof::block_history;
using memprof::category;
using memprof::find_target;
using memprof::rank_owners;
using memprof::ranked_owner;
using memprof::target_answer;

namespace {

/// A history written by hand: operations "a", "b", ... side by side.
class history_builder {
 public:
  explicit history_builder(std::size_t operations) {
    history_.space = "cpu";
    history_.operations.emplace_back();
    for (std::size_t index = 0; index < operations; ++index)
      history_.operations.push_back({0, std::string(1, static_cast<char>('a' + index))});
  }

  std::size_t allocate(std::uint32_t operation, std::int64_t bytes, category kind = category::activation) {
    memprof::history_block& block = history_.blocks.emplace_back();
    block.bytes = bytes;
    block.begin = ++history_.events;
    block.operation = operation;
    block.category = kind;
    return history_.blocks.size() - 1;
  }
  void free(std::size_t block) { history_.blocks[block].end = ++history_.events; }
  [[nodiscard]] const block_history& history() const { return history_; }

 private:
  block_history history_;
};

block_history random_history(std::mt19937& random, std::size_t operations) {
  history_builder made{operations};
  std::vector<std::size_t> live;
  for (int event = 0; event < 80; ++event) {
    if (!live.empty() && random() % 2 == 0) {
      const std::size_t which = random() % live.size();
      made.free(live[which]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const auto kind = random() % 12 == 0 ? category::parameter : category::activation;
      live.push_back(made.allocate(static_cast<std::uint32_t>(random() % (operations + 1)),
                                   static_cast<std::int64_t>(random() % 1'000), kind));
    }
  }
  return made.history();
}

/// The peak without the intermediate blocks of the operations whose bits are set; bit 0 is the first operation's.
std::int64_t peak_without(const block_history& run, unsigned operations) {
  std::int64_t peak = 0;
  for (const memprof::history_block& at : run.blocks) {
    std::int64_t live = 0;
    for (const memprof::history_block& block : run.blocks) {
      const bool is_gone =
          block.operation != 0 && block.category == category::activation && (operations >> (block.operation - 1) & 1U) != 0;
      if (!is_gone && block.begin <= at.begin && block.end > at.begin) live += block.bytes;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace

TEST_CASE("what if: ranked owners have the peak that the run has without each") {
  std::mt19937 random{35};  // NOLINT: reproducible
  for (int program = 0; program < 60; ++program) {
    const block_history run = random_history(random, 6);
    const memprof::owner_ranking found = rank_owners(run);
    INFO("program " << program);
    CHECK(found.peak == peak_without(run, 0));
    REQUIRE_FALSE(found.owners.empty());
    std::int64_t live = 0;
    for (const ranked_owner& owner : found.owners) {
      INFO(owner.owner);
      const auto alone = what_if(run, {.without = {owner.owner}});
      CHECK(owner.peak == alone.after.bytes);
      CHECK(alone.before.bytes == found.peak);
      live += owner.live;
    }
    CHECK(live == found.peak);
    CHECK(std::is_sorted(found.owners.begin(), found.owners.end(),
                         [](const ranked_owner& left, const ranked_owner& right) { return left.peak < right.peak; }));
  }
}

namespace {

/// a has 900 bytes by itself, then 850 beside b's 100.
history_builder peak_that_moves() {
  history_builder made{2};
  const std::size_t large = made.allocate(1, 900);
  made.free(large);
  made.allocate(2, 100);
  (void)made.allocate(1, 850);
  return made;
}

}  // namespace

TEST_CASE("what if: an owner of most of the peak is ranked by what is saved, not by what it has") {
  history_builder made = peak_that_moves();
  const memprof::owner_ranking found = rank_owners(made.history());
  // The peak is 950: a has 850 of it. Without a, 100 are left; without b, the 900 from before are the peak.
  CHECK(found.peak == 950);
  REQUIRE(found.owners.size() == 2);
  CHECK(found.owners[0] == ranked_owner{"a", 850, 1, 100});
  CHECK(found.owners[1] == ranked_owner{"b", 100, 1, 900});
}

TEST_CASE("what if: a target is reached by as few owners as an exhaustive search finds") {
  constexpr std::size_t operations = 8;
  std::mt19937 random{16};  // NOLINT: reproducible
  int reached = 0;
  int by_several = 0;
  for (int program = 0; program < 60; ++program) {
    const block_history run = random_history(random, operations);
    const std::int64_t peak = peak_without(run, 0);
    const std::int64_t least = peak_without(run, (1U << operations) - 1);
    for (const std::int64_t percent : {95, 80, 60, 40, 20}) {
      const std::int64_t target = peak * percent / 100;
      INFO("program " << program << ", target " << target << " of " << peak);
      const target_answer found = find_target(run, target);
      CHECK(found.peak == peak);
      CHECK(found.least == least);
      CHECK(found.is_possible() == (target >= least));
      if (!found.is_possible()) {
        CHECK(found.owners.empty());
        continue;
      }
      int fewest = operations;
      for (unsigned set = 0; set < 1U << operations; ++set) {
        if (std::popcount(set) < fewest && peak_without(run, set) <= target) fewest = std::popcount(set);
      }
      unsigned set = 0;
      for (const ranked_owner& owner : found.owners) set |= 1U << (owner.owner[0] - 'a');
      CHECK(found.owners.size() == static_cast<std::size_t>(fewest));
      CHECK(std::popcount(set) == fewest);
      CHECK(found.new_peak == peak_without(run, set));
      CHECK(found.new_peak <= target);
      CHECK(found.is_smallest);

      const target_answer by_greed = find_target(run, target, 0);
      CHECK(by_greed.new_peak <= target);
      CHECK(by_greed.owners.size() >= found.owners.size());
      CHECK(by_greed.is_smallest == (peak <= target));
      ++reached;
      by_several += fewest > 2 ? 1 : 0;
    }
  }
  CHECK(reached > 100);
  CHECK(by_several > 50);
}

TEST_CASE("what if: two peaks need an owner of each; a target above the peak needs none") {
  history_builder made{4};
  for (const std::uint32_t owner : {1U, 2U, 3U}) {
    const std::size_t block = made.allocate(owner, 1'000);
    const std::size_t other = made.allocate(4, 100);
    made.free(block);
    made.free(other);
  }
  const target_answer found = find_target(made.history(), 500);
  CHECK(found.owners.size() == 3);
  CHECK(found.new_peak == 100);
  CHECK(found.is_smallest);
  CHECK(find_target(made.history(), 1'050).owners == std::vector<ranked_owner>{{"d", 100, 1, 1'000}});
  CHECK(find_target(made.history(), 1'100).owners.empty());
}

TEST_CASE("what if: parameters, and what no operation allocated, cannot be removed") {
  history_builder made{1};
  made.allocate(1, 700, category::parameter);
  made.allocate(0, 200);
  made.allocate(1, 100);
  const target_answer found = find_target(made.history(), 899);
  CHECK_FALSE(found.is_possible());
  CHECK(found.least == 900);
  CHECK(find_target(made.history(), 900).owners == std::vector<ranked_owner>{{"a", 100, 1, 900}});
}

TEST_CASE("what if: rankings and targets as text and JSON") {
  history_builder made = peak_that_moves();
  const memprof::owner_ranking ranking = rank_owners(made.history());
  const std::string ranked = to_text(ranking, {.columns = 80});
  CHECK_THAT(ranked, ContainsSubstring("Peak      950 B of cpu\n"));
  CHECK_THAT(ranked, ContainsSubstring("\na        850 B       1  100 B  850 B\n"));
  CHECK_THAT(ranked, ContainsSubstring("\nb        100 B       1  900 B   50 B\n"));
  const nlohmann::json schema = read_schema("what_if.schema.json")["definitions"];
  const nlohmann::ordered_json rows = to_json(ranking);
  check_keys(rows, schema["ranking"]);
  check_keys(rows["ranking"][0], schema["ranked"]);
  CHECK(rows["ranking"][1]["peak_bytes"] == 900);

  const target_answer target = find_target(made.history(), 920);
  CHECK_THAT(to_text(target, {.columns = 80}),
             ContainsSubstring("Target    920 B of cpu: 100 B instead of 950 B without 1 owner; no fewer suffice\n"));
  check_keys(to_json(target), schema["target"]);
  CHECK(to_json(target)["possible"] == true);
  CHECK_THAT(to_text(find_target(made.history(), 950)), ContainsSubstring("the peak is 950 B already"));
}

TEST_CASE("what if: the target of a wide program is found, exact or not, and holds") {
  std::mt19937 random{7};  // NOLINT: reproducible
  history_builder made{26};
  std::vector<std::size_t> live;
  for (int event = 0; event < 3'000; ++event) {
    if (live.size() > 60) {
      const std::size_t which = random() % live.size();
      made.free(live[which]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
    live.push_back(made.allocate(1 + static_cast<std::uint32_t>(random() % 26), static_cast<std::int64_t>(random() % 1'000)));
  }
  const block_history& run = made.history();
  const target_answer found = find_target(run, peak_without(run, 0) / 2);
  unsigned set = 0;
  for (const ranked_owner& owner : found.owners) set |= 1U << (owner.owner[0] - 'a');
  CHECK(peak_without(run, set) == found.new_peak);
  CHECK(found.new_peak <= found.target);
}

}  // namespace memprof_tests::analysis_what_if_rank
