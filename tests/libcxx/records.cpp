// What of memprof needs no std::pmr, with libc++.
#include <memprof/detail/byte_size.hpp>
#include <memprof/memprof.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
#if defined(USE_MEMORY_RESOURCE)
  memprof::memory_resource memory{"cpu"};
#endif
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation<"fill">();
    std::vector<int, memprof::allocator<int>> numbers(1000);
    memprof::snapshot("FILLED");
  }
  capture.end();
  const memprof::profile& profile = capture.profile();
  expect(profile.space("cpu").cumulative_peak == 4000, "the peak is that of the vector");
  expect(profile.space("cpu").cumulative_current == 0, "nothing is left");
  expect(profile.segments.size() == 2, "there are two segments");
  expect(memprof::to_text(profile, {.format = memprof::text_format::tracker}).find("Overall DRAM Peak: 0.00 MB") !=
             std::string::npos,
         "the text has the totals");

  // Decimal numbers, which libc++ before version 20 has no std::from_chars for.
  expect(memprof::parse_byte_size("1.5e9") == 1'500'000'000, "a number with an exponent");
  expect(memprof::parse_byte_size("1.5 GiB") == 1'610'612'736, "a number with a unit");
  for (const char* const wrong : {"+1.5", " 1.5", "0x1p3", "1,5", "inf", "1e999", "-1.5", ".", "1.5.5"}) {
    bool is_refused = false;
    try {
      (void)memprof::parse_byte_size(wrong);
    } catch (const memprof::error&) {
      is_refused = true;
    }
    expect(is_refused, wrong);
  }
  return failures == 0 ? 0 : 1;
}
