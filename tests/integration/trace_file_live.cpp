// A trace file that is read while its capture writes it, or after its process ended without ending the capture.
#include <memprof/memprof.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file.hpp>

#include <scratch_folder.hpp>
#include <thread_sanitizer.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace memprof_tests::integration_trace_file_live {

namespace {

using Catch::Matchers::ContainsSubstring;
using memprof_tests::scratch_folder;

const void* block_at(std::uint64_t index) { return reinterpret_cast<const void*>((index + 1) * 4096); }

/// The trace file of a process that ended without a word after `work`.
template <class Work>
std::string file_left_by(const scratch_folder& folder, std::uint32_t ring_capacity, Work work) {
  const std::string file = folder.file("run.memtrace");
  const pid_t child = ::fork();
  if (child == 0) {
    memprof::begin_capture({.ring_capacity = ring_capacity, .trace_file = file}).release();
    work();
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return file;
}

void allocate(std::uint64_t first, std::uint64_t count) {
  const memprof::memory_space space{"dram"};
  for (std::uint64_t index = first; index < first + count; ++index)
    memprof::extend::event_sink{}.allocate(space, block_at(index), 100 + index % 50);
}

struct found {
  memprof::profile profile;
  memprof::trace_file_status status;
};

found read(const std::string& file) {
  found result;
  result.profile = memprof::profile_of(file, result.status);
  return result;
}

std::int64_t allocations(const memprof::profile& profile) {
  const memprof::space_profile* const space = profile.find_space("dram");
  return space == nullptr ? 0 : space->allocation_count;
}

}  // namespace

TEST_CASE("trace file: while its capture goes on it is read up to now") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  auto capture = memprof::begin_capture({.ring_capacity = 16, .trace_file = file});
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{100}, std::uint64_t{100'000}}) {
    const found before = read(file);
    allocate(static_cast<std::uint64_t>(allocations(before.profile)), count);
    memprof::snapshot("STEP");
    const found now = read(file);
    CHECK(now.status.damage.empty());
    CHECK(now.status.is_being_written);
    CHECK_FALSE(now.status.has_ended);
    CHECK(now.profile.exact);
    CHECK(now.profile.segments.size() > before.profile.segments.size());
    CHECK(allocations(now.profile) == allocations(before.profile) + static_cast<std::int64_t>(count));
  }
  capture.end();
  const found at_end = read(file);
  CHECK_FALSE(at_end.status.is_being_written);
  CHECK(at_end.status.has_ended);
}

