#include <memprof/detail/page_array.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof_tests::detail_page_array {

using memprof::detail::page_array;

TEST_CASE("page array: an empty one takes no memory") {
  const page_array<int> array;
  CHECK(array.empty());
  CHECK(array.bytes() == 0);
  CHECK(array.begin() == array.end());
}

TEST_CASE("page array: what was pushed is there, in order, however it grew") {
  page_array<std::uint64_t> array;
  for (std::uint64_t value = 0; value < 10'000; ++value) REQUIRE(array.push_back(value * value));
  REQUIRE(array.size() == 10'000);
  std::size_t wrong = 0;
  for (std::size_t index = 0; index < array.size(); ++index) wrong += array[index] != index * index;
  CHECK(wrong == 0);
  CHECK(array.bytes() >= array.size() * sizeof(std::uint64_t));
  array.pop_back();
  CHECK(array.back() == 9998U * 9998U);
}

TEST_CASE("page array: an element of itself can be pushed while it grows") {
  page_array<std::array<std::uint64_t, 4>> array;
  REQUIRE(array.push_back({1, 2, 3, 4}));
  for (int copies = 0; copies < 1000; ++copies) REQUIRE(array.push_back(array[0]));
  CHECK(array.back() == std::array<std::uint64_t, 4>{1, 2, 3, 4});
}

TEST_CASE("page array: new elements are zero, also where others had been") {
  page_array<int> array;
  REQUIRE(array.resize(10));
  for (int& value : array) value = 7;
  REQUIRE(array.resize(3));
  REQUIRE(array.resize(5000));
  CHECK(array[2] == 7);
  CHECK(array[3] == 0);
  CHECK(array[9] == 0);
  CHECK(array[4999] == 0);
  array.clear();
  REQUIRE(array.resize(1));
  CHECK(array[0] == 0);
}

TEST_CASE("page array: elements larger than a page are held as well") {
  struct large {
    unsigned char bytes[10'000];
  };
  page_array<large> array;
  REQUIRE(array.resize(3));
  array[2].bytes[9'999] = 5;
  REQUIRE(array.resize(4));
  CHECK(array[2].bytes[9'999] == 5);
}

TEST_CASE("page array: a moved-from array is empty, and more than there is can be asked for") {
  page_array<int> array;
  REQUIRE(array.push_back(3));
  page_array<int> other{std::move(array)};
  CHECK(array.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(other[0] == 3);
  array = std::move(other);
  CHECK(array[0] == 3);
  CHECK_FALSE(array.resize(std::size_t{1} << 60));
  REQUIRE(array.size() == 1);
  CHECK(array[0] == 3);
}

}  // namespace memprof_tests::detail_page_array
