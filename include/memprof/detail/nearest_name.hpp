#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// How many letters to insert, delete or replace to turn one word into the other (Levenshtein).
[[nodiscard]] inline std::size_t letters_apart(std::string_view left, std::string_view right) {
  vector<std::size_t> row(right.size() + 1);
  for (std::size_t column = 0; column < row.size(); ++column) row[column] = column;
  for (std::size_t line = 0; line < left.size(); ++line) {
    std::size_t diagonal = row[0];
    row[0] = line + 1;
    for (std::size_t column = 0; column < right.size(); ++column) {
      const std::size_t replaced = diagonal + (left[line] == right[column] ? 0 : 1);
      diagonal = row[column + 1];
      row[column + 1] = std::min({replaced, row[column] + 1, row[column + 1] + 1});
    }
  }
  return row.back();
}

/// The name in `known` nearest to a word; the first if several are equally near. One that begins with the word is nearer than one
/// that is misspelt: letters at the end were left out.
template <class Names>
[[nodiscard]] std::string_view nearest_name(std::string_view word, const Names& known) {
  std::string_view nearest;
  std::size_t best = ~std::size_t{0};
  for (const std::string_view name : known) {
    const bool is_begin = word.size() > 1 && name.size() > word.size() && name.substr(0, word.size()) == word;
    const std::size_t apart = is_begin ? 1 : letters_apart(word, name);
    if (apart < best) nearest = name;
    best = std::min(best, apart);
  }
  return nearest;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
