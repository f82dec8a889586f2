// Small traces with many spaces, segments and threads, as a page and as other programs' formats: they cost memory and time in
// proportion to their events.
#include <memprof/memprof.hpp>

#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/pprof/pprof.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/page/page.hpp>

#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace memprof_tests::integration_hostile_pages_and_exports {

namespace {

using memprof::extend::event;
using memprof::extend::event_kind;

struct made_trace {
  made_trace() {
    target.info({});
    target.name(1, "cpu");
    target.name(2, "STEP");
    for (std::uint8_t space = 0; space < spaces; ++space) target.space({space, 1, 0, false});
  }
  void put(event_kind kind, std::uint32_t ring, event fields = {}) {
    fields.kind = kind;
    fields.stamp = ++events;
    target.events(&fields, &fields + 1, ring);
  }

  static constexpr std::uint8_t spaces = 254;
  memprof::trace target;
  std::uint64_t events = 0;
};

struct dropped_bytes {
  std::size_t count = 0;
  void write(std::string_view text) { count += text.size(); }
};

/// Does `act`, which may refuse the trace, in a process of its own, whose time and memory are measured.
template <class Act>
void require_cheap(const char* what, const made_trace& made, Act&& act) {
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      act();
    } catch (const memprof::error&) {  // refused
    }
    std::_Exit(0);
  }
  int status = 0;
  struct ::rusage usage = {};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  CHECK(status == 0);
  const double megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
  const double us = 1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  INFO(what << ": " << made.events << " events took " << megabytes << " MB and " << us / 1e6 << " s");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr double slower = 20;
#else
  constexpr double slower = 1;
#endif
  // A space costs some 100 ns where nothing is optimized: 254 at each segment are above the limit.
  CHECK(us < slower * (5e6 + 15 * static_cast<double>(made.events)));
  CHECK(megabytes < slower * (250 + 500e-6 * static_cast<double>(made.events)));
}

void require_cheap_everywhere(const made_trace& made) {
  require_cheap("page", made, [&] { (void)memprof::detail::data_for_page(made.target, {}); });
  require_cheap("chrome", made, [&] {
    dropped_bytes out;
    memprof::chrome_trace_writer writer{out};
    (void)memprof::write_timeline(made.target, {}, writer);
  });
  require_cheap("perfetto", made, [&] {
    dropped_bytes out;
    memprof::perfetto_writer writer{out};
    (void)memprof::write_timeline(made.target, {}, writer);
  });
  require_cheap("pprof", made, [&] {
    dropped_bytes out;
    memprof::write_pprof(memprof::stack_table_of(made.target, true), out);
  });
}

}  // namespace

TEST_CASE("hostile pages and exports: hundreds of thousands of segments, and many spaces that do not change") {
  made_trace made;
  for (unsigned space = 0; space < made_trace::spaces; ++space)
    made.put(event_kind::allocate, 1, {0, 64, 8, 0, {}, static_cast<std::uint8_t>(space), 0});
  for (int segment = 0; segment < 500'000; ++segment)
    made.put(event_kind::segment_end, memprof::detail::no_ring_id, {0, 0, 0, 2, {}, 0, 0});
  require_cheap_everywhere(made);
}

TEST_CASE("hostile pages and exports: a hundred thousand threads, and operations that end on another one") {
  made_trace made;
  constexpr std::uint32_t threads = 100'000;
  for (unsigned space = 0; space < made_trace::spaces; ++space)
    made.put(event_kind::allocate, 1, {0, 64, 8, 0, {}, static_cast<std::uint8_t>(space), 0});
  for (std::uint32_t ring = 1; ring <= threads; ++ring)
    made.put(event_kind::allocate, ring, {0, 64 + 64 * std::uint64_t{ring}, 8, 0, {}, 0, 0});
  for (std::uint32_t end = 0; end < 50'000; ++end) {
    const std::uint32_t number = end + 1;
    made.put(event_kind::scope_begin, threads,
             {0, memprof::detail::scope_address(number, 0), 0, 2, {}, memprof::extend::any_space, 0});
    made.put(event_kind::scope_end, 1,
             {0, memprof::detail::scope_address(number, threads), 0, 2, {}, memprof::extend::any_space, 0});
  }
  require_cheap_everywhere(made);
}

}  // namespace memprof_tests::integration_hostile_pages_and_exports
