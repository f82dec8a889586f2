#include <memprof/report/text/shortened_names.hpp>

#include <memprof/report/text/display_width.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace memprof_tests::report_text_shortened_names {

using memprof::detail::display_width;
using memprof::detail::shortened_apart;

using names = std::vector<std::string>;

TEST_CASE("shortened names: what fits stays, and what does not loses its middle") {
  CHECK(shortened_apart({"a/x/malloc", "b/x/malloc", "c"}, 36) == names{"a/x/malloc", "b/x/malloc", "c"});
  CHECK(shortened_apart({"forward/block/attention/scores", "c"}, 13) == names{"forwar…scores", "c"});
  CHECK(shortened_apart({}, 10).empty());
}

TEST_CASE("shortened names: those that would look alike show where they differ") {
  CHECK(shortened_apart({"train/gpt/layer 1/linear/allocate/malloc", "train/gpt/layer 2/linear/allocate/malloc", "c"}, 20) ==
        names{"…layer 1…cate/malloc", "…layer 2…cate/malloc", "c"});
  // Of a long component that differs only what there is room for, from shortly before the difference.
  CHECK(shortened_apart({"model/forward_of_the_first_layer/allocate", "model/forward_of_the_other_layer/allocate"}, 16) ==
        names{"…_of_the_first_…", "…_of_the_other_…"});
}

TEST_CASE("shortened names: equal names stay equal") {
  const names shown = shortened_apart({"step/with/a/long/path", "step/with/a/long/path", "step/with/x/long/path"}, 12);
  CHECK(shown[0] == shown[1]);
  CHECK(shown[0] != shown[2]);
}

TEST_CASE("shortened names: stacks of any depth keep their width, and differ where columns allow it") {
  std::mt19937 random{5};
  const auto one_of = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>{0, count - 1}(random); };
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> stacks;
    while (stacks.size() < 8) {
      std::string stack = "__clone/thread_main";
      for (std::size_t depth = one_of(12); depth > 0; --depth)
        stack += "/" + std::string(3 + one_of(3), static_cast<char>('a' + one_of(4)));
      stacks.insert(stack + "/at::empty/c10::cuda::CachingAllocator::malloc (CUDACachingAllocator.cpp:0)");
    }
    const names all{stacks.begin(), stacks.end()};
    for (const std::size_t columns : {24U, 36U, 60U}) {
      const names shown = shortened_apart(all, columns);
      for (const std::string& name : shown) CHECK(display_width(name) <= columns);
      CHECK(std::set<std::string>(shown.begin(), shown.end()).size() == all.size());
    }
  }
}

TEST_CASE("shortened names: characters are not cut") {
  const std::string wide = "\xe8\xa8\x93\xe7\xb7\xb4";  // two ideographs of two columns each
  const names shown =
      shortened_apart({"gpt/" + wide + wide + "/a/end of the path", "gpt/" + wide + wide + "/b/end of the path"}, 9);
  CHECK(shown == names{"…a…e path", "…b…e path"});
  CHECK(display_width(shown[0]) <= 9);
}

}  // namespace memprof_tests::report_text_shortened_names
