#include <memprof/record/session_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof_tests::session_settings {
namespace {

/// What a session would record with that environment.
memprof::capture_options capture_with(const std::vector<const char*>& lines) {
  std::vector<const char*> environment{lines};
  environment.push_back(nullptr);
  memprof::session_options options;
  memprof::detail::set_from_environment(options, environment.data());
  return options.capture;
}

}  // namespace

TEST_CASE("session settings: a run without dispatch, on a device") {
  const memprof::capture_options asked = capture_with({"MEMPROF_NO_DISPATCH=1", "MEMPROF_DEVICE=gpu-24gb"});
  CHECK(asked.mode == memprof::run_mode::no_dispatch);
  CHECK(asked.device.name.view() == "gpu-24gb");
  CHECK(asked.device.tensor_space().capacity == std::int64_t{24'207} << 20);  // of an RTX 4090
}

TEST_CASE("session settings: off and what makes no sense leave a real run without limits") {
  for (const char* const line : {"MEMPROF_NO_DISPATCH=0", "MEMPROF_NO_DISPATCH=", "MEMPROF_NO_DISPATCH=maybe",
                                 "MEMPROF_DEVICE=", "MEMPROF_DEVICE=gpu-24g"}) {
    INFO(line);
    const memprof::capture_options asked = capture_with({line});
    CHECK(asked.mode == memprof::run_mode::normal);
    CHECK(asked.device.space_count == 0);
  }
}

TEST_CASE("session settings: uses of blocks need a trace") {
  for (const bool asked : {false, true}) {
    memprof::session_options options;
    const std::string line = std::string{"MEMPROF_USES="} + (asked ? "1" : "0");
    const char* const environment[] = {line.c_str(), nullptr};
    options = memprof::detail::settled(options, environment);
    CHECK(options.capture.uses == asked);
    CHECK(options.trace == asked);
  }
}

TEST_CASE("session settings: a file says it, too") {
  memprof::session_options options;
  memprof::detail::set_from_file(options, "no_dispatch", "true", "train.toml");
  memprof::detail::set_from_file(options, "device", "wormhole-12gb", "train.toml");
  CHECK(options.capture.mode == memprof::run_mode::no_dispatch);
  CHECK(options.capture.device.tensor_space().name.view() == "dram");
}

}  // namespace memprof_tests::session_settings
