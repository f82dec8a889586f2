// What a session leaves at each way in which a program ends, and that the program ends as it would have without it.
#include <memprof/profile/trace_profile.hpp>

#include <session/trained.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <regex>

using memprof_tests::trained;

namespace {

/// What three steps are: 10,000 bytes that stay, 3 * 4,096 that came and went.
void check_training(const memprof::profile& profile, std::int64_t more_bytes = 0, std::int64_t more_blocks = 0) {
  const memprof::space_profile& cpu = profile.space("cpu");
  CHECK(cpu.allocations == 10'000 + 3 * 4096 + more_bytes);
  CHECK(cpu.allocation_count == 4 + more_blocks);
  CHECK(cpu.deallocations == 3 * 4096);
  CHECK(cpu.cumulative_current == 10'000 + more_bytes);
  CHECK(cpu.cumulative_peak == 10'000 + 4096);
  CHECK(cpu.anomalies == memprof::space_anomalies{});
  REQUIRE(profile.segments.size() == 4);
  CHECK(profile.segments[2].name == "STEP");
  REQUIRE(profile.find_operation("forward") != nullptr);
  CHECK(profile.find_operation("forward")->invocations == 3);
  CHECK(profile.exact);
  // On a busy machine a periodic one may come first.
  const auto found = std::find_if(profile.checkpoints.begin(), profile.checkpoints.end(),
                                  [](const memprof::checkpoint& each) { return each.name == "model"; });
  REQUIRE(found != profile.checkpoints.end());
  const memprof::checkpoint& model = *found;
  CHECK(model.live_bytes == 10'000);
  REQUIRE(model.spaces.size() == 1);
  REQUIRE(model.spaces[0].largest_blocks.size() == 1);
  CHECK(model.spaces[0].largest_blocks[0].name == "weights");
  CHECK(model.spaces[0].largest_blocks[0].bytes == 10'000);
}

void check_ended_capture(const trained& run) {
  const memprof::profile profile = run.profile();
  check_training(profile);
  CHECK(profile.complete);
  CHECK(profile.segments[3].name == "END_TRACE");
  CHECK(run.files().size() == 1);
}

void check_open_capture(const trained& run) {
  const memprof::profile profile = run.profile();
  check_training(profile);
  CHECK_FALSE(profile.complete);
  CHECK(run.files().size() == 1);
}

/// GCC's address sanitizer does not guard its allocator's locks against `fork`: where a thread holds one at that moment, the
/// leak check of the child waits for it for ever.
constexpr const char* sanitizers_hang = "a child that is forked beside threads may inherit a locked lock of the sanitizer";

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("session: off unless asked for") {
  for (const std::string setting : {"MEMPROF=0", "MEMPROF=", "HOME=/nowhere"}) {
    const trained run{"return", {.environment = {setting}}};
    CHECK(run.exit_status() == 7);
    CHECK(run.files().empty());
    CHECK_FALSE(std::filesystem::exists(run.directory()));
    CHECK(run.errors().empty());
    CHECK(run.output().empty());
  }
}

TEST_CASE("session: a program that returns leaves the profile of the ended capture") {
  const trained run{"return"};
  CHECK(run.exit_status() == 7);
  check_ended_capture(run);
  const std::string name = run.files().front().filename().string();
  CHECK(std::regex_match(name, std::regex{"memory_profile_[0-9]{8}_[0-9]{6}\\.json"}));
}

TEST_CASE("session: exit and quick_exit, on whatever thread") {
  for (const std::string ending : {"exit", "exit in a thread", "quick_exit"}) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.exit_status() == 3);
    check_ended_capture(run);
  }
}

TEST_CASE("session: threads that end the process at the same time leave one profile") {
  for (const std::string ending : {"exit in three threads", "quick_exit in three threads", "exit beside quick_exit",
                                   "quick_exit beside exit", "return beside exit"}) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.exit_status() == 3);
    INFO(run.errors());
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 1);  // where the profile is
    check_ended_capture(run);
  }
}

TEST_CASE("session: an uncaught exception and abort") {
  for (const std::string ending : {"exception", "exception in a thread", "abort", "terminate handler later"}) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.signal() == SIGABRT);
    check_open_capture(run);
    if (ending.substr(0, 9) == "exception") CHECK(run.errors().find("no more data") != std::string::npos);
  }
}

