#include <memprof/toolkit/analysis/memory_fit_text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

namespace memprof_tests::report_memory_fit_text {

using memprof::memory_fit;
using memprof::to_text;

namespace {

constexpr std::int64_t mib = 1 << 20;

memory_fit needing(std::int64_t reserved, std::int64_t allocated, std::int64_t requested) {
  memory_fit fit;
  fit.stats.reserved_bytes.peak = reserved;
  fit.stats.allocated_bytes.peak = allocated;
  fit.stats.requested_bytes.peak = requested;
  fit.unlimited_stats = fit.stats;
  return fit;
}

}  // namespace

TEST_CASE("memory fit text: what fits is shown with what it needs") {
  memory_fit fit = needing(110 * mib, 100 * mib, 99 * mib);
  CHECK(to_text(fit) == "Peak: 110.00 MB reserved, 100.00 MB allocated, 99.00 MB requested.\n");
  fit.capacity = 200 * mib;
  CHECK(to_text(fit) == "Fits in 200.00 MB. Peak: 110.00 MB reserved, 100.00 MB allocated, 99.00 MB requested.\n");
}

TEST_CASE("memory fit text: what does not fit is shown with the operation, the room there was and what was fragmented") {
  memory_fit fit = needing(110 * mib, 89 * mib, 88 * mib);
  fit.capacity = 100 * mib;
  fit.first_failure = {.event = 7,
                       .operation = 1,
                       .requested = 25 * mib,
                       .allowed = 100 * mib,
                       .reserved = 80 * mib,
                       .allocated = 64 * mib,
                       .largest_cached = 15 * mib};
  CHECK(to_text(fit, "forward/scores") ==
        "Does not fit in 100.00 MB: out of memory requesting 25.00 MB in operation forward/scores (event 7).\n"
        "  20.00 MB free, 80.00 MB reserved: 64.00 MB allocated and 16.00 MB cached, in pieces of at most 15.00 MB for such "
        "requests.\n"
        "  It would fit without fragmentation: expandable segments may help unless they are already on.\n"
        "  Peak without a limit: 110.00 MB reserved, 89.00 MB allocated, 88.00 MB requested.\n");
  fit.first_failure->requested = 19 * mib;
  CHECK(to_text(fit).find("fragmentation") == std::string::npos);
  CHECK(
      to_text(fit).find("  That would suffice, but the allocator takes memory from the device in larger segments or pages.\n") !=
      std::string::npos);
  fit.first_failure->requested = 36 * mib;
  CHECK(to_text(fit).find("It would fit without fragmentation") != std::string::npos);
  CHECK(to_text(fit).find("That would suffice") == std::string::npos);
  fit.first_failure->requested = 37 * mib;
  CHECK(to_text(fit).find("outside every operation (event 7)") != std::string::npos);
  CHECK(to_text(fit).find("fragmentation") == std::string::npos);
  fit.first_failure->allocated = 80 * mib;
  CHECK(to_text(fit).find("reserved: 80.00 MB allocated.\n") != std::string::npos);
}

TEST_CASE("memory fit text: what is cached has its causes, the largest first") {
  memory_fit fit = needing(110 * mib, 89 * mib, 88 * mib);
  fit.capacity = 100 * mib;
  fit.first_failure = {.requested = 25 * mib, .allowed = 100 * mib, .reserved = 80 * mib, .allocated = 64 * mib};
  fit.first_failure->parts = {.reserved = 80 * mib, .live = 63 * mib, .rounding = mib, .hard = 4 * mib, .soft = 12 * mib};
  CHECK(
      to_text(fit).find("\n  Of the cached: 12.0 MiB soft (free segments and ends of segments, which never merge), 4.00 MiB hard "
                        "(between blocks of a segment).\n") != std::string::npos);
}

}  // namespace memprof_tests::report_memory_fit_text
