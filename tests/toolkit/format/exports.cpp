#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/gzip.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/toolkit/format/pytorch/pickle_writer.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/stack_fold.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_exports {

namespace {

using namespace std::string_view_literals;
using memprof::category;
using memprof::extend::event_kind;

/// Counts what it is handed.
struct recorded_timeline : memprof::timeline_sink {
  std::vector<std::int64_t> live;
  std::vector<std::int64_t> times;
  int open = 0;
  int greatest_open = 0;
  int memory_events = 0;
  std::vector<std::string> marks;

  void begin(const memprof::process_info&) override {}
  void name_thread(std::uint32_t, std::string_view) override {}
  void begin_operation(std::uint32_t, std::int64_t, std::string_view) override {
    greatest_open = std::max(greatest_open, ++open);
  }
  void end_operation(std::uint32_t, std::int64_t) override { --open; }
  void segment(std::string_view, std::int64_t, std::int64_t) override {}
  void count(std::uint32_t, std::string_view, std::int64_t ns, const memprof::timeline_counters& value) override {
    live.push_back(value.live);
    times.push_back(ns);
  }
  void mark(std::string_view text, std::int64_t) override { marks.emplace_back(text); }
  void memory(const memprof::timeline_memory_event&) override { ++memory_events; }
  void finish() override {}
};

/// Random events of all kinds that touch blocks, in two spaces, of which one is that of cores.
memprof::trace random_trace(std::uint64_t seed) {
  memprof::trace target;
  memprof::extend::trace_writer writer{target};
  std::mt19937_64 random{seed};
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  const memprof::extend::space_id heap = writer.space("heap");
  const memprof::extend::space_id l1 = writer.space("l1");
  std::vector<memprof::extend::open_operation> open;
  for (int step = 0; step < 400; ++step) {
    writer.at(step * 10);
    if (pick(20) == 0) writer.on_thread(1 + static_cast<std::uint32_t>(pick(3)));
    if (pick(60) == 0) writer.end_segment("phase");
    const memprof::extend::core_range cores{static_cast<std::uint8_t>(pick(2)), 0, 2, static_cast<std::uint8_t>(pick(3))};
    const std::uint64_t address = 16 * (1 + pick(30));
    switch (pick(9)) {
      case 0: open.push_back(writer.begin_operation(pick(2) == 0 ? "forward" : "backward", category::activation)); break;
      case 1:
        if (open.empty()) break;
        writer.end_operation(open[pick(open.size())]);  // some twice
        break;
      case 2: writer.deallocate(heap, memprof::extend::block_address{address}); break;
      case 3: writer.annotate(memprof::extend::block_address{address}, {"w", "", "", static_cast<category>(pick(8))}); break;
      case 4:
        writer.put_event({0, memprof::extend::address_on_cores(address, cores), 1 + pick(100), cores.packed(),
                          event_kind::allocate_on_cores, l1.value, static_cast<std::uint16_t>(pick(2) << 8)});
        break;
      case 5:
        writer.put_event({0, memprof::extend::address_on_cores(address, cores), 0, cores.packed(),
                          event_kind::deallocate_on_cores, l1.value, 0});
        break;
      case 6:
        if (pick(5) == 0) writer.put_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, l1.value, 0});
        break;
      default: writer.allocate(heap, memprof::extend::block_address{pick(40) == 0 ? 0 : address}, pick(1000));
    }
  }
  writer.finish();
  return target;
}

}  // namespace

TEST_CASE("exports: bytes by operation and category sum to the profile's, whatever the events", "[format]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const memprof::trace trace = random_trace(seed);
    const memprof::profile profile = memprof::profile_of(trace);
    const memprof::stack_table by_category = memprof::stack_table_of(trace, true);
    const memprof::stack_table of_trace = memprof::stack_table_of(trace, false);
    const memprof::stack_table of_profile = memprof::stack_table_of(profile);
    for (const memprof::space_profile& space : profile.spaces) {
      CAPTURE(space.name);
      for (const memprof::stack_table* table : {&by_category, &of_trace, &of_profile}) {
        memprof::stack_row sum;
        sum.end_blocks = 0;
        for (const memprof::stack_row& row : table->rows) {
          if (table->spaces[row.space].name != space.name) continue;
          sum.total_bytes += row.total_bytes;
          sum.total_blocks += row.total_blocks;
          sum.peak_bytes += row.peak_bytes;
          sum.peak_blocks += row.peak_blocks;
          sum.end_bytes += row.end_bytes;
          sum.end_blocks += row.end_blocks;
          if (!table->has_lifetimes) continue;
          CHECK(row.peak_bytes <= row.max_bytes);
          CHECK(row.end_bytes <= row.max_bytes);
        }
        CHECK(sum.total_bytes == space.allocations);
        CHECK(sum.total_blocks == space.allocation_count);
        CHECK(sum.peak_bytes == space.cumulative_peak);
        CHECK(sum.peak_blocks == space.live_at_peak.blocks);
        CHECK(sum.end_bytes == space.cumulative_current);
        if (table->has_lifetimes) CHECK(sum.end_blocks == space.allocation_count - space.deallocation_count);
      }
      for (const memprof::owned_bytes& owner : space.live_at_peak.by_category) {
        std::int64_t bytes = 0;
        for (const memprof::stack_row& row : by_category.rows) {
          if (by_category.spaces[row.space].name == space.name && to_string(row.category) == owner.owner) bytes += row.peak_bytes;
        }
        CHECK(bytes == owner.bytes);
      }
    }
    memprof::text_sink left;
    memprof::text_sink right;
    memprof::write_collapsed(of_trace, memprof::stack_value::all, left);
    memprof::write_collapsed(of_profile, memprof::stack_value::all, right);
    CHECK(left.text.size() == right.text.size());  // the same lines, in another order
  }
}