TEST_CASE("session: the terminate handler of the program runs afterwards") {
  const trained run{"terminate handler before"};
  CHECK(run.exit_status() == 9);
  CHECK(run.output() == "the program's own handler\n");
  check_open_capture(run);
}

TEST_CASE("session: a signal ends the program by that signal") {
  const std::pair<const char*, int> signals[] = {{"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP}};
  for (const auto& [ending, number] : signals) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.signal() == number);
    check_open_capture(run);
  }
}

TEST_CASE("session: signals may be left alone") {
  const trained run{"SIGTERM", {.environment = {"MEMPROF=1", "MEMPROF_SIGNALS=0"}}};
  CHECK(run.signal() == SIGTERM);
  CHECK(run.files().empty());
  CHECK(run.errors().empty());
}

TEST_CASE("session: a signal that interrupts the profiler itself") {
  for (int round = 0; round < 5; ++round) {
    const trained run{"SIGTERM while the rings are drained"};
    CHECK(run.signal() == SIGTERM);
    const memprof::profile profile = run.profile();
    CHECK(profile.space("cpu").cumulative_current == 10'000);
    const memprof::space_profile& churned = profile.space("churned");
    CHECK(churned.allocation_count > 1000);
    CHECK(churned.cumulative_peak <= 4 * 64);
    CHECK(churned.anomalies.unmatched_frees.count == 0);
  }
}

TEST_CASE("session: a signal that comes twice at once is one") {
  const trained run{"SIGTERM twice"};
  CHECK(run.signal() == SIGTERM);
  check_open_capture(run);
}

TEST_CASE("session: a signal that comes while another is noted") {
  if (is_sanitized()) SKIP("sanitizers have a clock_gettime of their own");
  for (const std::string ending : {"SIGINT while SIGTERM is noted", "SIGINT while SIGTERM is noted, after others"}) {
    INFO(ending);
    const trained run{ending};
    CHECK((run.signal() == SIGINT || run.signal() == SIGTERM));
    check_open_capture(run);
  }
}

TEST_CASE("session: a signal that comes again after a while ends the program at once") {
  const trained run{"SIGTERM again after a while"};
  CHECK(run.signal() == SIGTERM);
  CHECK(run.files().empty());
}

TEST_CASE("session: SIGUSR1 leaves a profile of that moment, and the program goes on") {
  const trained run{"SIGUSR1"};
  CHECK(run.exit_status() == 0);
  const auto files = run.files(".json");
  REQUIRE(files.size() == 2);
  CHECK(run.files().size() == 2);
  std::vector<memprof::profile> profiles{memprof::read_json(files[0]), memprof::read_json(files[1])};
  if (profiles[0].complete) std::swap(profiles[0], profiles[1]);
  CHECK_FALSE(profiles[0].complete);
  check_training(profiles[0]);
  CHECK(profiles[1].complete);
  check_training(profiles[1], 500, 1);
}

TEST_CASE("session: handlers that were there before run after the profile is written") {
  const trained again{"handled before"};
  CHECK(again.exit_status() == 11);
  check_ended_capture(again);
  const trained leaves{"a handler that leaves at once"};
  CHECK(leaves.exit_status() == 12);
  check_open_capture(leaves);
  const trained aborts{"abort that the program handles"};
  CHECK(aborts.exit_status() == 12);
  check_open_capture(aborts);
  const trained looks{"SIGUSR1 that the program handles"};
  CHECK(looks.exit_status() == 11);
  CHECK(looks.files(".json").size() == 2);
}

TEST_CASE("session: handlers that come later run, and decide what becomes of the program") {
  for (const std::string ending : {"handled later", "handled later by one that calls the one before"}) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.exit_status() == 11);
    check_ended_capture(run);
  }
}

