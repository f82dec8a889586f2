#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>

#include <cstddef>

/// @file
/// A binary heap for rows of plain values, and sorting by it. The standard's `push_heap` and `sort` would do, but every
/// translation unit that includes the library would pay for instantiating them: tens of milliseconds per row type.

namespace memprof::inline MEMPROF_ABI::detail {

/// Moves the value at `position` down until nothing below it comes after it: the top is the last in the order `before`.
template <class T, class Before>
void sift_into_heap(T* values, std::size_t count, std::size_t position, Before before) noexcept {
  const T moving = values[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= count) break;
    if (child + 1 < count && before(values[child], values[child + 1])) ++child;
    if (!before(moving, values[child])) break;
    values[position] = values[child];
    position = child;
  }
  values[position] = moving;
}

/// Adds the value at `values[count]` to the heap of `count` values.
template <class T, class Before>
void push_into_heap(T* values, std::size_t count, Before before) noexcept {
  const T moving = values[count];
  std::size_t position = count;
  while (position != 0) {
    const std::size_t parent = (position - 1) / 2;
    if (!before(values[parent], moving)) break;
    values[position] = values[parent];
    position = parent;
  }
  values[position] = moving;
}

/// Sorts by `before`, a strict order in which no two values are equivalent (heap sort is not stable).
template <class T, class Before>
void sort_rows(T* values, std::size_t count, Before before) noexcept {
  for (std::size_t position = count / 2; position-- > 0;) sift_into_heap(values, count, position, before);
  while (count > 1) {
    --count;
    const T last = values[0];
    values[0] = values[count];
    values[count] = last;
    sift_into_heap(values, count, 0, before);
  }
}

/// Sorts row numbers. `before` compares two of them, and is given `rows`.
[[gnu::cold]] inline void sort_row_numbers(std::size_t* numbers, std::size_t count, const void* rows,
                                           bool (*before)(const void* rows, std::size_t left, std::size_t right)) noexcept {
  sort_rows(numbers, count, [&](std::size_t left, std::size_t right) { return before(rows, left, right); });
}

/// The numbers below `count`, sorted by `before` or else from the lowest: a stable order of rows that are too large to move, or
/// are sorted so rarely that each sort had better not be compiled for its type.
template <class Before>
[[nodiscard]] vector<std::size_t> row_order(std::size_t count, const Before& before) {
  vector<std::size_t> numbers(count);
  for (std::size_t number = 0; number < count; ++number) numbers[number] = number;
  sort_row_numbers(numbers.data(), count, &before, [](const void* rows, std::size_t left, std::size_t right) {
    const Before& is_before = *static_cast<const Before*>(rows);
    return is_before(left, right) || (left < right && !is_before(right, left));
  });
  return numbers;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
