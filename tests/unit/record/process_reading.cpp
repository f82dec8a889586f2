#include <memprof/record/process_reading.hpp>

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/record/process_readings.hpp>
#include <memprof/record/status_file.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/fact_payload.hpp>
#include <memprof/trace/fact_table.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::record_process_reading {

using memprof::process_memory;
using memprof::detail::capture_moment;
using memprof::detail::heap_schedule;
using memprof::detail::process_reading;
using memprof::detail::process_readings;
using memprof::detail::reading_of_status;
using memprof::detail::reading_schedule;
using memprof::detail::status_file;

namespace {

constexpr std::int64_t ms = 1'000'000;

process_reading reading(std::int64_t resident, std::int64_t heap) {
  process_reading made;
  made.resident = resident;
  made.heap = heap;
  return made;
}

/// glibc keeps up to 7 freed chunks of each size of 32, 48, ..., 1,040 bytes for a thread.
constexpr std::int64_t cache_of_thread = 240'128;

/// A row, as it was kept.
process_memory row(const process_readings& of, std::size_t index) { return of.begin()[index]; }

}  // namespace

TEST_CASE("process reading: the lines of /proc/self/status are read, in whatever order and width") {
  const process_reading found = reading_of_status(
      "Name:\tVmRSS:\nUmask:\t0022\nVmHWM:\t    3000 kB\nVmRSS:\t    2976 kB\nRssAnon:\t     216 kB\nVmSwap:\t0 kB\n"
      "Threads:\t3\n");
  CHECK(found.resident == 2976 * 1024);
  CHECK(found.peak_resident == 3000 * 1024);
  CHECK(found.anonymous == 216 * 1024);
  CHECK(found.swapped == 0);
  CHECK(found.heap == -1);
  CHECK(found.threads == 3);
}

TEST_CASE("process reading: what is missing, cut off or no number is unknown") {
  CHECK_FALSE(reading_of_status("").is_there());
  CHECK_FALSE(reading_of_status("Name:\tx\nVmRSS:").is_there());
  CHECK_FALSE(reading_of_status("Name:\tx\nVmRSS:\t kB\n").is_there());
  CHECK_FALSE(reading_of_status("Name:\tx\nVmRSS:\t99999999999999999999999 kB\n").is_there());
  CHECK(reading_of_status("Name:\tx\nVmRSS:\t12 kB\n").anonymous == -1);
}

TEST_CASE("process reading: this process is larger than nothing") {
  status_file file;
  char text[status_file::most_bytes];
  CHECK(file.read(text).empty());
  file.open();
  const process_reading found = reading_of_status(file.read(text));
  file.close();
  CHECK(file.read(text).empty());
#if defined(__linux__)
  CHECK(found.resident > 0);
  CHECK(found.peak_resident >= found.resident);
#else
  CHECK_FALSE(found.is_there());
#endif
}

