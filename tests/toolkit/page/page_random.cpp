#include <memprof/toolkit/page/html.hpp>
#include <memprof/trace/trace.hpp>
#include <property/random_sequence.hpp>
#include <scratch_folder.hpp>
#include <toolkit/page/brute_force.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof_tests::report_html_page_random {

namespace {

using memprof::extend::event;
using memprof::extend::event_kind;
namespace property = memprof::property;

constexpr std::array<std::string_view, property::label_count> texts{
    "forward", "attention", "a/b", "", "STEP", "MODEL", "x", "y", "w", "b\x1f[2]", "c\x1f\x1f f", "d"};

[[nodiscard]] memprof::trace trace_of(const property::sequence& made) {
  memprof::trace result;
  memprof::extend::capture_info info;
  info.begin_stamp = property::first_stamp;
  result.info(info);
  for (std::size_t index = 0; index < texts.size(); ++index)
    result.name(static_cast<memprof::extend::label>(index + 1), texts[index]);
  for (std::uint8_t id = 0; id < property::space_count; ++id) {
    result.name(static_cast<memprof::extend::label>(texts.size() + id + 1), "space" + std::to_string(id));
    result.space({id, static_cast<memprof::extend::label>(texts.size() + id + 1), made.capacities[id], made.are_per_core[id]});
  }
  for (const property::step& step : made.steps) {
    if (step.is_segment_end) {
      const event end{step.recorded.stamp, 0, 0, step.recorded.label, event_kind::segment_end, memprof::extend::any_space, 0};
      result.events(&end, &end + 1, memprof::detail::no_ring_id);
    } else {
      // Rings and threads count from 1 in a trace.
      event recorded = step.recorded;
      if (recorded.kind == event_kind::thread_begin) ++recorded.address;
      if (recorded.kind == event_kind::scope_begin && recorded.bytes != 0) recorded.bytes += memprof::detail::scope_address(0, 1);
      result.events(&recorded, &recorded + 1, step.thread + 1);
    }
  }
  if (made.is_complete) {
    const std::array<event, 2> end{{{0, 0, 0, 1, event_kind::segment_end, memprof::extend::any_space, 0},
                                    {0, 0, 0, 0, event_kind::capture_end, memprof::extend::any_space, 0}}};
    result.events(end.data(), end.data() + end.size(), memprof::detail::no_ring_id);
  }
  return result;
}

TEST_CASE("write_html: random runs are shown as they were", "[html]") {
  const memprof_tests::scratch_folder folder;
  const auto path = folder / "page.html";
  for (const property::personality& kind : property::personalities) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(kind.name, seed);
      const memprof::trace source = trace_of(property::sequence_generator{kind, seed}.make(1));
      memprof::write_html(source, path);
      const memprof_tests::page_reader page{path};
      memprof_tests::page_check{page, source}.everything();
    }
  }
}

}  // namespace

}  // namespace memprof_tests::report_html_page_random