TEST_CASE("trace file: each reading while threads record is a state that the program was in") {
  const scratch_folder folder;
  const std::string file = folder.file("run.memtrace");
  const auto limit = GENERATE(std::uint64_t{0}, std::uint64_t{65'536});
  auto capture = memprof::begin_capture({.ring_capacity = 64, .timeline_points = 16, .trace_file = file, .trace_limit = limit});
  const memprof::memory_space space{"dram"};
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> handed_over{0};
  std::vector<std::thread> threads;
  // One block goes round: whoever has its number frees it and allocates the next. At most two are live.
  constexpr std::uint64_t thread_count = 3;
  for (std::uint64_t self = 0; self < thread_count; ++self) {
    threads.emplace_back([&, self] {
      while (!is_over) {
        const std::uint64_t turn = handed_over.load(std::memory_order_acquire);
        if (turn % thread_count != self) continue;
        if (turn != 0) memprof::extend::event_sink{}.deallocate(space, block_at((turn - 1) % 5), 64);
        memprof::extend::event_sink{}.allocate(space, block_at(turn % 5), 64);
        handed_over.store(turn + 1, std::memory_order_release);
      }
    });
  }
  std::int64_t last = 0;
  int readings_with_rings = 0;
  int shortened_readings = 0;
  // Fills a file with a limit, so that its first generations go while it is read.
  const memprof::memory_space other{"other"};
  threads.emplace_back([&] {
    for (std::uint64_t block = 0; limit != 0 && !is_over; ++block) {
      memprof::extend::event_sink{}.allocate(other, block_at(block % 1000), 1 + block % 500);
      memprof::extend::event_sink{}.deallocate(other, block_at(block % 1000));
    }
  });
  // Each reads the whole file, which takes the thread sanitizer long.
  const auto is_enough = [&](int readings) {
    return readings >= (memprof_tests::has_thread_sanitizer ? 40 : 100) && (limit == 0 || shortened_readings > 0);
  };
  for (int reading = 0; !is_enough(reading) && reading < 1000; ++reading) {
    const found now = read(file);
    INFO("reading " << reading);
    CHECK(now.status.damage == "");
    CHECK(now.profile.exact);
    CHECK(allocations(now.profile) >= last);
    last = allocations(now.profile);
    if (now.status.from_rings != 0) ++readings_with_rings;
    if (now.status.dropped != 0) ++shortened_readings;
    if (const memprof::space_profile* const found_space = now.profile.find_space("dram")) {
      CHECK(found_space->anomalies.unmatched_frees.count == 0);
      CHECK(found_space->anomalies.replaced_allocations.count == 0);
      CHECK(found_space->cumulative_peak <= 64);
    }
    CHECK(last <= static_cast<std::int64_t>(handed_over.load()) + 1);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  capture.end();
  CHECK(readings_with_rings > 0);
  CHECK((shortened_readings > 0) == (limit != 0));
  CHECK(allocations(read(file).profile) == static_cast<std::int64_t>(handed_over.load()));
}

TEST_CASE("trace file: a file that was left is cut off at any byte, and what is before is used") {
  const scratch_folder folder;
  const std::string file = file_left_by(folder, 64, [] {
    allocate(0, 100'000);
    memprof::extend::event_sink{}.add_facts({"batches", {"size"}, {{std::int64_t{32}}}});
  });
  const found whole = read(file);
  CHECK(whole.status.damage.empty());
  CHECK(whole.profile.exact);
  CHECK(allocations(whole.profile) == 100'000);
  CHECK(whole.status.chunks > 1);
  const auto size = std::filesystem::file_size(file);
  const std::string copy = folder.file("cut.memtrace");
  std::filesystem::copy_file(file, copy);
  // From the end: all bytes near what begins or ends there, and some between.
  std::vector<std::uintmax_t> sizes;
  const std::uintmax_t first_chunk = size - (whole.status.chunks - 1) * (1 << 18);
  for (std::uintmax_t at = size; at-- > 64;) {
    const bool is_near_a_border = size - at < 30 || at < 200 || (at > first_chunk - 2 && at < first_chunk + 30);
    // The thread sanitizer, which finds nothing in one thread, makes each take ten times as long.
    const bool is_wanted = !memprof_tests::has_thread_sanitizer || at % 64 == 0;
    if ((is_near_a_border && is_wanted) || at % 1'048'576 < 2) sizes.push_back(at);
  }
  for (const std::uintmax_t at : sizes) {
    INFO("cut off after " << at << " of " << size << " bytes");
    std::filesystem::resize_file(copy, at);
    memprof::trace_file_status status;
    memprof::profile profile;
    REQUIRE_NOTHROW(profile = memprof::profile_of(copy, status));
    const bool is_noticed = !status.damage.empty() || !profile.exact;
    const bool lacks_nothing = allocations(profile) == 100'000;
    CHECK((is_noticed || lacks_nothing));
    CHECK(allocations(profile) <= 100'000);
    if (is_noticed) CHECK_FALSE(profile.exact);
  }
}

TEST_CASE("trace file: a flipped bit in what is not written out yet is noticed, but in events that rings hold") {
  const scratch_folder folder;
  const std::string file = file_left_by(folder, 64, [] { allocate(0, 1000); });
  const found whole = read(file);
  REQUIRE(whole.status.damage.empty());
  REQUIRE(whole.status.from_rings != 0);
  std::string bytes = memprof::detail::read_whole_file(file);
  namespace detail = memprof::detail;
  std::array<unsigned char, detail::trace_file_header::size> encoded_header{};
  std::memcpy(encoded_header.data(), bytes.data(), encoded_header.size());
  detail::trace_file_header header;
  REQUIRE(header.decode(encoded_header));
  detail::live_area_header area;
  std::array<unsigned char, detail::live_area_header::size> encoded{};
  std::memcpy(encoded.data(), bytes.data() + header.live_area, encoded.size());
  REQUIRE(area.decode(encoded));

  struct part {
    const char* name;
    std::size_t begin;
    std::size_t bytes;
  };
  const std::size_t states = header.live_area + detail::live_area_header::buffer_states;
  // The open chunk's commit is 8 bytes: its length and its checksum.
  const auto length = detail::get_little_endian<std::uint32_t>(reinterpret_cast<const unsigned char*>(&bytes[states + 8]));
  REQUIRE(length > 1000);
  const part parts[] = {
      {"the file's header", 0, detail::trace_file_header::size},
      {"the area's header", header.live_area, detail::live_area_header::size},
      {"what says what the first buffer holds", states, detail::live_buffer_state::size},
      {"the open chunk", static_cast<std::size_t>(area.first_buffer), 300},
      {"the end of the open chunk", static_cast<std::size_t>(area.first_buffer) + length - 50, 50},
      {"where a ring's events begin", static_cast<std::size_t>(area.first_place) + 8, 8},
      {"which ring it is, and its check", static_cast<std::size_t>(area.first_place) + 24, 12},
  };
  for (const part& each : parts) {
    for (std::size_t bit = 8 * each.begin; bit<8 * (each.begin + each.bytes); bit += each.bytes> 100 ? 3 : 1) {
      INFO("bit " << bit % 8 << " of byte " << bit / 8 << ", in " << each.name);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      {
        std::fstream target{file, std::ios::binary | std::ios::in | std::ios::out};
        target.seekp(static_cast<std::streamoff>(bit / 8)).put(bytes[bit / 8]);
      }
      bool is_noticed = false;
      try {
        const found damaged = read(file);
        is_noticed = !damaged.status.damage.empty() && !damaged.profile.exact;
      } catch (const memprof::error&) {
        is_noticed = true;
      }
      CHECK(is_noticed);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      std::fstream target{file, std::ios::binary | std::ios::in | std::ios::out};
      target.seekp(static_cast<std::streamoff>(bit / 8)).put(bytes[bit / 8]);
    }
  }
  CHECK(read(file).profile == whole.profile);
}

TEST_CASE("trace file: a process that ends while it reuses a buffer leaves the chunk that was there before in the file") {
  const scratch_folder folder;
  const std::string file = file_left_by(folder, 64, [] { allocate(0, 200'000); });
  const found whole = read(file);
  REQUIRE(whole.status.damage.empty());
  REQUIRE(whole.profile.exact);
  namespace detail = memprof::detail;
  std::string bytes = detail::read_whole_file(file);
  const auto number_at = [&](std::size_t offset) {
    return detail::get_little_endian<std::uint64_t>(reinterpret_cast<const unsigned char*>(&bytes[offset]));
  };
  const std::size_t area = detail::get_little_endian<std::uint32_t>(reinterpret_cast<const unsigned char*>(&bytes[40]));
  const std::size_t states = area + detail::live_area_header::buffer_states;
  // The process writes the newest chunk to the file, and begins to reuse its buffer: the commit is 0 before the number changes.
  std::size_t newest = states;
  for (std::size_t state = states; state < states + 32 * detail::live_buffer_state::size;
       state += detail::live_buffer_state::size)
    if (number_at(state) > number_at(newest)) newest = state;
  REQUIRE(number_at(newest) == whole.status.chunks);
  REQUIRE(whole.status.chunks > 1);
  detail::chunk_header header;
  header.bytes = static_cast<std::uint32_t>(number_at(newest + 8));
  header.number = static_cast<std::uint32_t>(number_at(newest) - 1);
  const std::size_t buffer = number_at(area + 24) + (newest - states) / detail::live_buffer_state::size * (std::size_t{1} << 18);
  header.checksum = detail::crc32c::extend(0, reinterpret_cast<const unsigned char*>(&bytes[buffer]), header.bytes);
  const std::string chunk = std::string{detail::as_text(header.encode())} + bytes.substr(buffer, header.bytes);
  std::fstream target{file, std::ios::binary | std::ios::in | std::ios::out};
  target.seekp(static_cast<std::streamoff>(whole.status.bytes - chunk.size())) << chunk;
  target.seekp(static_cast<std::streamoff>(newest + 8)).write("\0\0\0\0\0\0\0\0", 8);
  target.close();
  const found now = read(file);
  CHECK(now.status.damage.empty());
  CHECK(now.status.chunks == whole.status.chunks);
  CHECK(now.status.bytes == whole.status.bytes);
  CHECK(now.profile == whole.profile);
}

TEST_CASE("trace file: threads without a place in it make a file that was left say that events are missing") {
  const scratch_folder folder;
  // Places of 32 MiB each: there are 16.
  const std::string file = file_left_by(folder, 1U << 20, [] {
    std::atomic<int> recorded{0};
    std::vector<std::thread> threads;
    for (std::uint64_t self = 0; self < 40; ++self) {
      threads.emplace_back([&recorded, self] {
        allocate(100 * self, 10);
        ++recorded;
        while (recorded != 40) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const found left = read(file);
  CHECK(left.status.damage.empty());
  CHECK_FALSE(left.profile.exact);
  CHECK(left.profile.anomalies.missing_events > 0);
  CHECK(allocations(left.profile) >= 10);
  CHECK(allocations(left.profile) <= 160);
}

TEST_CASE("trace file: many threads have places, also those that come at once") {
  const scratch_folder folder;
  const std::string file = file_left_by(folder, 16, [] {
    for (int round = 0; round < 4; ++round) {
      std::atomic<int> recorded{0};
      std::vector<std::thread> threads;
      for (std::uint64_t self = 0; self < 60; ++self) {
        threads.emplace_back([&recorded, self, round] {
          allocate(10'000 * static_cast<std::uint64_t>(round) + 100 * self, 50);
          ++recorded;
          while (recorded != 60) std::this_thread::yield();
        });
      }
      for (std::thread& thread : threads) thread.join();
      ::usleep(20'000);
    }
  });
  const found left = read(file);
  CHECK(left.status.damage.empty());
  // Rings without a place get one when they are emptied; what such a ring held at the end is missing and said to be.
  if (left.profile.exact) {
    CHECK(allocations(left.profile) == 4 * 60 * 50);
  } else {
    CHECK(allocations(left.profile) >= 4 * 60 * 50 - 60 * 16);
  }
}

TEST_CASE("trace file: a pipe is refused while its capture goes on") {
  const scratch_folder folder;
  const std::string file = file_left_by(folder, 64, [] { allocate(0, 10); });
  std::FILE* const pipe = ::popen(("cat '" + file + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  struct nobody {
    void info(const memprof::extend::capture_info&) {}
    void name(memprof::extend::label, std::string_view) {}
    void space(const memprof::extend::space_definition&) {}
    void facts(memprof::extend::fact_part&&) {}
    void events(const memprof::extend::event*, const memprof::extend::event*, std::uint32_t) {}
  } visitor;
  try {
    (void)memprof::read_trace(pipe, "-", visitor);
  } catch (const memprof::error& fault) {
    said = fault.what();
  }
  ::pclose(pipe);
  CHECK_THAT(said, ContainsSubstring("cannot be read through a pipe"));
}

}  // namespace memprof_tests::integration_trace_file_live
