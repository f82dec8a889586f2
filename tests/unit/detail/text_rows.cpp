#include <memprof/detail/text_rows.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

TEST_CASE("text rows: texts are numbered in the order of their first occurrence") {
  memprof::detail::text_rows rows;
  std::vector<std::size_t> found;
  std::vector<bool> is_new;
  for (const std::string_view text : {"b", "a", "b", "", "a", ""}) {
    const memprof::detail::text_row row = rows.find_or_add(text);
    found.push_back(row.index);
    is_new.push_back(row.is_new);
  }
  CHECK(found == std::vector<std::size_t>{0, 1, 0, 2, 1, 2});
  CHECK(is_new == std::vector<bool>{true, true, false, true, false, false});
  CHECK(rows.size() == 3);
}

TEST_CASE("text rows: texts keep their rows as the table grows") {
  constexpr std::size_t count = 10'000;
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < count; ++index) texts.push_back("step " + std::to_string(index));
  memprof::detail::text_rows rows;
  for (int round = 0; round < 2; ++round) {
    std::size_t wrong = 0;
    for (std::size_t index = 0; index < count; ++index) {
      const memprof::detail::text_row row = rows.find_or_add(texts[index]);
      wrong += row.index != index || row.is_new != (round == 0) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}
