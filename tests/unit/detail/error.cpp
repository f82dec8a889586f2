#include <memprof/detail/error.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <stdexcept>
#include <string>
#include <type_traits>

namespace memprof_tests::detail_error {

TEST_CASE("error: raise throws a memprof::error that keeps its text and is a runtime error") {
  STATIC_CHECK(std::is_base_of_v<std::runtime_error, memprof::error>);
  std::string text;
  try {
    memprof::detail::raise("what, where, and what to do");
  } catch (const memprof::error& caught) {
    text = caught.what();
  }
  CHECK(text == "what, where, and what to do");
}

TEST_CASE("error: a NUL in a name does not end the text") {
  using namespace std::string_literals;
  CHECK_THROWS_WITH(memprof::detail::raise("no space '\0x'; it has 'a\0b'"s), "no space '\\x00x'; it has 'a\\x00b'");
}

}  // namespace memprof_tests::detail_error
