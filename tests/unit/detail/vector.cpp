#include <memprof/detail/vector.hpp>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace memprof_tests::detail_vector {

namespace {

/// A number beyond those that libstdc++ keeps inside the string object, and one inside it, by turns.
std::string text_of(std::uint32_t number) {
  return std::string(number % 2 == 0 ? "" : "longer than any string object: ") + std::to_string(number);
}

template <class T>
T value_of(std::uint32_t number) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text_of(number);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(number);
  } else {
    T inner;
    for (std::uint32_t index = 0; index < number % 4; ++index) inner.push_back(text_of(number + index));
    return inner;
  }
}

template <class T>
std::vector<T> standard(const memprof::vector<T>& of) {
  return std::vector<T>(of.begin(), of.end());
}

/// The same random operations on both; `Expected` is an element that equals `T`'s.
template <class T>
void compare_with_standard(std::uint32_t seed) {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  memprof::vector<T> tested;
  std::vector<T> expected;
  for (int operation = 0; operation < 200; ++operation) {
    const std::uint32_t number = static_cast<std::uint32_t>(random());
    const std::size_t size = expected.size();
    const std::size_t index = size == 0 ? 0 : number % size;
    switch (random() % 17) {
      case 0:
      case 1:
      case 2:
        tested.push_back(value_of<T>(number));
        expected.push_back(value_of<T>(number));
        break;
      case 3:
        tested.emplace_back(value_of<T>(number));
        expected.emplace_back(value_of<T>(number));
        break;
      case 4:
        if (size == 0) break;
        tested.push_back(tested[index]);
        expected.push_back(std::vector<T>(expected)[index]);
        break;
      case 5:
        if (size == 0) break;
        tested.insert(tested.begin() + index, tested.back());
        expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(index), T(expected.back()));
        break;
      case 6: {
        const std::size_t last = index + (number >> 16U) % (size - index + 1);
        const T* const next = tested.erase(tested.begin() + index, tested.begin() + last);
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(index),
                       expected.begin() + static_cast<std::ptrdiff_t>(last));
        REQUIRE(next == tested.begin() + index);
        break;
      }
      case 7:
        if (size == 0) break;
        tested.erase(tested.begin() + index);
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case 8:
        if (size == 0) break;
        tested.pop_back();
        expected.pop_back();
        break;
      case 9:
        tested.resize(number % 40);
        expected.resize(number % 40);
        tested.resize(number % 50, value_of<T>(number));
        expected.resize(number % 50, value_of<T>(number));
        break;
      case 10: {
        const memprof::vector<T> copy(tested);
        REQUIRE(copy == tested);
        tested.assign(copy.begin(), copy.end());
        tested.append(copy.begin(), copy.begin() + index);
        expected.insert(expected.end(), copy.begin(), copy.begin() + index);
        break;
      }
      case 11: {
        memprof::vector<T> other{value_of<T>(number), value_of<T>(number + 1)};
        other = tested;
        REQUIRE(other == tested);
        tested = std::move(other);
        break;
      }
      case 12: {
        memprof::vector<T> other(std::move(tested));
        REQUIRE(tested.empty());
        tested.swap(other);
        break;
      }
      case 13:
        tested.reserve(number % 100);
        REQUIRE(tested.capacity() >= number % 100);
        break;
      case 14: {
        if (number % 8 != 0) break;
        tested.clear();
        expected.clear();
        break;
      }
      case 15: {
        if (size == 0) break;
        const T chosen = expected[index];
        const auto applies = [&](const T& value) { return value == chosen; };
        REQUIRE(erase_if(tested, applies) == std::erase_if(expected, applies));
        break;
      }
      default: {
        tested = memprof::vector<T>(number % 9, value_of<T>(number));
        expected = std::vector<T>(number % 9, value_of<T>(number));
        break;
      }
    }
    REQUIRE(standard(tested) == expected);
    REQUIRE(tested.size() == expected.size());
    REQUIRE(tested.size() <= tested.capacity());
  }
}

/// Counts its objects, and throws when a copy is made after `copies_left` others.
struct counted {
  static inline int alive = 0;
  static inline int copies_left = 0;

  explicit counted(int of) : number(of) { ++alive; }
  counted(const counted& other) : number(other.number) {
    if (copies_left-- == 0) throw std::runtime_error("no more copies");
    ++alive;
  }
  counted(counted&& other) noexcept : number(std::exchange(other.number, -1)) { ++alive; }
  counted& operator=(const counted&) = delete;
  counted& operator=(counted&&) = delete;
  ~counted() { --alive; }

  int number;
};

}  // namespace

TEST_CASE("vector: random operations give what the standard's vector gives") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    compare_with_standard<std::uint64_t>(seed);
    compare_with_standard<unsigned char>(seed);
    compare_with_standard<std::string>(seed);
    compare_with_standard<memprof::vector<std::string>>(seed);
  }
}

