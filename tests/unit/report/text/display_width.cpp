#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/text_format.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <random>
#include <string>

namespace memprof_tests::report_text_display_width {

using memprof::detail::display_width;
using memprof::detail::left_in;
using memprof::detail::on_one_line;
using memprof::detail::right_in;
using memprof::detail::shortened;

namespace {

constexpr const char* ellipsis = "\xe2\x80\xa6";

bool is_utf8(const std::string& text) {
  for (std::size_t index = 0; index < text.size();) {
    const auto character = memprof::detail::utf8_at(text, index);
    if (character.code == memprof::detail::utf8_character::invalid) return false;
    index += character.size;
  }
  return true;
}

}  // namespace

TEST_CASE("display width: columns are those of UAX 11") {
  CHECK(display_width("FORWARD_PASS") == 12);
  CHECK(display_width("Pr\xc3\xbc"
                      "fung") == 7);                      // U+00FC
  CHECK(display_width("\xe8\xa8\x93\xe7\xb7\xb4") == 4);  // two ideographs
  CHECK(display_width("\xed\x95\x9c\xea\xb8\x80") == 4);  // two syllables of Hangul
  CHECK(display_width("\xef\xbd\xb1") == 1);              // U+FF71, halfwidth
  CHECK(display_width("e\xcc\x81") == 1);                 // a combining accent
  CHECK(display_width("\xf0\x9f\x9a\x80") == 2);          // a rocket
  CHECK(display_width("\xe2\x9c\x93") == 1);              // U+2713, between wide neighbours
  CHECK(display_width("a\xe2\x80\x8b"
                      "b") == 2);  // U+200B has no width
  CHECK(display_width(ellipsis) == 1);
}

TEST_CASE("display width: a text that is too long loses its middle, never half a character") {
  CHECK(shortened("forward", 7) == "forward");
  CHECK(shortened("forward", 6) == std::string{"for"} + ellipsis + "rd");
  CHECK(shortened("forward", 5) == std::string{"fo"} + ellipsis + "rd");
  CHECK(shortened("forward", 1) == ellipsis);
  CHECK(shortened("forward", 0).empty());
  const std::string wide = "\xe8\xa8\x93\xe7\xb7\xb4\xe8\xa8\x93\xe7\xb7\xb4";                       // 8 columns
  CHECK(shortened(wide, 7) == "\xe8\xa8\x93" + std::string{ellipsis} + "\xe8\xa8\x93\xe7\xb7\xb4");  // 2 + 1 + 4
  CHECK(shortened(wide, 6) == "\xe8\xa8\x93" + std::string{ellipsis} + "\xe7\xb7\xb4");
  std::mt19937_64 random{11};
  const std::string parts[] = {"a", "\xc3\xbc", "\xe8\xa8\x93", "\xf0\x9f\x9a\x80", "e\xcc\x81", " "};
  for (int round = 0; round < 5'000; ++round) {
    std::string text;
    for (std::size_t count = random() % 30; count > 0; --count) text += parts[random() % 6];
    const std::size_t columns = random() % 30;
    const std::string cut = shortened(text, columns);
    INFO(text << " in " << columns << " is " << cut);
    CHECK(is_utf8(cut));
    CHECK(display_width(cut) <= columns);
    CHECK((display_width(text) > columns || cut == text));
    CHECK((display_width(text) <= columns || columns < 2 ||
           display_width(cut) + 3 > columns));  // at most a wide one is lost at each end
  }
}

TEST_CASE("display width: cells are padded by columns, not by bytes") {
  CHECK(left_in("\xe8\xa8\x93", 4) == "\xe8\xa8\x93  ");
  CHECK(right_in("\xc3\xbc", 3) == "  \xc3\xbc");
  CHECK(right_in("12345", 3) == std::string{"1"} + ellipsis + "5");
}

TEST_CASE("display width: on one line there is nothing that a terminal obeys, and nothing that is no UTF-8") {
  CHECK(on_one_line("a\nb\tc\x1b[2J") == "a\\nb\\tc\\x1b[2J");
  CHECK(on_one_line("\xc2\x9b"
                    "2J") == "\\xc2\\x9b2J");  // U+009B is the escape sequence in one character
  CHECK(on_one_line("a\xe2\x80\xae"
                    "b") == "a\\xe2\\x80\\xaeb");           // U+202E turns the direction of writing
  CHECK(on_one_line("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");  // U+2028 separates lines
  CHECK(on_one_line("\xff\xc3") == "\\xff\\xc3");           // no UTF-8, and half a character
  CHECK(on_one_line("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(on_one_line("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(on_one_line("\xe8\xa8\x93 \xc3\xbc \xf0\x9f\x9a\x80") == "\xe8\xa8\x93 \xc3\xbc \xf0\x9f\x9a\x80");
  CHECK(on_one_line("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

}  // namespace memprof_tests::report_text_display_width
