#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

namespace memprof_tests::record_annotate {

namespace {

/// What a profile says of a block after `annotate` with that description.
memprof::live_block annotated(const memprof::annotation& text) {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  void* const block = memory.allocate(100);
  memprof::annotate(block, text);
  memprof::live_block shown = capture.profile().space("cpu").live_at_peak.largest_blocks.at(0);
  memory.deallocate(block, 100);
  return shown;
}

}  // namespace

TEST_CASE("annotate: every part of a description stands in the profile, and may be left out") {
  const memprof::live_block all = annotated({.name = "wte",
                                             .shape = "[25]",
                                             .dtype = "float32",
                                             .category = memprof::category::parameter,
                                             .requires_grad = memprof::requires_grad::yes});
  CHECK(all.name == "wte");
  CHECK(all.shape == "[25]");
  CHECK(all.dtype == "float32");
  CHECK(all.category == memprof::category::parameter);
  CHECK(all.requires_grad == memprof::requires_grad::yes);

  const memprof::live_block frozen = annotated({.requires_grad = memprof::requires_grad::no});
  CHECK(frozen.requires_grad == memprof::requires_grad::no);
  CHECK(frozen.name.empty());
  CHECK(frozen.dtype.empty());
  CHECK(frozen.category == memprof::category::other);

  CHECK(annotated({.name = "scratch"}).requires_grad == memprof::requires_grad::unknown);
}

}  // namespace memprof_tests::record_annotate
