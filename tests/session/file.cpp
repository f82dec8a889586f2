// A session that leaves the JSON of pie's memory profiler, as its document describes it.
#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/session.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/toolkit/format/pie/session_file.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "scratch_folder.hpp"

namespace memprof_tests::session_file {
namespace {

using nlohmann::json;

constexpr double mb = 1 << 20;

/// The files in a folder with that ending.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, const std::string& ending) {
  std::vector<std::filesystem::path> found;
  for (const auto& each : std::filesystem::directory_iterator{folder}) {
    if (each.path().extension() == ending) found.push_back(each.path());
  }
  return found;
}

json read(const std::filesystem::path& path) {
  std::ifstream file{path};
  return json::parse(file);
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

/// Allocates tensors of `megabytes` in all, at addresses of their own.
class device {
 public:
  explicit device(const char* name) : space_{name} {}

  std::uintptr_t allocate(double megabytes) {
    next_ += std::uintptr_t{1} << 32;
    memprof::extend::event_sink{}.allocate(space_, next_, static_cast<std::size_t>(megabytes * mb + 0.5));
    return next_;
  }
  void allocate(double megabytes, int tensors) {
    for (int each = 1; each < tensors; ++each) allocate(1 / mb);  // a byte
    allocate(megabytes - (tensors - 1) / mb);
  }

 private:
  memprof::memory_space space_;
  std::uintptr_t next_ = 0;
};

/// What the document of pie's memory profiler shows: 20 forward passes, of which one takes more and one less.
void serve() {
  device mps{"mps"};
  device cpu{"cpu"};
  {
    const auto scope = memprof::track_operation("load");
    const std::uintptr_t largest = mps.allocate(512);
    memprof::annotate(
        reinterpret_cast<const void*>(largest),
        {.name = "kv", .shape = "[10240, 2, 16, 8, 128]", .dtype = "torch.float16", .requires_grad = memprof::requires_grad::no});
  }
  for (int each = 0; each < 1498; ++each) mps.allocate(0.75);
  mps.allocate(1488 - 1498 * 0.75);
  cpu.allocate(48.5, 23);
  memprof::memory_checkpoint("model_forward_pre");
  for (int call = 0; call < 20; ++call) {
    {
      const auto scope = memprof::track_operation("model_forward");
      mps.allocate(call == 1 ? 325.2 : call == 2 ? 315.8 : 320.5, 15);
    }
    const auto scope = memprof::track_operation("preprocessing");
    cpu.allocate(call == 1 ? 1.2 : 9.3 / 19, 1);
  }
}

/// A session of `serve` in a folder.
void record(const scratch_folder& folder, memprof::session_format format, bool trace) {
  memprof::session_options options{.output_dir = folder.path().string(), .enabled = true, .trace = trace};
  options.format = format;
  memprof::session session{options};
  REQUIRE(session.is_active());
  serve();
}

void check_document(const json& found) {
  CHECK(found["metadata"]["operation_tracking_enabled"] == true);
  CHECK(found["metadata"]["num_snapshots"] == found["snapshots"].size());
  CHECK(found["metadata"]["generated_at"].is_string());

  const json& snapshot = found["snapshots"][0];
  CHECK(snapshot["checkpoint_name"] == "model_forward_pre");
  CHECK(snapshot["timestamp"].is_string());
  CHECK(snapshot["total_mb"] == 2048.5);
  CHECK(snapshot["total_bytes"] == 2048.5 * mb);
  CHECK(snapshot["tensor_count"] == 1523);
  const json& mps = snapshot["device_breakdown"]["mps"];
  CHECK(mps["total_mb"] == 2000.0);
  CHECK(mps["count"] == 1500);
  const json& tensor = mps["tensors"][0];
  CHECK(tensor["size_mb"] == 512.0);
  CHECK(tensor["shape"] == json({10240, 2, 16, 8, 128}));
  CHECK(tensor["dtype"] == "torch.float16");
  CHECK(tensor["device"] == "mps");
  CHECK(tensor["requires_grad"] == false);
  CHECK(tensor["operation"] == "load");

  const json& forward = found["operation_summary"]["model_forward"];
  CHECK(forward["invocation_count"] == 20);
  CHECK(forward["total_memory_delta_mb"].get<double>() == Catch::Approx(6410.0).epsilon(1e-9));
  CHECK(forward["avg_memory_delta_mb"].get<double>() == Catch::Approx(320.5).epsilon(1e-9));
  CHECK(forward["max_memory_delta_mb"].get<double>() == Catch::Approx(325.2).epsilon(1e-8));
  const json& preprocessing = found["operation_summary"]["preprocessing"];
  CHECK(preprocessing["invocation_count"] == 20);
  CHECK(preprocessing["total_memory_delta_mb"].get<double>() == Catch::Approx(10.5).epsilon(1e-6));
  CHECK(preprocessing["avg_memory_delta_mb"].get<double>() == Catch::Approx(0.525).epsilon(1e-6));
  CHECK(preprocessing["max_memory_delta_mb"].get<double>() == Catch::Approx(1.2).epsilon(1e-6));

  const json& first = found["operation_allocations"]["model_forward"][0];
  CHECK(first["memory_delta_mb"] == 320.5);
  CHECK(first["timestamp"].is_string());
}

}  // namespace

TEST_CASE("session: its own file is the JSON of pie's memory profiler, by key and value") {
  const scratch_folder folder;
  record(folder, memprof::session_format::session, false);
  REQUIRE(files_in(folder.path(), ".json").size() == 1);
  CHECK(files_in(folder.path(), ".memtrace").empty());  // nobody asked for it
  const json found = read(files_in(folder.path(), ".json").front());
  check_document(found);
  // Every call, with what was live before and after it.
  const json& calls = found["operation_allocations"]["model_forward"];
  CHECK(calls.size() == 20);
  CHECK(keys_of(calls[0]).contains("tensor_delta"));
  CHECK(calls[0]["tensor_delta"] == 15);
  CHECK(calls[0]["pre_total_mb"] == 2048.5);
  CHECK(calls[0]["post_total_mb"] == 2369.0);
}

TEST_CASE("session: a trace that was asked for stays beside the JSON") {
  const scratch_folder folder;
  record(folder, memprof::session_format::session, true);
  REQUIRE(files_in(folder.path(), ".json").size() == 1);
  REQUIRE(files_in(folder.path(), ".memtrace").size() == 1);
  CHECK(files_in(folder.path(), ".memtrace").front().stem() == files_in(folder.path(), ".json").front().stem());
  check_document(read(files_in(folder.path(), ".json").front()));
}

TEST_CASE("session: a program that a signal ends leaves the JSON, and the trace beside it") {
  const scratch_folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGTERM, SIG_DFL);  // not Catch2's
    memprof::session_options options{.output_dir = folder.path().string(), .enabled = true};
    options.format = memprof::session_format::session;
    const memprof::session session{options};
    serve();
    ::raise(SIGTERM);
    for (;;) ::pause();
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  REQUIRE(files_in(folder.path(), ".json").size() == 1);
  const json found = read(files_in(folder.path(), ".json").front());
  check_document(found);
  REQUIRE(files_in(folder.path(), ".memtrace").size() == 1);
  const std::string trace = files_in(folder.path(), ".memtrace").front().string();
  const json again = json::parse(memprof::session_text_of(memprof::profile_of(std::filesystem::path{trace}), trace));
  CHECK(again["operation_summary"] == found["operation_summary"]);
  CHECK(again["operation_allocations"] == found["operation_allocations"]);
}

