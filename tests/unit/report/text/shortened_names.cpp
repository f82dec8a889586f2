#include <memprof/detail/vector.hpp>
#include <memprof/report/text/shortened_names.hpp>

#include <memprof/report/text/display_width.hpp>
#include <memprof/report/text/text_format.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace memprof_tests::report_text_shortened_names {

using memprof::detail::display_width;
using memprof::detail::shortened_apart;
using memprof::detail::shortened_name;

using names = memprof::vector<std::string>;

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
        names{"…the_fi…allocate", "…the_ot…allocate"});
}

TEST_CASE("shortened names: of a stack, the innermost frame stays, with its file and line") {
  const std::string outer = "main (main.cc:430)/train (main.cc:380)/fasttext::FastText::train (fasttext.cc:745)/";
  const std::string inner = "fasttext::Dictionary::Dictionary (dictionary.cc:28)";
  CHECK(shortened_name(outer + inner, 80) == "main (main.cc:430)/train (ma…" + inner);
  CHECK(shortened_name(outer + inner, 54) == "…)/" + inner);  // so little of the beginning says nothing
  CHECK(shortened_name(outer + inner, 36) == "…nary::Dictionary (dictionary.cc:28)");
  CHECK(shortened_name(outer + inner, 2) == "…)");
  CHECK(shortened_name(outer + inner, 0).empty());
  CHECK(shortened_name("a/b with a \\/ in its name", 12) == "…in its name");
  for (std::size_t columns = 20; columns < outer.size() + inner.size(); ++columns) {
    CHECK(display_width(shortened_name(outer + inner, columns)) == columns);
    CHECK(shortened_name(outer + inner, columns).ends_with(" (dictionary.cc:28)"));
  }
}

TEST_CASE("shortened names: of a stack that ends in a library, the innermost frame of the program stays") {
  const std::string outer = "<module> (train.py:1)/main (train.py:300)/train_one_epoch (train.py:200)/";
  const std::string own = "forward (attention_with_a_long_name.py:77)";
  const std::string library = "/at::native::_efficient_attention_cuda (attention.cu:700)/at::detail::empty_generic";
  CHECK(shortened_name(outer + own + library, 60) == "<module> (train.…" + own + "…");
  CHECK(shortened_name(outer + own + library, 44) == "…" + own + "…");
  CHECK(shortened_name(outer + own + "/operator new", 44) == "…" + own + "…");
  CHECK(shortened_name(outer + own + "/std::vector::resize/__gnu_cxx::new_allocator", 44) == "…" + own + "…");
  CHECK(shortened_name(outer + own + library, 200) == outer + own + library);
  // Where all are of libraries, the last one stays.
  CHECK(shortened_name("at::native::empty_strided_cuda/c10::malloc", 24) == "at::native::…c10::malloc");
  // Python's interpreter between them is a library, too; a function of the program that is named like it has a file.
  const std::string interpreter = "/PyNumber_Add/_PyType_GetText/PyDescr_IsData/torch::autograd::THPVariable_add (methods.cpp:0)";
  CHECK(shortened_name(outer + own + interpreter + library, 44) == "\u2026" + own + "\u2026");
  CHECK(shortened_name(outer + "PyTree_map (tree.py:7)/PyTree::map/at::empty", 30).find("PyTree::map") != std::string::npos);
  CHECK(shortened_name(outer + "PyTree_map (tree.py:7)/at::empty/c10::alloc", 30).find("PyTree_map (tree.py:7)") !=
        std::string::npos);
  for (std::size_t columns = 50; columns < (outer + own + library).size(); ++columns) {
    CHECK(display_width(shortened_name(outer + own + library, columns)) <= columns);
    CHECK(shortened_name(outer + own + library, columns).find(own) != std::string::npos);
  }
}

TEST_CASE("shortened names: stacks that end in the same frame show it beside where they differ") {
  const auto stack = [](const char* between) {
    return std::string{"main (main.cc:430)/train (main.cc:380)/"} + between +
           "/fasttext::DenseMatrix::DenseMatrix (densematrix.cc:28)";
  };
  for (const std::size_t columns : {40U, 60U, 80U}) {
    const names shown = shortened_apart(
        {stack("createRandomMatrix (fasttext.cc:761)"), stack("createTrainOutputMatrix (fasttext.cc:763)")}, columns);
    CHECK(shown[0] != shown[1]);
    for (const std::string& name : shown) {
      CHECK(name.ends_with(" (densematrix.cc:28)"));
      CHECK(display_width(name) <= columns);
    }
  }
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

TEST_CASE("shortened names: an escape of a control character is kept or left out as a whole") {
  const std::string escape = memprof::detail::on_one_line("\x1b");
  REQUIRE(escape == "\\x1b");
  const auto is_whole = [&](std::string shown) {
    for (std::size_t at = 0; (at = shown.find(escape)) != std::string::npos;) shown.erase(at, escape.size());
    return shown.find_first_of("\\x1b") == std::string::npos;
  };
  const auto name = [&](const char* last) {
    std::string text = "go/";
    for (int count = 0; count < 6; ++count) text.append(escape).append("t").append(escape).append(escape);
    return text + "/" + escape + "k" + last + escape + escape + "y";
  };
  const names both{name("m"), name("n")};
  for (std::size_t columns = 1; columns <= display_width(both[0]); ++columns) {
    INFO(columns);
    const std::string cut = memprof::detail::shortened(both[0], columns);
    CHECK(is_whole(cut));
    CHECK(display_width(cut) <= columns);
    CHECK(is_whole(shortened_name(both[0], columns)));
    CHECK(display_width(shortened_name(both[0], columns)) <= columns);
    for (const std::string& shown : shortened_apart(both, columns)) {
      CHECK(is_whole(shown));
      CHECK(display_width(shown) <= columns);
    }
  }
}

}  // namespace memprof_tests::report_text_shortened_names
