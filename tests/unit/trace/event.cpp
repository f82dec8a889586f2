#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace memprof_tests::trace_event {

using memprof::category;
using memprof::extend::event;

TEST_CASE("event: it is 32 trivially copyable bytes without gaps") {
  STATIC_CHECK(sizeof(event) == 32);
  STATIC_CHECK(alignof(event) == 8);
  STATIC_CHECK(std::is_trivially_copyable_v<event>);
  STATIC_CHECK(std::is_standard_layout_v<event>);
  STATIC_CHECK(std::has_unique_object_representations_v<event>);
}

TEST_CASE("event: a space's id never equals the id of no space unless it is meant") {
  STATIC_CHECK(memprof::extend::any_space == std::numeric_limits<decltype(event::space)>::max());
}

TEST_CASE("category: every name leads back to its category, and other text to none") {
  for (std::size_t index = 0; index < memprof::detail::category_names.size(); ++index) {
    const auto value = static_cast<category>(index);
    CHECK(memprof::to_string(value) == memprof::detail::category_names[index]);
    CHECK(memprof::category_from_string(memprof::detail::category_names[index]) == value);
  }
  CHECK(memprof::to_string(category::kv_cache) == std::string_view{"kv_cache"});
  CHECK(memprof::category_from_string("optimizer_state") == category::optimizer_state);
  CHECK_FALSE(memprof::category_from_string("Parameter").has_value());
  CHECK_FALSE(memprof::category_from_string("").has_value());
  CHECK(memprof::to_string(static_cast<category>(200)) == "other");
}

}  // namespace memprof_tests::trace_event
