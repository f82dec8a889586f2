#include <memprof/ledger/scope_stack.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memprof_tests::ledger_scope_stack {

using memprof::detail::scope_stack;
using memprof::detail::scope_usage;
using memprof::detail::space_scopes;

TEST_CASE("scope stack: outside any scope there is no operation and no category") {
  const scope_stack stack;
  CHECK(stack.empty());
  CHECK(stack.operation() == 0);
  CHECK(stack.tag() == 0);
}

TEST_CASE("scope stack: the innermost scope gives operation and category") {
  scope_stack stack;
  REQUIRE(stack.push({3, 30, 1, 5, 0}));
  REQUIRE(stack.push({4, 40, 2, 6, 0}));
  CHECK(stack.depth() == 2);
  CHECK(stack.operation() == 4);
  CHECK(stack.tag() == 6);
  stack.close_innermost([](const memprof::detail::open_scope&, std::uint8_t, const scope_usage&) {});
  CHECK(stack.operation() == 3);
  CHECK(stack.innermost().name == 30);
}

TEST_CASE("scope stack: a scope that ends hands its bytes and its peak to the one around it") {
  scope_stack stack;
  space_scopes& usage = *stack.in_space(0);
  REQUIRE(stack.push({1, 1, 1, 0, 0}));
  usage.back().allocate(100);
  REQUIRE(stack.push({2, 2, 2, 0, 0}));
  usage.back().allocate(50);
  usage.back().deallocate(40);
  scope_usage ended{};
  const auto remember = [&](const memprof::detail::open_scope&, std::uint8_t, const scope_usage& seen) { ended = seen; };
  stack.close_innermost(remember);
  CHECK(ended.net() == 10);
  CHECK(ended.max_net == 50);
  usage.back().allocate(5);
  usage.back().deallocate(100);
  stack.close_innermost(remember);
  CHECK(ended.net() == 15);      // 100 + (50 - 40) + 5 - 100
  CHECK(ended.max_net == 150);   // 100 + 50
  CHECK(ended.self_max == 105);  // 100 + 5
  CHECK(ended.inner_net == 10);
  REQUIRE(usage.size() == 1);
  CHECK(usage.back().net() == 15);
  CHECK(usage.back().max_net == 150);
}

TEST_CASE("scope stack: a scope whose inner scopes only free has no peak from them") {
  scope_stack stack;
  space_scopes& usage = *stack.in_space(0);
  REQUIRE(stack.push({1, 1, 1, 0, 0}));
  REQUIRE(stack.push({2, 2, 2, 0, 0}));
  usage.back().deallocate(30);
  scope_usage ended{};
  const auto remember = [&](const memprof::detail::open_scope&, std::uint8_t, const scope_usage& seen) { ended = seen; };
  stack.close_innermost(remember);
  usage.back().allocate(20);
  stack.close_innermost(remember);
  CHECK(ended.net() == -10);
  CHECK(ended.max_net == 0);
  CHECK(ended.self_max == 20);
}

TEST_CASE("scope stack: a space that a thread first touches within scopes has an entry for each of them") {
  scope_stack stack;
  REQUIRE(stack.push({1, 1, 1, 0, 0}));
  REQUIRE(stack.push({2, 2, 2, 0, 0}));
  const space_scopes* const late = stack.in_space(200);
  REQUIRE(late != nullptr);
  CHECK(late->size() == 3);
  CHECK(stack.in_space(200) == late);
  std::vector<int> visited;
  stack.for_each_space([&](std::uint8_t space, const space_scopes&) { visited.push_back(space); });
  CHECK(visited == std::vector<int>{200});
}

TEST_CASE("scope stack: stacks that are empty again leave their memory to others") {
  memprof::detail::spare_scope_stacks spare;
  const auto ignore = [](const memprof::detail::open_scope&, std::uint8_t, const scope_usage&) {};
  scope_stack stacks[100];
  std::size_t needed = 0;
  for (scope_stack& stack : stacks) {
    spare.give(stack);
    REQUIRE(stack.push({1, 1, 1, 0, 0}));
    CHECK_FALSE(stack.knows(7));
    space_scopes& usage = *stack.in_space(7);
    REQUIRE(usage.size() == 2);
    CHECK(usage.back().net() == 0);
    usage.back().allocate(100);
    if (needed == 0) needed = stack.bytes();
    CHECK(stack.bytes() == needed);
    CHECK(spare.bytes() == 0);
    stack.close_innermost(ignore);
    spare.take(stack);
    CHECK(stack.bytes() == 0);
    CHECK(spare.bytes() == needed);
    CHECK(stack.operation() == 0);
  }
  // As much as are open at the same time.
  for (scope_stack& stack : stacks) {
    spare.give(stack);
    REQUIRE(stack.push({1, 1, 1, 0, 0}));
  }
  CHECK(spare.bytes() == 0);
  CHECK(stacks[0].bytes() == needed);
}

}  // namespace memprof_tests::ledger_scope_stack