TEST_CASE("vector: an empty one takes no memory, and new elements have their default values") {
  const memprof::vector<std::string> none;
  CHECK(none.data() == nullptr);
  CHECK(none.capacity() == 0);
  CHECK(none.begin() == none.end());
  CHECK(standard(memprof::vector<int>(3)) == std::vector<int>{0, 0, 0});
  CHECK(standard(memprof::vector<std::string>(2)) == std::vector<std::string>{"", ""});
  CHECK(standard(memprof::vector<bool>(2, true)) == std::vector<bool>{true, true});
}

TEST_CASE("vector: adding elements one by one moves each a bounded number of times") {
  memprof::vector<int> numbers;
  std::size_t moved = 0;
  for (int number = 0; number < 100'000; ++number) {
    const std::size_t before = numbers.capacity();
    numbers.push_back(number);
    if (numbers.capacity() != before) moved += before;
  }
  CHECK(moved < 2 * numbers.size());
}

TEST_CASE("vector: two are equal if their elements are") {
  const memprof::vector<std::string> names{"a", "b"};
  CHECK(names == memprof::vector<std::string>{"a", "b"});
  CHECK(names != memprof::vector<std::string>{"a", "c"});
  CHECK(names != memprof::vector<std::string>{"a"});
  CHECK(names != memprof::vector<std::string>{"a", "b", ""});
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(std::vector<std::string>{"a", "c"} != names);
  CHECK(names != std::vector<std::string>{"a"});
}

TEST_CASE("vector: an index that is not below the size is refused by `at`") {
  memprof::vector<int> numbers{1, 2};
  numbers.at(1) = 5;
  CHECK(std::as_const(numbers).at(1) == 5);
  CHECK_THROWS_AS(numbers.at(2), std::out_of_range);
  CHECK_THROWS_AS(std::as_const(numbers).at(2), std::out_of_range);
}

TEST_CASE("vector: it converts to a span, and elements that can only be moved can be held") {
  memprof::vector<int> numbers{1, 2, 3};
  const std::span<int> all = numbers;
  all[1] = 7;
  CHECK(numbers[1] == 7);
  CHECK(std::span<const int>(std::as_const(numbers)).size() == 3);

  memprof::vector<std::unique_ptr<int>> owners;
  for (int number = 0; number < 10; ++number) owners.push_back(std::make_unique<int>(number));
  owners.erase(owners.begin());
  owners.insert(owners.begin() + 1, std::make_unique<int>(77));
  CHECK(*owners.front() == 1);
  CHECK(*owners[1] == 77);
  CHECK(*owners.back() == 9);
}

TEST_CASE("vector: its elements may be of a type that holds such vectors") {
  struct tree {
    memprof::vector<tree> branches;
  };
  tree root;
  root.branches.resize(2);
  root.branches[1].branches.push_back(root.branches[0]);
  const tree copy = root;
  root = {};
  CHECK(copy.branches[1].branches.size() == 1);
}

TEST_CASE("vector: an element that cannot be copied leaves everything as it was") {
  counted::alive = 0;
  {
    memprof::vector<counted> made;
    for (int number = 0; number < 5; ++number) made.emplace_back(number);
    CHECK(counted::alive == 5);

    counted::copies_left = 3;
    CHECK_THROWS_AS(memprof::vector<counted>(made), std::runtime_error);
    CHECK(counted::alive == 5);

    memprof::vector<counted> target;
    target.emplace_back(42);
    counted::copies_left = 3;
    CHECK_THROWS_AS(target = made, std::runtime_error);
    CHECK(counted::alive == 6);
    REQUIRE(target.size() == 1);
    CHECK(target[0].number == 42);

    counted::copies_left = 0;
    CHECK_THROWS_AS(made.push_back(target[0]), std::runtime_error);
    CHECK(made.size() == 5);
    counted::copies_left = 2;
    CHECK_THROWS_AS(memprof::vector<counted>(4, target[0]), std::runtime_error);
    CHECK(counted::alive == 6);
  }
  CHECK(counted::alive == 0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMPROF_TEST_SANITIZED  // ends the program where `operator new` should throw
#endif
#endif
#if !defined(MEMPROF_TEST_SANITIZED) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("vector: more elements than fit into memory are refused, and those that are there stay") {
  memprof::vector<std::uint64_t> numbers{1, 2, 3};
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS(numbers.reserve(most), std::bad_alloc);
  CHECK_THROWS_AS(numbers.resize(most / 8), std::bad_alloc);
  CHECK_THROWS_AS(numbers.resize(most / 2), std::bad_alloc);  // its bytes do not fit into a number
  CHECK_THROWS_AS(memprof::vector<char>(most), std::bad_alloc);
  CHECK(standard(numbers) == std::vector<std::uint64_t>{1, 2, 3});
}
#endif

}  // namespace memprof_tests::detail_vector