TEST_CASE("session: a signal that is ignored stays so") {
  const trained run{"ignored"};
  CHECK(run.exit_status() == 6);
  check_ended_capture(run);
}

TEST_CASE("session: a forked child neither writes its parent's files nor ends in another way") {
  if (is_sanitized()) SKIP(sanitizers_hang);
  for (const std::string ending : {"children", "children in a row"}) {
    INFO(ending);
    const trained run{ending};
    CHECK(run.exit_status() == 0);
    check_ended_capture(run);
    INFO(run.errors());
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 2);  // that it forks, and where the profile is
  }
}

TEST_CASE("session: of a process that ends at a fork, as daemon() has it, the profile until then remains, and a line") {
  if (is_sanitized()) SKIP(sanitizers_hang);
  const trained run{"daemon"};
  CHECK(run.exit_status() == 0);  // the parent's, in `daemon`
  check_open_capture(run);
  CHECK(run.errors() == "memprof: session: the process forks: the profile so far is in '" + run.files().front().string() +
                            "', and the child records nothing; if the child goes on in place of its parent, as after daemon(), "
                            "begin the session there\n");
}

TEST_CASE("session: a fork does not wait for ever for a session that is stuck") {
  if (is_sanitized()) SKIP(sanitizers_hang);
  const trained run{"a child while the session is stuck"};
  CHECK(run.exit_status() == 5);
  CHECK(run.files().empty());
}

TEST_CASE("session: a forked child may have a session of its own") {
  if (is_sanitized()) SKIP(sanitizers_hang);
  const trained run{"a session of a child"};
  CHECK(run.exit_status() == 5);
  const auto files = run.files(".json");
  REQUIRE(files.size() == 2);
  std::int64_t live = 0;
  for (const auto& file : files) live += memprof::read_json(file).space("cpu").cumulative_current;
  CHECK(live == 10'000 + 77);
}

TEST_CASE("session: a capture that the program ended, or began itself") {
  const trained ended{"ended twice"};
  CHECK(ended.exit_status() == 0);
  check_ended_capture(ended);
  const trained own{"a capture of the program's own"};
  CHECK(own.exit_status() == 0);
  CHECK(own.files().empty());
  CHECK(own.errors().find("a capture is active already") != std::string::npos);
}

TEST_CASE("session: of a process that can do nothing any more the trace remains") {
  const std::pair<const char*, int> signals[] = {{"SIGKILL", SIGKILL}, {"SIGSEGV", SIGSEGV}, {"_exit", 0}};
  for (const auto& [ending, number] : signals) {
    INFO(ending);
    const trained run{ending, {.environment = {"MEMPROF=1", "MEMPROF_TRACE=1"}}};
    CHECK(run.signal() == number);
    if (number == 0) CHECK(run.exit_status() == 3);
    CHECK(run.files(".json").empty());
    const auto traces = run.files(".memtrace");
    REQUIRE(traces.size() == 1);
    memprof::trace_file_status status;
    const memprof::profile profile = memprof::profile_of(traces.front(), status);
    check_training(profile);
    CHECK_FALSE(profile.complete);

    const std::string tool = MEMPROF_TOOL;
    if (tool.empty()) continue;
    const std::string made = (run.directory() / "made.json").string();
    const int made_by_tool = std::system((tool + " profile " + traces.front().string() + " -o " + made + " 2>/dev/null").c_str());
    REQUIRE(WEXITSTATUS(made_by_tool) == 2);  // the trace is not complete
    check_training(memprof::read_json(made));
  }
}

TEST_CASE("session: the trace lies beside the profile, under its name") {
  const trained run{"return", {.environment = {"MEMPROF=1", "MEMPROF_TRACE=1"}}};
  const auto traces = run.files(".memtrace");
  REQUIRE(traces.size() == 1);
  REQUIRE(run.files(".json").size() == 1);
  CHECK(traces.front().stem() == run.files(".json").front().stem());
  memprof::trace_file_status status;
  memprof::profile of_trace = memprof::profile_of(traces.front(), status);
  CHECK(status.has_ended);
  const memprof::profile profile = run.profile();
  of_trace.cost = profile.cost;
  CHECK(of_trace == profile);
}

TEST_CASE("session: ranks have files of their own") {
  const trained run{"return", {.environment = {"MEMPROF=1", "MEMPROF_TRACE=1", "RANK=3", "WORLD_SIZE=8"}}};
  for (const auto& file : run.files())
    CHECK(file.stem().string().find("_rank3") == std::string("memory_profile_YYYYMMDD_HHMMSS").size());
  CHECK(run.files().size() == 2);
}

TEST_CASE("session: programs that begin at the same second do not write each other's files") {
  const memprof_tests::scratch_folder shared;
  for (int count = 0; count < 5; ++count) {
    const trained run{"return", {.environment = {"MEMPROF=1", "MEMPROF_TRACE=1"}, .directory = shared.path().string()}};
    CHECK(run.exit_status() == 7);
  }
  int profiles = 0;
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator{shared.path()}) {
    INFO(entry.path());
    if (entry.path().extension() == ".json") {
      ++profiles;
      check_training(memprof::read_json(entry.path()));
    } else {
      CHECK(entry.path().extension() == ".memtrace");
      ++traces;
    }
  }
  CHECK(profiles == 5);
  CHECK(traces == 5);
}

