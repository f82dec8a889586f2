#include <memprof/ledger/operation_tree.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <map>
#include <utility>

namespace memprof_tests::ledger_operation_tree {

using memprof::detail::operation_tree;
using memprof::extend::label;

TEST_CASE("operation tree: it begins with no operation, and a path is one node however often it is called") {
  operation_tree tree;
  CHECK(tree.size() == 1);
  const std::uint32_t forward = tree.child(0, 7);
  CHECK(tree.child(0, 7) == forward);
  const std::uint32_t inner = tree.child(forward, 7);
  CHECK(inner != forward);
  CHECK(tree[inner].parent == forward);
  CHECK(tree[inner].name == 7);
  CHECK(tree.size() == 3);
}

TEST_CASE("operation tree: growing keeps every node, and parents come before their children") {
  operation_tree tree;
  std::map<std::pair<std::uint32_t, label>, std::uint32_t> expected;
  std::uint64_t state = 3;
  for (int call = 0; call < 20'000; ++call) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto parent = static_cast<std::uint32_t>((state >> 33) % tree.size());
    const auto name = static_cast<label>((state >> 20) % 5);
    const std::uint32_t node = tree.child(parent, name);
    const auto [known, is_new] = expected.try_emplace({parent, name}, node);
    REQUIRE(known->second == node);
    if (is_new) {
      REQUIRE(node == tree.size() - 1);
      REQUIRE(node > parent);
    }
  }
  CHECK(tree.size() == expected.size() + 1);
  CHECK(tree.size() > 2000);
}

TEST_CASE("operation tree: invocations are counted, but not those of no operation") {
  operation_tree tree;
  const std::uint32_t node = tree.child(0, 1);
  tree.count_invocation(node);
  tree.count_invocation(node);
  tree.count_finished(node);
  tree.count_invocation(0);
  tree.count_finished(0);
  CHECK(tree[node].invocations == 2);
  CHECK(tree[node].finished == 1);
  CHECK(tree[0].invocations == 0);
  CHECK(tree[0].finished == 0);
}

TEST_CASE("operation tree: beyond the limit each node has one child more, which stands for all others") {
  operation_tree tree{3};
  const std::uint32_t first = tree.child(0, 1);
  const std::uint32_t inner = tree.child(first, 2);
  CHECK(tree.child(0, 3) == 3);
  const std::uint32_t others = tree.child(0, 4);
  CHECK(tree[others].name == memprof::extend::other_names);
  CHECK(tree[others].parent == 0);
  CHECK(tree.child(0, 5) == others);
  CHECK(tree.child(others, 6) == others);
  const std::uint32_t inner_others = tree.child(inner, 7);
  CHECK(inner_others != others);
  CHECK(tree[inner_others].parent == inner);
  CHECK(tree[inner_others].name == memprof::extend::other_names);
  // Those that have a node keep it.
  CHECK(tree.child(0, 1) == first);
  CHECK(tree.child(first, 2) == inner);
  for (label name = 100; name < 10'000; ++name) (void)tree.child(tree.child(0, name), name);
  CHECK(tree.size() == 1 + 3 + 2);
}

TEST_CASE("operation tree: a name for which the process has no room is among the others from the start") {
  operation_tree tree;
  const std::uint32_t others = tree.child(0, memprof::extend::other_names);
  CHECK(tree[tree.child(others, 5)].parent == others);
  CHECK(tree.child(others, memprof::extend::other_names) == others);
}

}  // namespace memprof_tests::ledger_operation_tree
