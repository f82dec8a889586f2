#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/page/page_stacks.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/stack_tree.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <scratch_folder.hpp>
#include <toolkit/analysis/stacked_trace.hpp>
#include <toolkit/page/brute_force.hpp>
#include <toolkit/page/page_reader.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof_tests::page_of_stacks {

namespace {

using memprof::heap_stacks;
using memprof::detail::stack_node_kind;
using memprof::detail::stack_owner;
using memprof::detail::stack_tree;
using memprof::extend::label;

const heap_stacks all{0, 0, 7, "libunwind"};
const heap_stacks sampled{65'536, 65'536, 0, "libunwind"};

/// What a node has at a moment, or of all that was allocated.
struct owned {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t weight = 0;
  std::int64_t sampled = 0;
  std::int64_t variance = 0;
};

/// The stacks of a page, with their nodes by path: "step|program+0x20|(folded)".
struct stacks_in_page {
  page_reader page;

  [[nodiscard]] const page_table& nodes() const { return page.table("stack_nodes", 0, 0); }
  [[nodiscard]] std::string path(std::size_t node) const {
    constexpr const char* kinds[] = {"", "", "(folded)", "(without)", "(small)"};
    const auto kind = static_cast<std::size_t>(nodes().at("kind")[node]);
    const auto text = static_cast<std::size_t>(nodes().at("name")[node]);
    const std::string name = kind < 2 ? page.run["detail"]["strings"][text].get<std::string>() : kinds[kind];
    const std::int64_t parent = nodes().at("parent")[node];
    REQUIRE(parent <= static_cast<std::int64_t>(node));
    return parent == 0 ? name : path(static_cast<std::size_t>(parent - 1)) + "|" + name;
  }
  /// By path: what nodes with anything have at a bucket's moment.
  [[nodiscard]] std::map<std::string, owned> at(std::size_t bucket) const {
    const page_table& parts = page.table("stack_parts", 0, 0);
    std::map<std::string, owned> found;
    for (std::size_t row = 0; row < parts.at("bucket").size(); ++row) {
      if (parts.at("bucket")[row] > static_cast<std::int64_t>(bucket)) continue;
      owned& node = found[path(static_cast<std::size_t>(parts.at("node")[row]))];
      const std::int64_t column = parts.contains("column") ? parts.at("column")[row] : 0;
      if (column == 0) std::tie(node.bytes, node.blocks) = std::tie(parts.at("bytes")[row], parts.at("blocks")[row]);
      if (column == 1) std::tie(node.weight, node.sampled) = std::tie(parts.at("bytes")[row], parts.at("blocks")[row]);
      if (column == 2) node.variance = parts.at("bytes")[row];
    }
    std::erase_if(found, [](const auto& each) { return each.second.blocks == 0 && each.second.sampled == 0; });
    return found;
  }
  [[nodiscard]] std::map<std::string, std::int64_t> bytes_at(std::size_t bucket) const {
    std::map<std::string, std::int64_t> found;
    for (const auto& [path, node] : at(bucket)) found[path] = node.bytes;
    return found;
  }
  [[nodiscard]] std::map<std::string, std::int64_t> allocated() const {
    std::map<std::string, std::int64_t> found;
    for (std::size_t node = 0; node < nodes().at("kind").size(); ++node) {
      if (nodes().at("blocks")[node] != 0) found[path(node)] = nodes().at("bytes")[node];
    }
    return found;
  }
  [[nodiscard]] const page_column& moments(const char* column) const { return page.table("stack_moments", 0, 0).at(column); }
  [[nodiscard]] std::size_t peak() const {
    const page_column& totals = moments("total");
    return static_cast<std::size_t>(std::max_element(totals.begin(), totals.end()) - totals.begin());
  }
};

[[nodiscard]] page_reader page_of(stacked_trace& run, const heap_stacks& recorded, bool is_named = true) {
  run.writer.add_facts(memprof::extend::to_table(std::vector<heap_stacks>{recorded}));
  run.writer.finish();
  const scratch_folder folder;
  memprof::html_options options;
  if (is_named) options.calls_of_stack = memprof::calls_by_name();
  memprof::write_html(run.events, folder / "page.html", options);
  return page_reader{folder / "page.html"};
}

using by_path = std::map<std::string, std::int64_t>;

TEST_CASE("page of stacks: calls are within their operation, at every moment, and all parts add up") {
  stacked_trace run;
  const memprof::extend::open_operation step = run.writer.begin_operation("step");
  run.allocate(0x10000, 100, run.stack(0x20, 0x10));
  run.allocate(0x20000, 900, run.stack(0x20, 0x30));
  run.allocate(0x30000, 50, run.stack(0x20));
  run.writer.end_operation(step);
  run.allocate(0x40000, 400, run.stack(0x20, 0x10));
  run.allocate(0x50000, 7, 0);
  run.deallocate(0x20000);
  run.deallocate(0x40000);
  run.allocate(0x60000, 30, run.stack(0x20, 0x10));
  const stacks_in_page found{page_of(run, all)};
  const auto& about = found.page.run["detail"]["stacks"];
  CHECK(about["space"] == 0);
  CHECK(about["sample_bytes"] == 0);
  CHECK(about["missing_blocks"] == 7);
  CHECK(about["left_out"] == 0);
  CHECK(found.bytes_at(found.peak()) == by_path{{"step|program+0x20|program+0x10", 100},
                                                {"step|program+0x20|program+0x30", 900},
                                                {"step|program+0x20", 50},
                                                {"program+0x20|program+0x10", 400},
                                                {"(without)", 7}});
  CHECK(found.moments("total")[found.peak()] == 1457);
  const std::size_t last = found.moments("total").size() - 1;
  CHECK(found.bytes_at(last) == by_path{{"step|program+0x20|program+0x10", 100},
                                        {"step|program+0x20", 50},
                                        {"program+0x20|program+0x10", 30},
                                        {"(without)", 7}});
  CHECK(found.allocated() == by_path{{"step|program+0x20|program+0x10", 100},
                                     {"step|program+0x20|program+0x30", 900},
                                     {"step|program+0x20", 50},
                                     {"program+0x20|program+0x10", 430},
                                     {"(without)", 7}});
  // The moments are those of the curve, and what nodes have adds up to it.
  const page_table& curve = found.page.table("timeline", 0, 0);
  CHECK(found.moments("total") == curve.at("total"));
  CHECK(found.moments("event") == curve.at("event"));
  CHECK(found.moments("time_ns") == curve.at("time_ns"));
  for (std::size_t bucket = 0; bucket <= last; ++bucket) {
    std::int64_t sum = 0;
    for (const auto& [path, bytes] : found.bytes_at(bucket)) sum += bytes;
    CHECK(sum == curve.at("total")[bucket]);
  }
  page_check{found.page, run.events}.everything();
}

TEST_CASE("page of stacks: none without the fact that there are some, or a function that names them, which is not called then") {
  const auto fill = [](stacked_trace& run) { run.allocate(0x10000, 100, run.stack(0x20)); };
  stacked_trace nameless;
  fill(nameless);
  const page_reader page = page_of(nameless, all, false);
  CHECK(page.run["detail"]["stacks"].is_null());
  CHECK_FALSE(page.tables.contains({"stack_nodes", 0, 0}));

  stacked_trace without;
  fill(without);
  without.writer.finish();
  const scratch_folder folder;
  bool is_called = false;
  memprof::html_options options;
  options.calls_of_stack = [&](memprof::extend::name_view, label) {
    is_called = true;
    return std::vector<std::string>{};
  };
  memprof::write_html(without.events, folder / "page.html", options);
  CHECK(page_reader{folder / "page.html"}.run["detail"]["stacks"].is_null());
  CHECK_FALSE(is_called);
}

TEST_CASE("page of stacks: of a sample, small blocks are known as a whole, and what the sampled ones stand for is beside them") {
  stacked_trace run;
  run.allocate(0x10'0000, 70'000, run.stack(0x10));
  run.allocate(0x20'0000, 80'000, 0);  // should have a stack
  for (std::uint64_t block = 0; block < 100; ++block) {
    const label asked = block >= 10 ? 0 : block < 6 ? run.stack(0x10) : run.stack(0x30);
    run.allocate(0x100'0000 + block * 0x1000, 1000, asked);
  }
  const stacks_in_page found{page_of(run, sampled)};
  CHECK(found.page.run["detail"]["stacks"]["from_bytes"] == 65'536);
  CHECK(found.page.run["detail"]["stacks"]["sample_bytes"] == 65'536);
  const double unit = found.page.run["detail"]["stacks"]["variance_unit"];
  CHECK(unit == 65'536.0 * 65'536 / 1024);
  const auto at_peak = found.at(found.peak());
  REQUIRE(at_peak.size() == 4);
  CHECK(at_peak.at("program+0x10").bytes == 70'000);
  CHECK(at_peak.at("(without)").bytes == 80'000);
  CHECK(at_peak.at("(small)").bytes == 100'000);
  CHECK(at_peak.at("(small)").blocks == 100);
  // A block stands for 1 / p, with p = 1 - exp(-1000 / 65536); its variance is 1000^2 (1 - p) / p^2.
  const double chance = 1 - std::exp(-1000.0 / 65'536);
  const auto weight = static_cast<std::int64_t>(std::round(1000 / chance));
  const auto variance = static_cast<std::int64_t>(std::round(1e6 * (1 - chance) / (chance * chance) / unit));
  CHECK(at_peak.at("program+0x10").weight == 6 * weight);
  CHECK(at_peak.at("program+0x10").sampled == 6);
  CHECK(at_peak.at("program+0x10").variance == 6 * variance);
  CHECK(at_peak.at("program+0x30").bytes == 0);
  CHECK(at_peak.at("program+0x30").weight == 4 * weight);
  CHECK(found.nodes().at("weight")[0] + found.nodes().at("weight")[1] == 10 * weight);
  CHECK(found.moments("total")[found.peak()] == 250'000);
}

/// A tree of stacks 1 to 5, which are "a", "a b", "a b c", "d" and "e f".
[[nodiscard]] stack_tree tree_of(const std::vector<stack_tree::row>& rows, const stack_tree::limits& most) {
  const std::vector<stack_tree::operation> operations{{0, ""}, {0, "outer"}, {1, "inner"}};
  const std::vector<std::vector<std::string>> stacks{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"d"}, {"e", "f"}};
  return {operations, rows, [&](label stack) { return stacks.at(stack); }, most};
}

[[nodiscard]] std::string text_of(const stack_tree& tree, const stack_owner& owner) {
  std::string text;
  for (std::uint32_t node = tree.node_of(owner) + 1; node != 0; node = tree.nodes()[node - 1].parent) {
    constexpr const char* kinds[] = {"", "", "(folded)", "(without)", "(small)"};
    const auto& each = tree.nodes()[node - 1];
    text = (each.name.empty() ? kinds[static_cast<std::size_t>(each.kind)] : each.name) + (text.empty() ? "" : "|" + text);
  }
  return text;
}

TEST_CASE("stack_tree: the largest calls have nodes, and what the others own is in their parents' rest") {
  const std::vector<stack_tree::row> rows{
      {{0, 3}, {600, 0, 600}}, {{0, 2}, {100, 0, 100}}, {{0, 4}, {200, 0, 200}}, {{0, 5}, {0, 90, 100}}};
  const stack_tree whole = tree_of(rows, {});
  CHECK(whole.nodes().size() == 6);
  CHECK(whole.left_out() == 0);
  CHECK(text_of(whole, {0, 3}) == "a|b|c");
  CHECK(text_of(whole, {0, 5}) == "e|f");
  // Shares: a, b 700 of 900; c 600; d 200; e, f all of what was live at the end.
  const stack_tree cut = tree_of(rows, {.nodes = 4});
  CHECK(cut.left_out() == 2);
  CHECK(text_of(cut, {0, 5}) == "e|f");
  CHECK(text_of(cut, {0, 2}) == "a|b");
  CHECK(text_of(cut, {0, 3}) == "a|b|(folded)");
  CHECK(text_of(cut, {0, 4}) == "(folded)");
}

TEST_CASE("stack_tree: only the largest stacks are named, the others belong to their operation") {
  const std::vector<stack_tree::row> rows{{{2, 1}, {600, 0, 600}}, {{2, 4}, {100, 0, 100}}, {{1, 0}, {50, 0, 50}}};
  const stack_tree tree = tree_of(rows, {.stacks = 1});
  CHECK(text_of(tree, {2, 1}) == "outer|inner|a");
  CHECK(text_of(tree, {2, 4}) == "outer|inner|(folded)");
  CHECK(text_of(tree, {1, 0}) == "outer|(without)");
}

TEST_CASE("stack_tree: the small blocks of an operation stay with it, or with what encloses it") {
  const std::vector<stack_tree::row> rows{
      {{1, stack_owner::small_blocks}, {600, 0, 600}}, {{2, stack_owner::small_blocks}, {1, 0, 1}}, {{2, 4}, {1, 0, 1}}};
  const stack_tree tree = tree_of(rows, {.nodes = 1});
  CHECK(text_of(tree, {1, stack_owner::small_blocks}) == "outer|(small)");
  CHECK(text_of(tree, {2, stack_owner::small_blocks}) == "outer|(folded)");
  CHECK(text_of(tree, {2, 4}) == "outer|(folded)");
  CHECK(tree.has_operation(0));
  CHECK(tree.has_operation(1));
  CHECK_FALSE(tree.has_operation(2));
}

TEST_CASE("page of stacks: of very many there are a bounded number, and the parts still add up") {
  stacked_trace run;
  std::int64_t live = 0;
  for (std::uint64_t block = 0; block < 3000; ++block) {
    run.allocate(0x10000 + block * 0x1000, 100 + block, run.stack(0x1000 + block / 2, 0x5000 + block));
    live += static_cast<std::int64_t>(100 + block);
  }
  const stacks_in_page found{page_of(run, all)};
  CHECK(found.page.run["detail"]["stacks"]["left_out"] == 4500 - 1000);
  CHECK(found.nodes().at("kind").size() <= 2001);
  CHECK(found.moments("total").size() <= 512);
  const std::size_t last = found.moments("total").size() - 1;
  CHECK(found.moments("total")[last] == live);
  std::int64_t sum = 0;
  for (const auto& [path, bytes] : found.bytes_at(last)) sum += bytes;
  CHECK(sum == live);
}

/// What `stacks_for_page` finds in a trace.
[[nodiscard]] memprof::detail::page_stacks stacks_of(stacked_trace& run, const heap_stacks& recorded,
                                                     const memprof::detail::stack_limits& most) {
  run.writer.add_facts(memprof::extend::to_table(std::vector<heap_stacks>{recorded}));
  run.writer.finish();
  const auto survey = std::make_unique<memprof::detail::run_survey>();
  run.events.visit(*survey);
  survey->finish();
  memprof::html_options options;
  options.calls_of_stack = memprof::calls_by_name();
  auto found = memprof::detail::stacks_for_page(run.events, memprof::profile_of(run.events), *survey, options, most);
  REQUIRE(found);
  return std::move(*found);
}

TEST_CASE("page of stacks: within an operation without a node, all is known and nothing is an estimate") {
  stacked_trace run;
  const memprof::extend::open_operation large = run.writer.begin_operation("large");
  for (std::uint64_t block = 0; block < 20; ++block) run.allocate(0x10000 + block * 0x1000, 2000, run.stack(0x10));
  run.writer.end_operation(large);
  const memprof::extend::open_operation small = run.writer.begin_operation("small");
  for (std::uint64_t block = 0; block < 15; ++block) run.allocate(0x90000 + block * 0x1000, 10, run.stack(0x10));
  run.writer.end_operation(small);
  using memprof::detail::page_stacks;
  const page_stacks found = stacks_of(run, sampled, {.tree = {.nodes = 2}});
  REQUIRE(found.nodes.size() == 4);  // the two, the small blocks of "large", and what is folded
  CHECK(found.nodes[0].name == "large");
  CHECK(found.nodes[1].name == "program+0x10");
  std::map<stack_node_kind, std::int64_t> known;
  std::int64_t stand_for = 0;
  for (std::size_t node = 0; node < found.nodes.size(); ++node) {
    known[found.nodes[node].kind] += found.allocated[node].bytes;
    stand_for += found.allocated[node].sampled;
  }
  CHECK(known[stack_node_kind::small] == 40'000);
  CHECK(known[stack_node_kind::folded] == 150);
  CHECK(stand_for == 20);
  for (const page_stacks::part& part : found.parts) {
    CHECK((part.of == page_stacks::column::known || found.nodes[part.node].kind == stack_node_kind::call));
  }
}

TEST_CASE("page of stacks: moments are fewer if there are many nodes, and the peak and the end are always among them") {
  stacked_trace run;
  for (std::uint64_t block = 0; block < 2000; ++block) {
    run.allocate(0x10000 + block * 0x1000, 100 + block % 7, run.stack(0x10 + block % 50));
    if (block % 3 != 0) run.deallocate(0x10000 + block * 0x1000);
    if (block == 1000) run.allocate(0x90'0000'0000, 1'000'000, run.stack(0x10));
    if (block == 1001) run.deallocate(0x90'0000'0000);
  }
  const memprof::detail::page_stacks found = stacks_of(run, all, {.tree = {}, .buckets = 512, .parts = 50 * 100});
  const memprof::space_profile& heap = memprof::profile_of(run.events).space("cpu");
  CHECK(found.buckets.size() <= 100);
  CHECK(found.buckets.back().total == heap.cumulative_current);
  const auto greatest = std::max_element(found.buckets.begin(), found.buckets.end(),
                                         [](const auto& left, const auto& right) { return left.total < right.total; });
  CHECK(greatest->total == heap.cumulative_peak);
  // At each of them, the parts add up.
  std::map<std::uint32_t, std::int64_t> now;
  std::size_t next = 0;
  for (std::uint32_t bucket = 0; bucket < found.buckets.size(); ++bucket) {
    for (; next < found.parts.size() && found.parts[next].bucket == bucket; ++next)
      now[found.parts[next].node] = found.parts[next].bytes;
    std::int64_t sum = 0;
    for (const auto& [node, bytes] : now) sum += bytes;
    CHECK(sum == found.buckets[bucket].total);
  }
}

}  // namespace

}  // namespace memprof_tests::page_of_stacks
