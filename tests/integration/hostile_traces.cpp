// Small files that ask for a great deal: they cost memory and time in proportion to their size, beyond a gigabyte and some
// seconds, or end in one error.
#include <memprof/memprof.hpp>

#include <memprof/detail/error.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/trace_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace memprof_tests::integration_hostile_traces {

namespace {

using memprof::extend::event;
using memprof::extend::event_kind;

class hostile_trace {
 public:
  hostile_trace() {
    memprof::extend::capture_info info;
    info.largest_blocks = memprof::detail::max_largest_blocks;
    target.info(info);
    target.name(1, "cpu");
    target.name(2, std::string(32'768, 'n'));
    for (std::uint8_t space = 0; space < memprof::extend::any_space; ++space)
      target.space({space, 1, 0, false, memprof::extend::host_memory});
  }
  void put(event_kind kind, std::uint32_t ring, event fields = {}) {
    fields.kind = kind;
    target.events(&fields, &fields + 1, ring);
  }
  void allocate(std::uint32_t ring, unsigned space, std::uint64_t address) {
    put(event_kind::allocate, ring, {0, address, 8, 0, event_kind::allocate, static_cast<std::uint8_t>(space), 0});
  }

  memprof::trace target;
};

struct outcome {
  std::string said;  ///< the error; empty: there is a profile
  double megabytes = 0;
  double seconds = 0;
  std::uintmax_t file_bytes = 0;
};

/// Makes a profile of the trace in a process of its own, whose memory and time can be measured.
outcome read(const hostile_trace& made) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("memprof_hostile_" + std::to_string(::getpid()) + ".memtrace");
  memprof::write_trace(made.target, path);
  outcome found;
  found.file_bytes = std::filesystem::file_size(path);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string said;
    try {
      (void)memprof::profile_of(path);
    } catch (const memprof::error& fault) {
      said = fault.what();
    } catch (...) {
      std::_Exit(1);
    }
    const bool is_written = ::write(ends[1], said.data(), said.size()) == static_cast<::ssize_t>(said.size());
    std::_Exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  char text[1024];
  for (::ssize_t got = 0; (got = ::read(ends[0], text, sizeof text)) > 0;) found.said.append(text, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  struct ::rusage usage = {};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  std::filesystem::remove(path);
  CHECK(status == 0);
  found.megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
  found.seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  if (!found.said.empty()) CHECK_THAT(found.said, Catch::Matchers::ContainsSubstring("more than any trace of its size"));
  return found;
}

/// Sanitizers multiply both.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double slower = 20;
#else
constexpr double slower = 1;
#endif

void require_bounded(const char* what, const hostile_trace& made) {
  const outcome found = read(made);
  INFO(what << ": " << found.file_bytes << " bytes took " << found.megabytes << " MB and " << found.seconds << " s; "
            << found.said);
  // The ledger and the profile may have half a gigabyte each.
  CHECK(found.megabytes < slower * (1.5 * 1024 + 256.0 * static_cast<double>(found.file_bytes) / 1024 / 1024));
  CHECK(found.seconds < slower * 60);
}

}  // namespace

TEST_CASE("hostile traces: a long name nested deep") {
  hostile_trace made;
  // 250 operations within one another, and then within each of them one of other names.
  std::uint32_t number = 0;
  std::uint32_t outer = 0;
  for (int depth = 0; depth < 250; ++depth) {
    made.put(event_kind::scope_begin, 1,
             {0, memprof::detail::scope_address(++number, outer), 0, 2, {}, memprof::extend::any_space, 0});
    outer = number;
    made.allocate(1, 0, 64 * number);
  }
  for (std::uint32_t id = 3; id < 2000; ++id) {
    made.put(event_kind::scope_begin, 1,
             {0, memprof::detail::scope_address(++number, outer), 0, id, {}, memprof::extend::any_space, 0});
    made.allocate(1, 0, 64 * number);
    made.put(event_kind::scope_end, 1, {0, number, 0, id, {}, memprof::extend::any_space, 0});
  }
  require_bounded("names", made);
}

TEST_CASE("hostile traces: all spaces in many segments") {
  hostile_trace made;
  for (unsigned space = 0; space < memprof::extend::any_space; ++space) made.allocate(1, space, 64);
  for (int segment = 0; segment < 10'000; ++segment) made.put(event_kind::segment_end, memprof::detail::no_ring_id);
  require_bounded("segments", made);
}

TEST_CASE("hostile traces: thousands of the largest blocks in each of many segments") {
  hostile_trace made;
  for (std::uint64_t block = 1; block <= 4096; ++block) made.allocate(1, 0, 64 * block);
  for (std::uint64_t segment = 0; segment < 20'000; ++segment) {
    made.put(event_kind::segment_end, memprof::detail::no_ring_id);
    made.put(event_kind::deallocate, 1, {0, 64 * (segment % 4096 + 1), 0, 0, {}, 0, 0});
    made.allocate(1, 0, 64 * (segment % 4096 + 1));
  }
  require_bounded("blocks", made);
}

TEST_CASE("hostile traces: blocks on all cores of all spaces, again and again") {
  hostile_trace made;
  for (int round = 0; round < 100; ++round) {
    for (unsigned space = 0; space < memprof::extend::any_space; ++space) {
      const event fields{0, 64, 8, memprof::extend::any_core.packed(), {}, static_cast<std::uint8_t>(space), 0};
      made.put(event_kind::allocate_on_cores, 1, fields);
      made.put(event_kind::deallocate_on_cores, 1, fields);
    }
    made.put(event_kind::segment_end, memprof::detail::no_ring_id);
  }
  require_bounded("cores", made);
}

TEST_CASE("hostile traces: hundreds of thousands of rings, and threads in all spaces") {
  hostile_trace made;
  for (std::uint32_t ring = 1; ring < 200'000; ++ring) made.allocate(ring, ring % memprof::extend::any_space, 64 * ring);
  require_bounded("rings", made);
  hostile_trace in_spaces;
  for (std::uint32_t ring = 1; ring < 1000; ++ring) {
    for (unsigned space = 0; space < memprof::extend::any_space; ++space) in_spaces.allocate(ring, space, 64 * ring);
  }
  require_bounded("rings in spaces", in_spaces);
}

TEST_CASE("hostile traces: ends of operations on threads that are searched for") {
  hostile_trace made;
  for (std::uint32_t ring = 1; ring < 20'000; ++ring) made.allocate(ring, 0, 64 * ring);
  for (std::uint32_t end = 0; end < 500'000; ++end)
    made.put(event_kind::scope_end, 1, {0, memprof::detail::scope_address(1, 999'999), 0, 0, {}, memprof::extend::any_space, 0});
  require_bounded("ends", made);
}

TEST_CASE("hostile traces: reservations from the last address to the first") {
  hostile_trace made;
  for (std::uint64_t range = 300'000; range != 0; --range) made.put(event_kind::reserve, 1, {0, 64 * range, 32, 0, {}, 0, 0});
  require_bounded("reservations", made);
}

TEST_CASE("hostile traces: as many reservations are healthy in every order") {
  enum class order : std::uint8_t { rising, falling, scattered };
  const order addresses = GENERATE(order::rising, order::falling, order::scattered);
  constexpr std::uint64_t count = 300'000;
  constexpr std::uint64_t size = std::uint64_t{1} << 21U;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("memprof_healthy_" + std::to_string(::getpid()) + ".memtrace");
  auto recording = memprof::begin_capture({.trace_file = path});
  memprof::extend::event_sink sink;
  const memprof::memory_space space{"device", "device memory"};
  for (std::uint64_t range = 1; range <= count; ++range) {
    const std::uint64_t number = addresses == order::rising    ? range
                                 : addresses == order::falling ? count + 1 - range
                                                               : range * 77'773 % count + 1;  // a prime
    const std::uint64_t address = size * number;
    sink.reserve(space, address, size);
    sink.allocate(space, address, 500);
  }
  recording.end();
  const memprof::profile live = memprof::current_profile();
  const memprof::profile from_file = memprof::profile_of(path);
  std::filesystem::remove(path);
  CHECK(from_file.space("device").reserved.peak == static_cast<std::int64_t>(count * size));
  CHECK(from_file.spaces == live.spaces);
  CHECK(from_file.segments == live.segments);
}

TEST_CASE("hostile traces: hundreds of thousands of tables, and a table of empty columns") {
  hostile_trace made;
  for (int table = 0; table < 300'000; ++table) made.target.facts({std::to_string(table), {"a"}, {{{1}}}});
  require_bounded("tables", made);
  memprof::detail::payload_writer columns;
  columns.text("t").number(0).number(100'000);
  for (int column = 0; column < 100'000; ++column) columns.text("");
  memprof::extend::fact_part part;
  CHECK_FALSE(memprof::detail::decode_facts(columns.number(1'000'000).bytes(), part));
}

}  // namespace memprof_tests::integration_hostile_traces