TEST_CASE("session: the directory is the one that it was at the begin") {
  const trained run{"directory changed", {.environment = {"MEMPROF=1", "MEMPROF_OUTPUT_DIR=here"}}};
  CHECK(run.exit_status() == 0);
  CHECK(run.files().size() == 1);  // the folder "here" in the working directory
  CHECK(run.files().front().filename() == "here");
}

TEST_CASE("session: a checkpoint at each interval") {
  const trained run{"some intervals", {.environment = {"MEMPROF=1", "MEMPROF_INTERVAL=0.02"}}};
  CHECK(run.exit_status() == 0);
  const memprof::profile profile = run.profile();
  check_training(profile);
  std::int64_t periodic = 0;
  std::int64_t last_ns = -1;
  for (const memprof::checkpoint& each : profile.checkpoints) {
    CHECK(each.time_ns >= last_ns);
    last_ns = each.time_ns;
    if (!each.name.empty()) continue;
    ++periodic;
    // On a busy machine some come before the weights, or within a step; the last five are waited for after the training.
    const bool is_after = &profile.checkpoints.back() - &each < 5;
    CHECK((each.live_bytes == 10'000 || (!is_after && (each.live_bytes == 0 || each.live_bytes == 10'000 + 4096))));
    CHECK(each.live_blocks == (each.live_bytes == 0 ? 0 : each.live_bytes == 10'000 ? 1 : 2));
  }
  CHECK(profile.checkpoint_count == periodic + 1);
  CHECK(periodic >= 5);
  CHECK(periodic <= profile.duration_ns / 20'000'000 + 1);
}

TEST_CASE("session: an interval of 0 in the program is one line, and the usual one is used") {
  const trained run{"an interval of 0"};
  CHECK(run.exit_status() == 0);
  CHECK(trained("an interval of 0", {.environment = {}}).errors().empty());  // off
  CHECK(run.errors().find("memprof: session: interval is 0.000000; use seconds, more than 0; 5 are used\n") == 0);
  CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 2);  // and where the profile is
  check_ended_capture(run);
}