TEST_CASE("process readings: what recorded blocks cost malloc is not called unrecorded") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  // A million blocks of one byte take 32 each.
  kept.add(reading(50'000'000, 100'000 + 32'000'000), {1, 1'000'000, 1'000'000, 0, true});
  CHECK(row(kept, 4).unrecorded_heap_bytes == 0);
  kept.add(reading(50'000'000, 100'000 + 33'000'000 + cache_of_thread + 5'000'000), {2, 1'000'000, 1'000'000, 0, true});
  CHECK(row(kept, 4).moment == "most_unrecorded");
  CHECK(row(kept, 4).unrecorded_heap_bytes == cache_of_thread + 5'000'000);
  CHECK(row(kept, 4).heap_before_bytes == 100'000);
}

TEST_CASE("process readings: what malloc may keep for alignment is not called unrecorded, as far as it is of this capture") {
  process_readings kept;
  const auto add = [&](std::int64_t heap, std::int64_t alignment) {
    kept.add(reading(50'000'000, heap), {.recorded_bytes = 0, .alignment_bytes = alignment});
    return row(kept, 1).unrecorded_heap_bytes;
  };
  CHECK(add(10'000'000, 3'000'000) == 0);
  CHECK(add(15'000'000, 7'000'000) == 1'000'000);
  CHECK(add(14'000'000, 7'000'000) == 0);
  CHECK(add(12'000'000, 1'000'000) == 2'000'000);  // older blocks are gone: what they had is unknown
}

TEST_CASE("process readings: freed blocks that malloc keeps for each thread are not called unrecorded") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  process_reading later = reading(50'000'000, 100'000 + 64 * cache_of_thread);
  later.threads = 64;
  kept.add(later, {1, 0, 0, 0, true});
  CHECK(row(kept, 1).unrecorded_heap_bytes == 0);
  ++later.heap;
  kept.add(later, {2, 0, 0, 0, true});
  CHECK(row(kept, 1).unrecorded_heap_bytes == 64 * cache_of_thread + 1);
}

TEST_CASE("process readings: heap that what was recorded at any moment of the reading explains is not called unrecorded") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  const capture_moment before{.recorded_bytes = 10'000'000, .allocated_bytes = 60'000'000};
  const auto rest = [&](std::int64_t heap, std::int64_t recorded_after, std::int64_t allocated_after) {
    kept.add(reading(90'000'000, 100'000 + heap), before, {.recorded_bytes = recorded_after, .allocated_bytes = allocated_after});
    return row(kept, 1).unrecorded_heap_bytes;
  };
  CHECK(rest(10'000'000, 2'000'000, 60'000'000) == 0);   // 8 MB were freed since `malloc` answered
  CHECK(rest(30'000'000, 10'000'000, 80'000'000) == 0);  // 20 MB were allocated before it answered, and freed after it
  CHECK(rest(35'000'000, 10'000'000, 80'000'000) == 5'000'000);
  CHECK(rest(15'000'000, 10'000'000, 60'000'000) == 5'000'000);
}

TEST_CASE("process readings: a block that another thread frees or allocates right now may be in the heap unrecorded") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  const capture_moment before{
      .recorded_bytes = 8'000'000, .recorded_blocks = 8, .allocated_bytes = 100'000'000, .allocated_blocks = 100};
  const auto rest = [&](std::int64_t heap, std::int64_t threads, std::int64_t freed) {
    process_reading found = reading(90'000'000, 100'000 + heap);
    found.threads = threads;
    kept.add(found, before,
             {.recorded_bytes = 8'000'000 - freed * 1'000'000,
              .recorded_blocks = 8 - freed,
              .allocated_bytes = 100'000'000,
              .allocated_blocks = 100});
    return row(kept, 1).unrecorded_heap_bytes;
  };
  constexpr std::int64_t recorded = 8'000'000 + 8 * 32;
  CHECK(rest(recorded + 3'000'000, 1, 8) == 3'000'000);  // this thread is not at it
  CHECK(rest(recorded + 3'000'000, 4, 8) == 0);          // three may be, at a megabyte each
  CHECK(rest(recorded + 6'000'096, 4, 8) == 3'000'000);
  CHECK(rest(recorded + 3'000'000, 4, 0) == 3'000'000);  // nobody was at work
}

TEST_CASE("process readings: what other threads allocate while the capture begins is from before it") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  kept.raise_heap_before(30'100'000);
  kept.raise_heap_before(20'000'000);
  CHECK(row(kept, 0).heap_before_bytes == 30'100'000);
  kept.add(reading(90'000'000, 40'100'000), {});
  CHECK(row(kept, 1).heap_before_bytes == 30'100'000);
  CHECK(row(kept, 1).unrecorded_heap_bytes == 10'000'000);
}

TEST_CASE("process readings: the heap counts even if nothing else is known") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  CHECK(kept.take_notable());
  process_reading later = reading(-1, 20'100'000);
  later.threads = -1;
  kept.add(later, {.time_ns = ms, .threads = 2});
  CHECK_FALSE(kept.is_empty());
  CHECK(kept.take_notable());
  CHECK(row(kept, 1).resident_bytes == -1);
  CHECK(row(kept, 2).resident_bytes == 5'000'000);
  CHECK(row(kept, 4).unrecorded_heap_bytes == 20'000'000);
  kept.add(later, {.time_ns = 2 * ms, .threads = 2});
  CHECK_FALSE(kept.take_notable());
  kept.add(later, {.time_ns = 3 * ms, .threads = 200});  // that may keep 48 MB of freed blocks
  CHECK(row(kept, 1).unrecorded_heap_bytes == 0);
}

TEST_CASE("process readings: the first, the last and the greatest are kept, however many there are") {
  process_readings kept;
  CHECK(kept.is_empty());
  for (std::int64_t time = 0; time < 1000; ++time) {
    const std::int64_t height = time < 500 ? time : 1000 - time;
    kept.add(reading(1'000'000 + height, 10'000 + time % 7), {time, 5000 - height, 0, 0, false});
  }
  CHECK(row(kept, 0).time_ns == 0);
  CHECK(row(kept, 1).time_ns == 999);
  CHECK(row(kept, 2).time_ns == 500);  // most resident
  CHECK(row(kept, 3).time_ns == 0);    // most recorded
  CHECK(kept.take_new());
  CHECK_FALSE(kept.take_new());
  kept.add({}, {});  // the system gave nothing
  CHECK_FALSE(kept.take_new());
}

TEST_CASE("process readings: those that say nothing new are not written to the file") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {});
  CHECK(kept.take_notable());
  kept.add(reading(5'500'000, 900'000), {ms, 300'000, 0, 0, false});
  CHECK_FALSE(kept.take_notable());
  kept.add(reading(6'100'000, 900'000), {2 * ms, 300'000, 0, 0, false});  // more than 1 MiB above the last one written
  CHECK(kept.take_notable());
  kept.add(reading(6'100'000, 2'100'000), {3 * ms, 300'000, 0, 0, false});
  CHECK(kept.take_notable());
  kept.add(reading(6'100'000, 2'100'000), {4 * ms, 2'300'000, 0, 0, false});
  CHECK(kept.take_notable());
  kept.add(reading(6'100'000, 2'100'000), {1003 * ms, 2'300'000, 0, 0, false});
  CHECK_FALSE(kept.take_notable());
  kept.add(reading(6'100'000, 2'100'000), {1004 * ms, 2'300'000, 0, 0, false});
  CHECK(kept.take_notable());
}

TEST_CASE("process readings: a heap that was unknown when the capture began counts from the first time it is known") {
  process_readings kept;
  kept.add(reading(5000, -1), {});
  CHECK(row(kept, 1).unrecorded_heap_bytes == -1);
  kept.add(reading(9000, 4000), {1, 1000, 0, 0, false});
  CHECK(row(kept, 1).unrecorded_heap_bytes == 0);
  kept.add(reading(9000, 500'000), {1, 1000, 0, 0, false});
  CHECK(row(kept, 1).unrecorded_heap_bytes == 500'000 - 4000);
}

TEST_CASE("process readings: another malloc than that which answers leaves the heap unknown") {
  process_readings kept;
  kept.add(reading(5000, 100), {});
  kept.add(reading(900'000, 200), {1, 800'000, 10, 0, false});
  CHECK(row(kept, 1).unrecorded_heap_bytes == -1);
}

TEST_CASE("process readings: an empty heap is not that of the program, even before anything is recorded") {
  process_readings kept;
  process_reading empty = reading(5000, 0);
  empty.free_heap = 0;
  kept.add(empty, {});
  CHECK(row(kept, 1).heap_bytes == -1);
  CHECK(row(kept, 1).free_heap_bytes == -1);
  CHECK(row(kept, 1).heap_before_bytes == -1);
  CHECK(row(kept, 1).unrecorded_heap_bytes == -1);
}

TEST_CASE("process readings: the record for the trace file is that of the table") {
  process_readings kept;
  kept.add(reading(5'000'000, 100'000), {123, 456, 7, 89, true});
  memprof::detail::fact_payload<2048> payload;
  const std::string_view made = payload.encode(kept.begin(), kept.end());
  std::string expected;
  memprof::detail::for_each_part(memprof::extend::to_table(std::vector<process_memory>(kept.begin(), kept.end())),
                                 [&](const std::string& part) { expected += part; });
  CHECK(made == expected);
  memprof::detail::fact_payload<100> small;
  CHECK(small.encode(kept.begin(), kept.end()).empty());
}

TEST_CASE("process readings: the record has room for the largest numbers") {
  process_readings kept;
  constexpr std::int64_t most = INT64_MIN;  // as a varint the longest
  process_memory largest{"most_unrecorded", most, most, most, most, most, most, most, most, most, most, most, most};
  const std::vector<process_memory> rows(process_readings::moments, largest);
  memprof::detail::fact_payload<2048> payload;
  CHECK_FALSE(payload.encode(rows.data(), rows.data() + rows.size()).empty());
}

TEST_CASE("reading schedule: a short run is read at each snapshot, a long one for a thousandth of its time") {
  reading_schedule schedule;
  CHECK_FALSE(schedule.claim(0));  // no capture
  schedule.restart(0);
  for (std::int64_t time = 0; time < 50; ++time) {
    REQUIRE(schedule.claim(time * ms / 10));
    CHECK_FALSE(schedule.claim(time * ms / 10));  // another thread reads
    schedule.finish(time * ms / 10, time * ms / 10 + ms / 10);
  }
  std::int64_t spent = 0;
  for (std::int64_t now = 5 * ms; now < 10'000 * ms; now += ms / 10) {
    if (!schedule.claim(now)) continue;
    schedule.finish(now, now + ms / 10);
    spent += ms / 10;
  }
  CHECK(spent >= 9 * ms);
  CHECK(spent <= 11 * ms);
}

TEST_CASE("heap schedule: malloc is asked for a thousandth of the time since it first was") {
  heap_schedule schedule;
  CHECK(schedule.is_due(0));
  schedule.note(1000 * ms, 1020 * ms);
  // 20 ms less the allowance of 5 ms.
  CHECK_FALSE(schedule.is_due(15'999 * ms));
  CHECK(schedule.is_due(16'000 * ms));
  schedule.note(16'000 * ms, 16'010 * ms);
  CHECK_FALSE(schedule.is_due(25'999 * ms));
  CHECK(schedule.is_due(26'000 * ms));
}

TEST_CASE("heap schedule: calls that cost little are throttled once they add up") {
  heap_schedule schedule;
  std::int64_t spent = 0;
  for (std::int64_t now = 0; now < 10'000 * ms; now += ms / 10) {
    if (!schedule.is_due(now)) continue;
    schedule.note(now, now + ms / 20);
    spent += ms / 20;
  }
  CHECK(spent >= 14 * ms);
  CHECK(spent <= 16 * ms);
}

}  // namespace memprof_tests::record_process_reading
