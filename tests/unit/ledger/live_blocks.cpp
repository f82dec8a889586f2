#include <memprof/ledger/live_blocks.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof_tests::ledger_live_blocks {

using memprof::detail::live_blocks;

namespace {

struct random_bits {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % bound;
  }
};

/// The address whose hash is `hash`: multiplication by an odd number can be undone.
std::uint64_t address_with_hash(std::uint64_t hash) {
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15U;
  std::uint64_t inverse = multiplier;
  for (int step = 0; step < 6; ++step) inverse *= 2 - multiplier * inverse;
  return hash * inverse;
}

/// Random insertions, lookups and erasures among `addresses`, compared with a map from the standard library after each.
void compare_with_unordered_map(const std::vector<std::uint64_t>& addresses, std::uint64_t operations,
                                unsigned percent_inserted) {
  live_blocks table;
  std::unordered_map<std::uint64_t, std::uint64_t> expected;
  random_bits random{addresses.size() + operations};
  std::uint64_t wrong = 0;
  for (std::uint64_t done = 0; done < operations; ++done) {
    const std::uint64_t address = addresses[random.below(addresses.size())];
    const auto known = expected.find(address);
    if (random.below(100) < percent_inserted) {
      const live_blocks::insertion made = table.insert(address);
      wrong += made.entry == nullptr || made.is_new != (known == expected.end()) || made.entry->address != address;
      if (made.is_new) {
        made.entry->bytes = done;
        expected.emplace(address, done);
      } else {
        wrong += made.entry->bytes != known->second;
      }
      continue;
    }
    const auto found = table.find(address);
    wrong += static_cast<bool>(found) != (known != expected.end());
    if (!found) continue;
    wrong += found->address != address || found->bytes != known->second;
    table.erase(found);
    expected.erase(known);
    wrong += static_cast<bool>(table.find(address));
  }
  CHECK(wrong == 0);
  CHECK(table.size() == expected.size());
  std::size_t visited = 0;
  table.for_each([&](const memprof::detail::block& live) {
    ++visited;
    const auto known = expected.find(live.address);
    wrong += known == expected.end() || known->second != live.bytes;
  });
  CHECK(visited == expected.size());
  CHECK(wrong == 0);
  for (const auto& [address, bytes] : expected) {
    const auto found = table.find(address);
    REQUIRE(found);
    CHECK(found->bytes == bytes);
  }
}

std::vector<std::uint64_t> addresses(std::size_t count, const std::function<std::uint64_t(std::uint64_t)>& make) {
  std::vector<std::uint64_t> made;
  for (std::uint64_t index = 0; index < count; ++index) made.push_back(make(index));
  return made;
}

}  // namespace

