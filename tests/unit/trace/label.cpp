#include <memprof/trace/label.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::trace_label {

using memprof::detail::label_table;
using memprof::extend::label;

TEST_CASE("label: equal text has one id, and the id leads back to the text") {
  label_table labels;
  const label forward = labels.intern("forward");
  const label backward = labels.intern("backward");
  CHECK(forward != 0);
  CHECK(forward != backward);
  CHECK(labels.intern(std::string{"for"} + "ward") == forward);
  CHECK(labels.text(forward) == "forward");
  CHECK(labels.text(backward) == "backward");
}

TEST_CASE("label: no name and ids that were never given have no text") {
  label_table labels;
  const label only = labels.intern("only");
  CHECK(labels.text(0).empty());
  CHECK(labels.text(only + 1).empty());
  CHECK(labels.text(~label{0}).empty());
}

TEST_CASE("label: a text may hold any bytes and be a prefix of another") {
  label_table labels;
  const std::string_view with_zero{"a\0b", 3};
  const label id = labels.intern(with_zero);
  CHECK(labels.text(id) == with_zero);
  CHECK(labels.intern("a") != id);
  CHECK(labels.intern(with_zero.substr(0, 2)) != id);
}

TEST_CASE("label: texts stay where they are while the table grows") {
  label_table labels;
  std::vector<std::string_view> texts;
  for (std::size_t index = 0; index < 20'000; ++index) {
    const label id = labels.intern("layer." + std::to_string(index));
    REQUIRE(id == index + 1);
    texts.push_back(labels.text(id));
  }
  std::size_t wrong = 0;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    const std::string expected = "layer." + std::to_string(index);
    wrong += texts[index] != expected || labels.intern(expected) != index + 1 ||
             labels.text(static_cast<label>(index + 1)).data() != texts[index].data();
  }
  CHECK(wrong == 0);
}

TEST_CASE("label: a text longer than the table's pages is kept whole, and one beyond the longest is cut") {
  label_table labels;
  const std::string small = "small";
  const std::string huge(label_table::max_name_bytes, 'x');
  const label first = labels.intern(small);
  const label second = labels.intern(huge);
  CHECK(labels.text(first) == small);
  CHECK(labels.text(second) == huge);
  CHECK(labels.bytes() > huge.size());
  CHECK(labels.intern(huge + "more") == second);
}

TEST_CASE("label: texts with equal hashes are distinct") {
  // Two words of equal 32-bit FNV-1a hash, as the list at isthe.com/chongo/tech/comp/fnv names them.
  STATIC_CHECK(label_table::hash_of("costarring") == label_table::hash_of("liquid"));
  label_table labels;
  const label first = labels.intern("costarring");
  const label second = labels.intern("liquid");
  CHECK(first != second);
  CHECK(labels.text(first) == "costarring");
  CHECK(labels.text(second) == "liquid");
}

TEST_CASE("label: a table that is full gives new names one label, and knows the old ones") {
  label_table labels;
  constexpr memprof::detail::label_limits few{.names = 2};
  const label first = labels.intern("first", few);
  const label second = labels.intern("second", few);
  CHECK(labels.intern("third", few) == memprof::extend::other_names);
  CHECK(labels.intern("fourth", few) == memprof::extend::other_names);
  CHECK(labels.intern("first", few) == first);
  CHECK(labels.intern("second", few) == second);
  CHECK(labels.size() == 2);
  CHECK(labels.text(memprof::extend::other_names).empty());

  label_table short_texts;
  constexpr memprof::detail::label_limits few_bytes{.text_bytes = std::size_t{64} * 1024};
  const std::string text(1000, 'x');
  label last = 0;
  for (int index = 0; index < 100'000; ++index) last = short_texts.intern(text + std::to_string(index), few_bytes);
  CHECK(last == memprof::extend::other_names);
  CHECK(short_texts.bytes() < std::size_t{128} * 1024);
}

}  // namespace memprof_tests::trace_label
