#include <memprof/ledger/operation_tree.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <map>
#include <utility>

using memprof::label;
using memprof::operation_tree;

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
