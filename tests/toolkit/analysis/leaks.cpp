#include <memprof/toolkit/analysis/leaks.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/memprof.hpp>
#include <memprof/report/text/display_width.hpp>
#include <memprof/toolkit/analysis/leaks_json.hpp>
#include <memprof/toolkit/analysis/leaks_text.hpp>
#include <memprof/toolkit/analysis/profile_remarks.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/trace.hpp>

#include <buffer.hpp>
#include <scratch_folder.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_leaks {

using Catch::Matchers::ContainsSubstring;
using memprof::find_leaks;
using memprof::leak_report;

namespace {

using byte_vector = std::vector<char, memprof::allocator<char>>;

/// Runs a program under a capture. What it holds at the end lives in itself.
leak_report leaks_of(const std::function<void()>& program, memprof::profile* of = nullptr) {
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events});
  program();
  capture.end();
  const memprof::profile made = capture.profile();
  if (of != nullptr) *of = made;
  return find_leaks(events, made);
}

/// What a training step does besides.
void compute(int step) {
  const buffer activations = allocated_in("forward", 40'000 + static_cast<std::size_t>(step % 7) * 1'000);
  const buffer gradients = allocated_in("backward", 20'000);
}

/// A training of so many steps, in each of which `body(step)` is called. Owns what bodies keep.
struct program {
  const char* name;
  int steps;
  std::function<std::function<void(int)>()> make;  ///< the body, with what it keeps
  std::string_view owner = "leak";                 ///< of what leaks
  std::string_view space = "cpu";
};

template <class Kept, class Body>
std::function<std::function<void(int)>()> keeping(Body body) {
  return [body] {
    auto kept = std::make_shared<Kept>();
    return [body, kept](int step) { body(*kept, step); };
  };
}

leak_report run(const program& each, memprof::profile* of = nullptr) {
  const std::function<void(int)> body = each.make();
  return leaks_of(
      [&] {
        for (int step = 0; step < each.steps; ++step) {
          compute(step);
          body(step);
          memprof::snapshot("STEP");
        }
      },
      of);
}

using buffers = std::list<buffer>;

/// An allocator that reserves memory for each block of a step where `finds_room` says that there is none, and gives none back.
template <class FindsRoom>
std::function<std::function<void(int)>()> reserving(FindsRoom finds_room) {
  return [finds_room] {
    return [finds_room](int step) {
      const memprof::memory_space device{"gpu"};
      const memprof::extend::event_sink sink;
      const std::uint64_t address = 0x10'0000'0000U + (static_cast<std::uint64_t>(step) << 21U);
      if (!finds_room(step)) sink.reserve(device, address, 2 << 20);
      sink.allocate(device, address, 4'000);
      sink.deallocate(device, address);
    };
  };
}

/// Each leaks by "leak", or by what is reserved in no block, and nothing else leaks.
std::vector<program> leaking_programs() {
  return {
      {"a block in every step", 100, keeping<buffers>([](auto& kept, int) { kept.push_back(allocated_in("leak", 256)); })},
      {"a byte in every step", 1'000, keeping<buffers>([](auto& kept, int) { kept.push_back(allocated_in("leak", 1)); })},
      {"in the fewest steps", 8, keeping<buffers>([](auto& kept, int) { kept.push_back(allocated_in("leak", 256)); })},
      {"in 5,000 steps", 5'000, keeping<buffers>([](auto& kept, int) { kept.push_back(allocated_in("leak", 16)); })},
      {"a block in 100 steps", 1'000, keeping<buffers>([](auto& kept, int step) {
         if (step % 100 == 50) kept.push_back(allocated_in("leak", 4'096));
       })},
      {"a block in 7 steps", 200, keeping<buffers>([](auto& kept, int step) {
         if (step % 7 == 3) kept.push_back(allocated_in("leak", 64));
       })},
      {"the graph of a loss that a list keeps", 150, keeping<buffers>([](auto& kept, int) {
         kept.push_back(allocated_in("leak", 4));
         for (int node = 0; node < 5; ++node) kept.push_back(allocated_in("leak", 1'000));
       })},
      {"a cache of keys and values that grows by a copy", 120,
       keeping<buffer>([](auto& kept, int step) { kept = allocated_in("leak", static_cast<std::size_t>(step + 1) * 512); })},
      {"a log of numbers whose vector doubles", 1'100, keeping<byte_vector>([](auto& kept, int) {
         const auto scope = memprof::track_operation("leak");
         kept.insert(kept.end(), 8, 'x');
       })},
      {"from the middle of the run on", 400, keeping<buffers>([](auto& kept, int step) {
         if (step >= 200) kept.push_back(allocated_in("leak", 128));
       })},
      {"in one branch of a worker", 64, keeping<buffers>([](auto& kept, int step) {
         std::thread{[&] {
           const buffer work = allocated_in("work", 3'000);
           if (step % 3 == 0) kept.push_back(allocated_in("leak", 700));
         }}.join();
       })},
      {"two for one that is freed", 300, keeping<buffers>([](auto& kept, int) {
         kept.push_back(allocated_in("leak", 100));
         kept.push_back(allocated_in("leak", 100));
         kept.pop_front();
       })},
      {"below a queue that comes and goes", 600, keeping<buffers>([](auto& kept, int step) {
         kept.push_back(allocated_in("leak", 200));
         static buffer queue;
         queue = step % 10 == 9 ? buffer{} : allocated_in("queue", static_cast<std::size_t>(step % 10 + 1) * 5'000);
       })},
      {"of random sizes", 300, keeping<std::pair<std::mt19937, buffers>>([](auto& kept, int) {
         kept.second.push_back(allocated_in("leak", kept.first() % 1'000));
       })},
      {"after state that is made in the first steps", 300, keeping<std::pair<buffers, buffers>>([](auto& kept, int step) {
         if (step < 3) kept.first.push_back(allocated_in("state", 100'000));
         kept.second.push_back(allocated_in("leak", 32));
       })},
      {"keys of a map that are never looked up again", 256,
       keeping<std::map<int, buffer>>([](auto& kept, int step) { kept[step * 17] = allocated_in("leak", 90); })},
      {"fragmentation: in every third step no free block is large enough", 120, reserving([](int step) { return step % 3 != 0; }),
       memprof::detail::reserved_beyond_blocks, "gpu"},
  };
}

/// None of these leaks.
std::vector<program> sound_programs() {
  return {
      {"nothing kept", 100, keeping<buffers>([](auto&, int) {})},
      {"optimizer state made in the first step", 100, keeping<buffers>([](auto& kept, int step) {
         if (step == 0) kept.push_back(allocated_in("adam", 1'000'000));
       })},
      {"state made lazily in the first ten steps", 200, keeping<buffers>([](auto& kept, int step) {
         if (step < 10) kept.push_back(allocated_in("lazy", 10'000));
       })},
      {"a cache of the last 50", 400, keeping<std::deque<buffer>>([](auto& kept, int) {
         kept.push_back(allocated_in("cache", 500));
         if (kept.size() > 50) kept.pop_front();
       })},
      {"a cache of random keys", 800, keeping<std::pair<std::mt19937, std::map<int, buffer>>>([](auto& kept, int) {
         for (int hit = 0; hit < 10; ++hit) {
           const int key = static_cast<int>(kept.first() % 500);
           if (kept.second.find(key) == kept.second.end()) kept.second[key] = allocated_in("cache", 300);
         }
       })},
      {"a pool that warms up over a third of the run", 300, keeping<buffers>([](auto& kept, int step) {
         if (step < 100 && step % 4 == 0) kept.push_back(allocated_in("pool", 8'000));
       })},
      {"a table that doubles and is then large enough", 1'000, keeping<byte_vector>([](auto& kept, int step) {
         const auto scope = memprof::track_operation("table");
         if (step < 300) kept.insert(kept.end(), 8, 'x');
       })},
      {"a log that is written out every 100 steps", 1'000, keeping<buffers>([](auto& kept, int step) {
         kept.push_back(allocated_in("log", 100));
         if (step % 100 == 99) kept.clear();
       })},
      {"the same, and the run ends before it is", 1'090, keeping<buffers>([](auto& kept, int step) {
         kept.push_back(allocated_in("log", 100));
         if (step % 100 == 99) kept.clear();
       })},
      {"gradients accumulated over 4 steps", 200, keeping<buffers>([](auto& kept, int step) {
         kept.push_back(allocated_in("accumulate", 10'000));
         if (step % 4 == 3) kept.clear();
       })},
      {"an epoch's data, read anew in each of 5", 500, keeping<buffers>([](auto& kept, int step) {
         if (step % 100 == 0) kept.clear();
         kept.push_back(allocated_in("data", 1'000));
       })},
      {"batches of random length", 400, keeping<std::pair<std::mt19937, buffer>>([](auto& kept, int) {
         kept.second = allocated_in("batch", kept.first() % 100'000);
       })},
      {"a queue between threads", 500, keeping<std::pair<std::mt19937, buffers>>([](auto& kept, int) {
         for (int item = 0; item < 3; ++item) {
           if (kept.first() % 2 == 0 && kept.second.size() < 30) {
             kept.second.push_back(allocated_in("queue", 2'000));
           } else if (!kept.second.empty()) {
             kept.second.pop_front();
           }
         }
       })},
      {"one large block replaced by a larger one twice", 300, keeping<buffer>([](auto& kept, int step) {
         if (step == 50 || step == 200) kept = allocated_in("resize", static_cast<std::size_t>(step) * 10'000);
       })},
      {"memory that is only freed", 200, keeping<buffers>([](auto& kept, int step) {
         if (step == 0) {
           for (int each = 0; each < 200; ++each) kept.push_back(allocated_in("data", 1'000));
         }
         kept.pop_back();
       })},
      {"a checkpoint kept every 250 steps, the last two", 1'000, keeping<buffers>([](auto& kept, int step) {
         if (step % 250 != 249) return;
         kept.push_back(allocated_in("checkpoint", 50'000));
         if (kept.size() > 2) kept.pop_front();
       })},
      {"an allocator whose free blocks are large enough after a quarter of the run", 120,
       reserving([](int step) { return step % 3 != 0 || step >= 30; })},
      {"too few steps to tell", 7, keeping<buffers>([](auto& kept, int) { kept.push_back(allocated_in("list", 256)); })},
  };
}

}  // namespace

TEST_CASE("leaks: each of the programs that leak is found, with its owner and no other") {
  for (const program& each : leaking_programs()) {
    INFO(each.name);
    const leak_report found = run(each);
    CHECK(found.segment == "STEP");
    CHECK(found.steps == each.steps);
    REQUIRE(found.growing.size() == 1);
    CHECK(found.growing[0].operation == each.owner);
    CHECK(found.growing[0].space == each.space);
    CHECK(found.growing[0].trend.per_step > 0);
  }
}

TEST_CASE("leaks: no program that only looks like it leaks") {
  for (const program& each : sound_programs()) {
    INFO(each.name);
    const leak_report found = run(each);
    INFO((found.growing.empty() ? std::string{} : found.growing[0].operation));
    CHECK(found.growing.empty());
  }
}

TEST_CASE("leaks: the profile of each program names the same owners, though it does not know how long the run will be") {
  for (const program& each : leaking_programs()) {
    INFO(each.name);
    memprof::profile profile;
    const leak_report found = run(each, &profile);
    REQUIRE(found.growing.size() == 1);
    const memprof::growth& trend = found.growing[0].trend;
    const memprof::space_profile& space = profile.space(std::string{each.space});
    REQUIRE(space.growing.size() == 1);
    const memprof::owner_growth& owner = space.growing[0];
    CHECK(owner.owner == each.owner);
    CHECK(owner.steps == each.steps);
    // Both divide the run into parts, of a 64th and of up to a 32nd of it.
    CHECK(owner.within_steps <= std::max(1, each.steps / 32));
    CHECK(std::abs(owner.since_step - trend.since_step) <= owner.within_steps + each.steps / 64);
    CHECK(owner.per_step >= trend.per_step * 0.8);
    CHECK(owner.per_step <= trend.per_step * 1.25);
    if (each.steps <= 64) CHECK(owner.per_step == trend.per_step);
  }
  for (const program& each : sound_programs()) {
    INFO(each.name);
    memprof::profile profile;
    (void)run(each, &profile);
    for (const memprof::space_profile& space : profile.spaces) CHECK(space.growing.empty());
  }
}

TEST_CASE("leaks: growth per step, its begin, its blocks and their steps are exact") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 640; ++step) {
      compute(step);
      if (step == 20) kept.push_back(allocated_in("cache", 5'000));
      kept.push_back(allocated_in("log_metrics", 256));
      memprof::snapshot("FORWARD");
      memprof::snapshot("BACKWARD");
    }
  });
  CHECK(found.segment == "BACKWARD");  // the last of equals: it ends a step
  REQUIRE(found.growing.size() == 1);
  const memprof::growing_owner& owner = found.growing[0];
  CHECK(owner.operation == "log_metrics");
  CHECK(owner.trend.per_step == 256);
  CHECK(owner.trend.since_step == 0);
  CHECK(owner.trend.first == 256);
  CHECK(owner.trend.last == 640 * 256);
  CHECK(owner.blocks == 640);
  CHECK(owner.oldest_step == 0);
  CHECK(owner.newest_step == 639);
  CHECK(found.age_of(owner.oldest_step) == 639);
  CHECK(found.age_of(owner.newest_step) == 0);
  CHECK(to_json(found)["grows"][0]["oldest_age"] == 639);
  CHECK(to_json(found)["grows"][0]["newest_age"] == 0);
  CHECK_THAT(to_text(found, 1, {.columns = 120}), ContainsSubstring("oldest, step (age)") &&
                                                      ContainsSubstring("256 B, 1 (639)") && ContainsSubstring("256 B, 640 (0)"));
  CHECK(owner.oldest_bytes == 256);
  REQUIRE(found.levelled.size() == 1);
  CHECK(found.levelled[0].operation == "cache");
  CHECK(found.levelled[0].trend.last == 5'000);
  REQUIRE(found.spaces.size() == 1);
  CHECK(found.spaces[0].last == 640 * 256 + 5'000);
  CHECK(found.spaces[0].per_step == 256);
  const std::string text = to_text(found, 1'000, {.columns = 80});
  CHECK_THAT(text, ContainsSubstring("cpu grows by 256 B per step, all of it from log_metrics, since step 1\n"));
  CHECK_THAT(text, ContainsSubstring("1,000 more steps: 415 KiB of cpu instead of 165 KiB"));
}

TEST_CASE("leaks: at 80 columns a name of an operation keeps its room, without the ages of blocks") {
  const std::string name = "log_of_each_layer_and_its_gradients";
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 64; ++step) {
      kept.push_back(allocated_in(name.c_str(), 256));
      memprof::snapshot("STEP");
    }
  });
  CHECK_THAT(to_text(found, 1, {.columns = 100}), ContainsSubstring("oldest, step"));
  const std::string text = to_text(found, 1, {.columns = 80});
  CHECK(text.find("oldest, step") == std::string::npos);
  CHECK_THAT(text.substr(text.find("Grows")), ContainsSubstring(name));
}

TEST_CASE("leaks: what is made anew in every step did not grow because the end of the first step lacked it") {
  for (const int steps : {8, 40, 64, 65, 1'000}) {
    INFO(steps);
    std::list<buffer> gradients;
    std::list<buffer> cache;
    std::list<buffer> table;  // copied in each step, with more rows in it until the fifth
    const leak_report found = leaks_of([&] {
      for (int step = 0; step < steps; ++step) {
        gradients.clear();
        gradients.push_back(allocated_in("backward", 1'000));
        gradients.push_back(allocated_in("backward", 500));
        if (step == 0) gradients.clear();  // its segment ends in the next step, behind zero_grad()
        if (step == 1) cache.push_back(allocated_in("cache", 300));
        table.push_back(allocated_in("table", 100 * static_cast<std::size_t>(std::min(step + 1, 5 * std::max(1, steps / 64)))));
        if (step > 0) table.pop_front();
        memprof::snapshot("STEP");
      }
    });
    CHECK(found.growing.empty());
    CHECK(found.unclear.empty());
    REQUIRE(found.levelled.size() == 2);
    CHECK(found.levelled[0].operation == "table");
    CHECK(found.levelled[1].operation == "cache");
  }
}

TEST_CASE("leaks: less than a byte per step is not shown as none") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 640; ++step) {
      if (step % 40 == 0) kept.push_back(allocated_in("leak", 4));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].trend.per_step < 1);
  const std::string text = to_text(found, 1);
  CHECK_THAT(text, ContainsSubstring("cpu grows by 0.0") || ContainsSubstring("cpu grows by 0.1"));
  CHECK_THAT(text, ContainsSubstring("+0.0") || ContainsSubstring("+0.1"));
}

TEST_CASE("leaks: blocks are those at the end of the last step, though the program frees them behind it") {
  const leak_report found = leaks_of([] {
    std::list<buffer> kept;
    for (int step = 0; step < 40; ++step) {
      kept.push_back(allocated_in("loss", 1'024));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].blocks == 40);
  CHECK(found.growing[0].oldest_step == 0);
  CHECK(found.growing[0].newest_step == 39);
  CHECK(found.growing[0].trend.last == 40 * 1'024);
}

TEST_CASE("leaks: layers that grew alike are one row, and one that grew otherwise is another") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 100; ++step) {
      for (int layer = 0; layer < 12; ++layer) kept.push_back(allocated_in("h." + std::to_string(layer), layer == 7 ? 500 : 100));
      for (int layer = 0; layer < 3; ++layer) {
        if (step == 1) kept.push_back(allocated_in("cache." + std::to_string(layer), 2'000));
      }
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 2);
  const memprof::growing_owner& layers = found.growing[0];
  CHECK(layers.operation == "h.*");
  CHECK(layers.operations == 11);
  CHECK(layers.trend.per_step == 1'100);
  CHECK(layers.trend.first == 1'100);
  CHECK(layers.trend.last == 100 * 1'100);
  CHECK(layers.blocks == 1'100);
  CHECK(layers.oldest_step == 0);
  CHECK(layers.newest_step == 99);
  CHECK(found.growing[1].operation == "h.7");
  CHECK(found.growing[1].trend.per_step == 500);
  REQUIRE(found.levelled.size() == 1);
  CHECK(found.levelled[0].operation == "cache.*");
  CHECK(found.levelled[0].trend.last == 6'000);
  CHECK_THAT(to_text(found, 1, {.columns = 120}),
             ContainsSubstring("grows by 1.56 KiB per step, most of it from h.* x11, since step 1"));
  CHECK(to_json(found)["grows"][0]["operations"] == 11);
}

TEST_CASE("leaks: an owner of a third of the growth is not most of it, and one that grew too briefly has not stopped") {
  std::map<std::string, std::list<buffer>> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 200; ++step) {
      for (const char* const each : {"a", "b", "c"}) kept[each].push_back(allocated_in(each, 100));
      memprof::snapshot("STEP");
    }
  });
  CHECK_THAT(to_text(found, 1), ContainsSubstring("cpu grows by 300 B per step, 100 B of it from a, since step 1"));
  kept.clear();
  const leak_report late = leaks_of([&] {
    for (int step = 0; step < 200; ++step) {
      if (step >= 186) kept["late"].push_back(allocated_in("late", 100));
      memprof::snapshot("STEP");
    }
  });
  CHECK(late.growing.empty());
  CHECK(late.levelled.empty());
  REQUIRE(late.unclear.size() == 1);
  CHECK_THAT(to_text(late, 1), ContainsSubstring("none for certain, but late grew until the end: a longer run would tell"));
}

TEST_CASE("leaks: of a trace of limited size, the steps that it lacks are counted") {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("run.memtrace");
  std::list<buffer> kept;
  memprof::profile whole;
  {
    auto capture = memprof::begin_capture({.trace_file = path, .trace_limit = 65'536});
    for (int step = 0; step < 20'000; ++step) {
      kept.push_back(allocated_in("leak", 32));
      for (int batch = 0; batch < 8; ++batch) (void)allocated_in("work", static_cast<std::size_t>(step) * 17 + 1);
      memprof::snapshot("STEP");
    }
    capture.end();
    whole = capture.profile();
  }
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  const leak_report found = find_leaks(memprof::trace_file{file.get(), path}, whole);
  CHECK(found.missing_steps > 0);
  CHECK(found.steps + found.missing_steps == 20'000);
  CHECK_THAT(to_text(found, 1), ContainsSubstring("The trace lacks the ") && ContainsSubstring(" or before"));
  // Steps count from the first of the run, and what is live includes what was allocated before.
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].trend.since_step == found.missing_steps);
  CHECK(found.growing[0].newest_step == 19'999);
  REQUIRE(found.spaces.size() == 1);
  CHECK(found.spaces[0].last == 20'000 * 32);
}

TEST_CASE("leaks: a run that is not exact says so") {
  std::list<buffer> kept;
  leak_report found = leaks_of([&] {
    for (int step = 0; step < 16; ++step) {
      kept.push_back(allocated_in("leak", 64));
      memprof::snapshot("STEP");
    }
  });
  CHECK(found.exact);
  CHECK_THAT(to_text(found, 1), !ContainsSubstring("Accuracy"));
  found.exact = false;
  CHECK_THAT(to_text(found, 1), ContainsSubstring("Accuracy  not exact: lost frees look like leaks"));
  CHECK(to_json(found)["exact"] == false);
  found.remarks = {"12 bytes were not recorded"};
  CHECK_THAT(to_text(found, 1), ContainsSubstring("Accuracy  not exact") && ContainsSubstring("12 bytes were not recorded\n"));
  CHECK(to_json(found)["caveats"][1] == "12 bytes were not recorded");
}

TEST_CASE("leaks: caveats of the recording are the answer's, of every memory space and each once") {
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events});
  const buffer kept = allocated_in("leak", 64);
  capture.end();
  memprof::profile of = capture.profile();
  memprof::space_profile other = of.spaces.front();
  other.name = "dram";
  other.capacity_is_per_core = true;
  other.capacity = 1024;
  of.spaces.push_back(other);
  of.provenance.remarks = {"12 bytes were not recorded"};
  const std::vector<std::string> remarks = remarks_on(of);
  CHECK(find_leaks(events, of).remarks == remarks);
  CHECK(std::count(remarks.begin(), remarks.end(), "12 bytes were not recorded") == 1);
}

TEST_CASE("leaks: where what grows is made up for, the space does not grow, and nothing is foretold") {
  std::list<buffer> work;
  std::list<buffer> results;
  const leak_report found = leaks_of([&] {
    for (int item = 0; item < 1'000; ++item) work.push_back(allocated_in("init", 300));
    for (int step = 0; step < 100; ++step) {
      work.pop_back();
      results.push_back(allocated_in("consume", 100));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.spaces.size() == 1);
  CHECK(found.spaces[0].is_made_up_for);
  CHECK_THAT(to_text(found, 100),
             ContainsSubstring("consume grows by 100 B per step in cpu, since step 1, which as a whole does not") &&
                 !ContainsSubstring("more steps"));
}

TEST_CASE("leaks: where each step has an operation of its own, the space grows") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 200; ++step) {
      kept.push_back(allocated_in("step " + std::to_string(step), 100));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].operation == memprof::many_operations);
  CHECK(found.growing[0].trend.per_step == 100);
}

TEST_CASE("leaks: steps in a long run are known to within a part of it, which is said") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 1'000; ++step) {
      if (step >= 700) kept.push_back(allocated_in("late", 100));
      memprof::snapshot("STEP");
    }
  });
  CHECK_THAT(to_text(found, 1), ContainsSubstring(", since about step 6") && ContainsSubstring("since about step  "));
}

TEST_CASE("leaks: without steps, the run is divided by its allocations") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int round = 0; round < 2'560; ++round) {
      const buffer work = allocated_in("work", 1'000);
      kept.push_back(allocated_in("leak", 10));
    }
  });
  for (const int count : {300, 511, 1'000}) {
    const leak_report few = leaks_of([&] {
      for (int round = 0; round < count; ++round) (void)allocated_in("work", 10);
    });
    CHECK(few.steps <= 256);
  }
  CHECK(found.is_by_count);
  CHECK(found.steps == 256);
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].operation == "leak");
  CHECK(found.growing[0].trend.per_step == 100);
  CHECK_THAT(to_text(found, 10), ContainsSubstring("256 parts with as many allocations each"));
}

TEST_CASE("leaks: what is reserved and in no block grows by itself") {
  const leak_report found = leaks_of([] {
    const memprof::memory_space device{"gpu"};
    const memprof::extend::event_sink sink;
    std::uint64_t address = 0x10000;
    for (int step = 0; step < 100; ++step) {
      sink.allocate(device, 0x10U, 4'000);
      sink.reserve(device, address, 2 << 20);
      sink.release(device, address, 1 << 20);
      address += 2 << 20;
      sink.deallocate(device, 0x10U);
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].operation == memprof::detail::reserved_beyond_blocks);
  CHECK(found.growing[0].space == "gpu");
  CHECK(found.growing[0].trend.per_step == 1 << 20);
  REQUIRE(found.spaces.size() == 1);
  CHECK(found.spaces[0].last == 100 << 20);  // what comes after builds on it
  CHECK_THAT(to_text(found, 100), ContainsSubstring("200 MiB of gpu instead of 100 MiB"));
}

TEST_CASE("leaks: a space that is first used late had no bytes before") {
  std::list<buffer> kept;
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 100; ++step) {
      if (step >= 40) kept.push_back(allocated_in("late", 64));
      memprof::snapshot("STEP");
    }
  });
  REQUIRE(found.growing.size() == 1);
  CHECK(found.growing[0].trend.first == 0);
  CHECK(found.growing[0].trend.since_step >= 32);
  CHECK(found.growing[0].trend.since_step <= 40);
}

TEST_CASE("leaks text: no line is wider than asked, and further owners are counted") {
  std::vector<std::list<buffer>> kept(60);
  const leak_report found = leaks_of([&] {
    for (int step = 0; step < 40; ++step) {
      for (std::size_t owner = 0; owner < kept.size(); ++owner) {
        const std::string name = std::string(owner * 3, 'a') + std::to_string(owner) + "\x1b[31m";
        if (owner < 30 || step < 5) kept[owner].push_back(allocated_in(name.c_str(), 100 + owner));
      }
      memprof::snapshot("STEP");
    }
  });
  CHECK(found.growing.size() == 30);
  CHECK(found.levelled.size() == 30);
  for (const std::size_t columns : {60U, 80U, 100U}) {
    for (const bool shows_all : {false, true}) {
      const std::string text = to_text(found, 1, {.columns = columns}, shows_all);
      std::istringstream lines{text};
      for (std::string line; std::getline(lines, line);) CHECK(memprof::detail::display_width(line) <= columns);
      CHECK(text.find('\x1b') == std::string::npos);
      if (!shows_all) CHECK_THAT(text, ContainsSubstring("10 others: --all lists them"));
    }
  }
}

TEST_CASE("leaks JSON: its keys are those of the schema") {
  std::list<buffer> kept;
  const nlohmann::ordered_json document = to_json(leaks_of([&] {
    for (int step = 0; step < 80; ++step) {
      if (step == 0) kept.push_back(allocated_in("state", 100));
      kept.push_back(allocated_in("leak", 10));
      memprof::snapshot("STEP");
    }
  }));
  const nlohmann::json schema = read_schema("leaks.schema.json");
  check_keys(document, schema);
  check_keys(document["spaces"][0], schema.at("definitions").at("space"));
  check_keys(document["grows"][0], schema.at("definitions").at("owner"));
  CHECK(document["grows"][0]["bytes_per_step"] == 10);
  CHECK(document["steps_count_from"] == 0);  // as in the JSON of profiles; sentences count from 1
  CHECK(document["grows"][0]["since_step"] == 0);
  CHECK(document["grows"][0]["newest_step"] == 79);
  CHECK_THAT(document["verdict"].get<std::string>(), ContainsSubstring("since step 1"));
  CHECK(document["levels_off"].empty());  // made before the first step ended, it never grew
  CHECK(schema["properties"]["version"]["const"] == memprof::leaks_json_version);
}

}  // namespace memprof_tests::analysis_leaks
