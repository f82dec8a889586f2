#include <memprof/profile/reflect.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "declared_structs.hpp"

#if __has_include(<boost/pfr/core_name.hpp>)
#include <boost/pfr/core_name.hpp>
#endif

namespace memprof_tests::profile_reflect {

namespace {

struct not_named {
  int value = 0;
};

static_assert(!memprof::reflected<not_named>);
static_assert(!memprof::reflected<int>);
static_assert(memprof::reflected<memprof::profile>);
static_assert(memprof::named_enumeration<memprof::category>);
static_assert(memprof::named_enumeration<memprof::run_mode>);
static_assert(!memprof::named_enumeration<std::byte>);

}  // namespace

TEST_CASE("reflect: the names are those that profile.hpp declares, for every struct and in order") {
  const auto declared = memprof_tests::declared_structs();
  std::size_t index = 0;
  memprof::profile_structs{}.each([&]<class T>() {
    REQUIRE(index < declared.size());
    INFO("struct " << declared[index].name);
    const std::vector<std::string> named(memprof::detail::field_names<T>.begin(), memprof::detail::field_names<T>.end());
    CHECK(named == declared[index].fields);
    ++index;
  });
  CHECK(index == declared.size());
}

TEST_CASE("reflect: the names are those that Boost.PFR finds") {
#if defined(BOOST_PFR_CORE_NAME_ENABLED) && BOOST_PFR_CORE_NAME_ENABLED
  memprof::profile_structs{}.each([]<class T>() {
    std::vector<std::string> found;
    for (const std::string_view field : boost::pfr::names_as_array<T>())
      found.push_back(memprof_tests::json_name(std::string{field}));
    CHECK(std::equal(found.begin(), found.end(), memprof::detail::field_names<T>.begin(), memprof::detail::field_names<T>.end()));
  });
#else
  SKIP("Boost.PFR finds names only since Boost 1.84");
#endif
}

TEST_CASE("reflect: for_each_field visits the fields of a const and of a mutable value in order") {
  const memprof::event_tally tally{3, 4};
  std::string visited;
  memprof::for_each_field(tally, [&](std::string_view name, const auto& field) {
    static_assert(std::is_same_v<decltype(field), const std::int64_t&>);
    visited += std::string{name} + "=" + std::to_string(field) + ";";
  });
  CHECK(visited == "count=3;bytes=4;");

  memprof::event_tally changed;
  memprof::for_each_field(changed, [value = std::int64_t{7}](std::string_view, auto& field) mutable { field = value++; });
  CHECK(changed == memprof::event_tally{7, 8});
}

}  // namespace memprof_tests::profile_reflect