TEST_CASE("exports: lifetimes count live blocks until the end", "[format]") {
  memprof::trace trace;
  memprof::extend::trace_writer writer{trace};
  const memprof::extend::space_id heap = writer.space("heap");
  writer.at(1'000'000);
  writer.allocate(heap, memprof::extend::block_address{16}, 100);
  writer.at(3'000'000);
  writer.allocate(heap, memprof::extend::block_address{32}, 10);
  writer.at(4'000'000);
  writer.deallocate(heap, memprof::extend::block_address{16});
  writer.at(9'000'000);
  writer.finish();
  const memprof::stack_table table = memprof::stack_table_of(trace, false);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].lifetime_us == 3000 + 6000);
  CHECK(table.rows[0].max_bytes == 110);
  CHECK(table.rows[0].max_blocks == 2);
}

TEST_CASE("exports: thinned counters keep every extreme, and time does not run backwards", "[format]") {
  const memprof::trace trace = random_trace(7);
  const memprof::profile profile = memprof::profile_of(trace);
  recorded_timeline all;
  CHECK(memprof::write_timeline(trace, {}, all).events_per_stretch == 1);
  recorded_timeline thinned;
  const memprof::timeline_losses losses = memprof::write_timeline(trace, {}, thinned, {30, 10});
  CHECK(losses.events_per_stretch > 1);
  CHECK(losses.memory_events > 10);
  CHECK(thinned.memory_events == 0);
  CHECK(all.memory_events > 0);
  CHECK(thinned.live.size() < all.live.size());
  CHECK(all.open == 0);
  CHECK(all.greatest_open > 1);
  std::int64_t greatest = 0;
  for (const memprof::space_profile& space : profile.spaces) greatest = std::max(greatest, space.cumulative_peak);
  CHECK(*std::max_element(thinned.live.begin(), thinned.live.end()) == greatest);
  CHECK(all.marks == thinned.marks);
}

TEST_CASE("json_text: what is no UTF-8 or a control character is escaped", "[format]") {
  const auto quoted = [](std::string_view text) {
    std::string out;
    memprof::detail::append_json_string(out, text);
    return out;
  };
  CHECK(quoted("a\"b\\c\n\x7f") == R"("a\"b\\c\u000a\u007f")");
  CHECK(quoted("Σ€😀") == "\"Σ€😀\"");
  // Overlong, a surrogate, beyond Unicode, cut off, a lone continuation: Unicode 15, table 3-7.
  for (const std::string_view bad : {"\xC0\xAF"sv, "\xED\xA0\x80"sv, "\xF4\x90\x80\x80"sv, "\xE2\x82"sv, "\x80"sv})
    CHECK(quoted(bad).find("\xEF\xBF\xBD") == 1);
}

TEST_CASE("gzip: the checksum is CRC-32's, and blocks end where they must", "[format]") {
  CHECK(memprof::detail::crc32("123456789") == 0xCBF43926U);  // the check value of CRC-32/ISO-HDLC
  const std::string empty = memprof::detail::gzip_stored("");
  CHECK(empty.size() == 10 + 5 + 8);
  const std::string two = memprof::detail::gzip_stored(std::string(65536, 'x'));
  CHECK(two.size() == 10 + 2 * 5 + 65536 + 8);
  CHECK(two[10] == 0);          // not the last block
  CHECK(two[15 + 65535] == 1);  // the last one
}

TEST_CASE("protobuf: fields are those of the specification's examples", "[format]") {
  // https://protobuf.dev/programming-guides/encoding: 150 in field 1, "testing" in field 2, [3, 270, 86942] packed in field 6.
  memprof::detail::protobuf_message message;
  message.integer(1, std::uint64_t{150}).text(2, "testing").packed(6, std::vector<std::uint64_t>{3, 270, 86942});
  CHECK(message.bytes() == "\x08\x96\x01\x12\x07testing\x32\x06\x03\x8E\x02\x9E\xA7\x05"sv);
  CHECK(memprof::detail::protobuf_message{}.integer(1, std::int64_t{-2}).bytes() ==
        "\x08\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"sv);
}

TEST_CASE("pickle: integers take the bytes that Python gives them", "[format]") {
  const auto pickled = [](std::int64_t value) {
    memprof::text_sink out;
    memprof::detail::pickle_writer writer{out};
    writer.integer(value);
    writer.finish();
    return out.text.substr(2, out.text.size() - 3);
  };
  // pickletools of Python 3.11
  CHECK(pickled(0) == "K\0"sv);
  CHECK(pickled(255) == "K\xFF"sv);
  CHECK(pickled(256) == "M\0\x01"sv);
  CHECK(pickled(-1) == "J\xFF\xFF\xFF\xFF"sv);
  CHECK(pickled(65536) == "J\0\0\x01\0"sv);
  CHECK(pickled(std::int64_t{1} << 31) == "\x8A\x05\0\0\0\x80\0"sv);
  CHECK(pickled(-(std::int64_t{1} << 31) - 1) == "\x8A\x05\xFF\xFF\xFF\x7F\xFF"sv);
  CHECK(pickled(std::numeric_limits<std::int64_t>::min()) == "\x8A\x08\0\0\0\0\0\0\0\x80"sv);
}

}  // namespace memprof_tests::format_exports