TEST_CASE("session: the JSON of a profile alone has the same numbers, and says what it lacks") {
  const scratch_folder folder;
  record(folder, memprof::session_format::profile, false);
  const json profile = read(files_in(folder.path(), ".json").front());
  CHECK(profile["format"] == "memprof-profile");
  const memprof::profile run = memprof::current_profile();
  const json found = json::parse(memprof::session_text_of(run, ""));
  check_document(found);
  CHECK(found["operation_allocations"]["model_forward"].size() == 3);  // the first, the largest and the last
  CHECK_FALSE(found["metadata"]["missing"].empty());
  CHECK(json::parse(memprof::session_text_of(run, folder.file("absent.memtrace"))) == found);
}

TEST_CASE("session: the format comes from outside, too") {
  memprof::session_options options{.enabled = true};
  const char* const environment[] = {"MEMPROF_FORMAT=session", nullptr};
  CHECK(memprof::detail::settled(options, environment).format == memprof::session_format::session);
  const char* const wrong[] = {"MEMPROF_FORMAT=pie", nullptr};
  CHECK(memprof::detail::settled(options, wrong).format == memprof::session_format::profile);
  memprof::detail::set_from_file(options, "format", "session", "train.toml");
  CHECK(options.format == memprof::session_format::session);
}

}  // namespace memprof_tests::session_file
