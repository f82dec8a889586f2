#include <memprof/record/phantom_addresses.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>

namespace memprof_tests::record_phantom_addresses {

using memprof::detail::phantom_addresses;

TEST_CASE("reserved addresses: blocks in use never overlap, and each is aligned as asked") {
  phantom_addresses reserved;
  REQUIRE(reserved.is_usable());
  struct block {
    std::size_t bytes;
    std::size_t alignment;
  };
  std::map<std::uintptr_t, block> in_use;
  std::mt19937_64 random{20261121};
  std::size_t overlaps = 0;
  std::size_t misaligned = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (!in_use.empty() && random() % 2 == 0) {
      auto chosen = in_use.lower_bound(random() % (in_use.rbegin()->first + 1));
      reserved.give_back(reinterpret_cast<void*>(chosen->first), chosen->second.bytes, chosen->second.alignment);
      in_use.erase(chosen);
      continue;
    }
    const block wanted{random() % 40 == 0 ? std::size_t{1} << 30 : random() % 5000, std::size_t{1} << (random() % 14)};
    const auto address = reinterpret_cast<std::uintptr_t>(reserved.take(wanted.bytes, wanted.alignment));
    REQUIRE(address != 0);
    misaligned += address % wanted.alignment != 0 || address % phantom_addresses::least_alignment != 0;
    const auto next = in_use.lower_bound(address);
    overlaps += next != in_use.end() && address + wanted.bytes > next->first;
    if (next != in_use.begin()) {
      const auto previous = std::prev(next);
      overlaps += previous->first + previous->second.bytes > address;
    }
    overlaps += !in_use.emplace(address, wanted).second;
  }
  CHECK(overlaps == 0);
  CHECK(misaligned == 0);
}

TEST_CASE("reserved addresses: a freed address serves the next block of its size, so a loop needs no more of them") {
  phantom_addresses reserved;
  std::set<void*> seen;
  for (int step = 0; step < 10'000; ++step) {
    void* const first = reserved.take(1'000'000, 64);
    void* const second = reserved.take(2'000'000, 64);
    seen.insert(first);
    seen.insert(second);
    reserved.give_back(first, 1'000'000, 64);
    reserved.give_back(second, 2'000'000, 64);
  }
  CHECK(seen.size() == 2);
  CHECK(reserved.bytes() < 64 * 1024);
}

TEST_CASE("reserved addresses: blocks of no bytes have addresses of their own") {
  phantom_addresses reserved;
  void* const first = reserved.take(0, 1);
  void* const second = reserved.take(0, 1);
  CHECK(first != nullptr);
  CHECK(first != second);
  CHECK(reserved.contains(first));
  int local = 0;
  CHECK_FALSE(reserved.contains(&local));
}

TEST_CASE("reserved addresses: what does not fit is refused, not wrapped around") {
  phantom_addresses reserved;
  CHECK(reserved.take(SIZE_MAX, 64) == nullptr);
  CHECK(reserved.take(std::size_t{1} << 62, 64) == nullptr);
  CHECK(reserved.take(64, std::size_t{1} << 62) == nullptr);
  CHECK(reserved.take(64, 64) != nullptr);
}

}  // namespace memprof_tests::record_phantom_addresses