TEST_CASE("session: a wall clock that is set is one line, and nothing else") {
  if (is_sanitized()) SKIP("sanitizers have a clock_gettime of their own");
  for (const std::string direction : {"forward", "back"}) {
    const trained run{"wall clock set " + direction, {.environment = {"MEMPROF=1", "MEMPROF_INTERVAL=0.02"}}};
    INFO(run.errors());
    CHECK(run.exit_status() == 0);
    CHECK(run.errors().find("memprof: session: the wall clock went " + direction +
                            " by 3600 s (it was set, or the machine slept); times in the profile still count from the session's "
                            "start\n") == 0);
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 2);  // and where the profile is
    check_ended_capture(run);
    const memprof::profile profile = run.profile();
    CHECK(profile.checkpoint_count >= 8);
    CHECK(profile.duration_ns > 100'000'000);  // six intervals at least
    CHECK(profile.duration_ns < 60'000'000'000);
    for (std::size_t index = 1; index < profile.checkpoints.size(); ++index)
      CHECK(profile.checkpoints[index].time_ns >= profile.checkpoints[index - 1].time_ns);
  }
}

TEST_CASE("session: where the monotonic clock jumps too, checkpoints go on at their interval") {
  if (is_sanitized()) SKIP("sanitizers have a clock_gettime of their own");
  for (const std::string direction : {"forward", "back"}) {
    const trained run{"both clocks jump " + direction, {.environment = {"MEMPROF=1", "MEMPROF_INTERVAL=0.02"}}};
    INFO(run.errors());
    CHECK(run.exit_status() == 0);
    check_ended_capture(run);
    // Those that an hour would have had, 180,000, are left out.
    const memprof::profile profile = run.profile();
    CHECK(profile.checkpoint_count >= 8);
    CHECK(profile.checkpoint_count <= 3'000);
  }
}

TEST_CASE("session: bad settings are one line each, and the training goes on") {
  const auto expect_line = [](const std::vector<std::string>& environment, const std::string& line) {
    const trained run{"return", {.environment = environment}};
    INFO(run.errors());
    CHECK(run.exit_status() == 7);
    CHECK(run.errors().find("memprof: " + line + "\n") != std::string::npos);
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 2);  // and where the profile is
    check_ended_capture(run);
  };
  expect_line({"MEMPROF=1", "MEMPROF_INTERVAL=0"}, "environment: MEMPROF_INTERVAL=0 is ignored; use seconds, more than 0");
  expect_line({"MEMPROF=1", "MEMPROF_INTERVAL=-1"}, "environment: MEMPROF_INTERVAL=-1 is ignored; use seconds, more than 0");
  expect_line({"MEMPROF=1", "MEMPROF_INTERVAL=5s"}, "environment: MEMPROF_INTERVAL=5s is ignored; use seconds, more than 0");
  expect_line({"MEMPROF=1", "MEMPROF_INTERVAL=nan"}, "environment: MEMPROF_INTERVAL=nan is ignored; use seconds, more than 0");
  expect_line({"MEMPROF=1", "MEMPROF_TRACE=maybe"}, "environment: MEMPROF_TRACE=maybe is ignored; use 1 or 0");
  expect_line({"MEMPROF=1", "MEMPROF_NO_DISPATCH=maybe"}, "environment: MEMPROF_NO_DISPATCH=maybe is ignored; use 1 or 0");
  expect_line({"MEMPROF=1", "MEMPROF_DEVICE=gpu-24g"},
              "environment: MEMPROF_DEVICE=gpu-24g is ignored; use the name of a device preset, as gpu-24gb");
  expect_line({"MEMPROF=1", "MEMPROF_OUTPUTDIR=/tmp"},
              "environment: unknown variable MEMPROF_OUTPUTDIR is ignored; did you mean MEMPROF_OUTPUT_DIR?");
  expect_line({"MEMPROF=1", "MEMPROF_INTERVALL=1"},
              "environment: unknown variable MEMPROF_INTERVALL is ignored; did you mean MEMPROF_INTERVAL?");
}