TEST_CASE("live blocks: the table agrees with a map from the standard library") {
  SECTION("blocks side by side, address 0 among them") {
    compare_with_unordered_map(addresses(3000, [](std::uint64_t index) { return 16 * index; }), 60'000, 55);
  }
  SECTION("huge pages") {
    compare_with_unordered_map(addresses(3000, [](std::uint64_t index) { return index << 21; }), 60'000, 55);
  }
  SECTION("the ends of the address space") {
    compare_with_unordered_map(addresses(1000, [](std::uint64_t index) { return index % 2 == 0 ? index : ~index; }), 30'000, 50);
  }
  SECTION("only the highest bits differ") {
    compare_with_unordered_map(addresses(1000, [](std::uint64_t index) { return index << 54; }), 30'000, 50);
  }
  SECTION("hashes that all name one group") {
    compare_with_unordered_map(addresses(500, [](std::uint64_t index) { return address_with_hash(index); }), 30'000, 55);
  }
  SECTION("hashes that all name the last group, so that searches wrap around") {
    compare_with_unordered_map(addresses(500, [](std::uint64_t index) { return address_with_hash(~index); }), 30'000, 55);
  }
  SECTION("hashes in two groups side by side, with equal bytes of hash in a group") {
    const auto make = [](std::uint64_t index) { return address_with_hash((index % 2 << 58) + (index / 2)); };
    compare_with_unordered_map(addresses(400, make), 30'000, 50);
  }
  SECTION("mostly empty") {
    compare_with_unordered_map(addresses(2000, [](std::uint64_t index) { return 64 * index; }), 30'000, 20);
  }
}

TEST_CASE("live blocks: an empty table finds nothing and takes no memory") {
  live_blocks table;
  CHECK_FALSE(table.find(0));
  CHECK(table.size() == 0);
  CHECK(table.bytes() == 0);
}

TEST_CASE("live blocks: growing keeps every block, and what is live bounds the memory") {
  live_blocks table;
  constexpr std::uint64_t count = 100'000;
  for (std::uint64_t index = 0; index < count; ++index) {
    const live_blocks::insertion made = table.insert(index * 48);
    REQUIRE(made.is_new);
    made.entry->bytes = index;
  }
  CHECK(table.size() == count);
  CHECK(table.bytes() <= 171 * count);  // a group of 256 bytes for 3 blocks, just after growing twofold
  std::uint64_t wrong = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto found = table.find(index * 48);
    wrong += !found || found->bytes != index;
  }
  CHECK(wrong == 0);
  const std::size_t bytes = table.bytes();
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t index = 0; index < count; ++index) table.erase(table.find(index * 48 + round));
    for (std::uint64_t index = 0; index < count; ++index) (void)table.insert(index * 48 + round + 1);
  }
  CHECK(table.bytes() == bytes);
}

TEST_CASE("live blocks: a search ends although every group was passed by a block that is still live") {
  // The first table has 32 groups of 7 and holds 96 blocks. A third of the groups at a time is filled, passed and emptied.
  live_blocks table;
  std::vector<std::uint64_t> passers;
  for (const std::uint64_t first : {0U, 11U, 22U}) {
    std::vector<std::uint64_t> fillers;
    for (std::uint64_t home = first; home < first + 11; ++home) {
      for (std::uint64_t index = 0; index < 7; ++index) fillers.push_back(address_with_hash((home % 32 << 59) + index));
    }
    for (const std::uint64_t address : fillers) REQUIRE(table.insert(address).is_new);
    passers.push_back(address_with_hash((first << 59) + 100));
    REQUIRE(table.insert(passers.back()).is_new);
    for (const std::uint64_t address : fillers) {
      const auto found = table.find(address);
      REQUIRE(found);
      table.erase(found);
    }
  }
  CHECK(table.size() == 3);
  for (const std::uint64_t address : passers) CHECK(table.find(address));
  for (std::uint64_t home = 0; home < 32; ++home) CHECK_FALSE(table.find(address_with_hash((home << 59) + 200)));
  CHECK(table.insert(0x1234).is_new);
  CHECK_FALSE(table.insert(0x1234).is_new);
}

TEST_CASE("live blocks: crowds of one hash that come and go leave nothing behind that slows or misleads a search") {
  live_blocks table;
  for (std::uint64_t home = 0; home < 32; ++home) {
    std::vector<std::uint64_t> crowd;
    for (std::uint64_t index = 0; index < 310; ++index) crowd.push_back(address_with_hash((home << 59) + index));
    for (const std::uint64_t address : crowd) REQUIRE(table.insert(address).is_new);
    CHECK(table.passed_groups() != 0);
    for (const std::uint64_t address : crowd) {
      const auto found = table.find(address);
      REQUIRE(found);
      table.erase(found);
    }
  }
  CHECK(table.size() == 0);
  CHECK(table.passed_groups() == 0);
  for (std::uint64_t home = 0; home < 32; ++home) CHECK_FALSE(table.find(address_with_hash((home << 59) + 5)));
}

}  // namespace memprof_tests::ledger_live_blocks