TEST_CASE("session: a directory that cannot be written") {
  const trained run{"return", {.directory = "/dev/null/profiles"}};
  CHECK(run.exit_status() == 7);
  CHECK(run.files().empty());
  CHECK(run.errors().find("memprof: session: cannot write into the directory '/dev/null/profiles': Not a directory") == 0);
  CHECK(run.errors().find("memprof: cannot write the profile") != std::string::npos);
}

TEST_CASE("session: a disk that is full at the end") {
  for (const std::string ending : {"return", "SIGTERM"}) {
    const trained run{ending, {.largest_file = 1000}};
    CHECK(run.exit_status() == (ending == "return" ? 7 : -1));
    CHECK(run.signal() == (ending == "return" ? 0 : SIGTERM));
    CHECK(run.files().empty());
    CHECK(run.errors().find("File too large") != std::string::npos);
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 1);
  }
}

TEST_CASE("session: on a disk that is full from the start no trace file is left, and none is advised") {
  const trained run{"return", {.environment = {"MEMPROF=1", "MEMPROF_TRACE=1"}, .largest_file = 1000}};
  CHECK(run.exit_status() == 7);
  CHECK(run.files().empty());
  INFO(run.errors());
  CHECK(run.errors().find("memprof: trace file '") == 0);
  CHECK(run.errors().find("memprof: cannot write the profile '") != std::string::npos);
  CHECK(run.errors().find("memprof profile") == std::string::npos);
}

TEST_CASE("session: a file sets what the environment does not") {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("train.toml");
  const auto run_with = [&](const std::string& text, std::vector<std::string> environment = {}) {
    std::ofstream{path} << text;
    environment.push_back("MEMPROF_CONFIG=" + path);
    return trained{"return", {.environment = environment}};
  };
  if (!TRAINER_READS_TOML) {
    const trained run = run_with("enabled = true\n");
    CHECK(run.files().empty());
    CHECK(run.errors().find("this program reads no files; include <memprof/record/session_toml.hpp> in it") != std::string::npos);
    return;
  }
  check_ended_capture(run_with("enabled = true\n"));
  check_ended_capture(run_with("batch_size = 32\n[memprof]\nenabled = true\n"));
  CHECK(run_with("enabled = true\ntrace = true\n").files().size() == 2);
  CHECK(run_with("enabled = true\n", {"MEMPROF=0"}).files().empty());
  check_ended_capture(run_with("enabled = true\ntrace = true\n", {"MEMPROF_TRACE=0"}));

  const auto expect_line = [&](const std::string& text, const std::string& line) {
    const trained run = run_with(text, {"MEMPROF=1"});
    INFO(run.errors());
    CHECK(run.exit_status() == 7);
    CHECK(run.errors().find("memprof: '" + path + "'" + line) == 0);
    CHECK(std::count(run.errors().begin(), run.errors().end(), '\n') == 2);
    check_ended_capture(run);
  };
  expect_line("\nintervall = 3\n", ", line 2: unknown key 'intervall' is ignored; did you mean 'interval'?\n");
  expect_line("[memprof]\ntarce = true\n", ", line 2: unknown key 'tarce' is ignored; did you mean 'trace'?\n");
  expect_line("interval = 0\n", ", line 1: interval = 0 is ignored; use seconds, more than 0\n");
  expect_line("interval = [1, 2]\n", ", line 1: 'interval' is not a string, number or boolean, and is ignored\n");
  expect_line("enabled = \n", ", line 1 is ignored: ");
  std::filesystem::remove(path);
  const trained missing{"return", {.environment = {"MEMPROF=1", "MEMPROF_CONFIG=" + path}}};
  CHECK(missing.errors().find("memprof: '" + path + "' is ignored: ") == 0);
  check_ended_capture(missing);
}
