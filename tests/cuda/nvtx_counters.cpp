// Live bytes as counters of NVTX, as a profiler gets them: a tool that this program has linked in.
#include "driver_calls.hpp"

#include <memprof/backend/nvtx_counters.hpp>
#include <memprof/memprof.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace memprof_tests::nvtx_counters {

namespace {

struct registered {
  std::string name;
  std::string unit;
  std::uint64_t flags;
};
std::vector<registered> counters;
std::vector<std::pair<std::uint64_t, std::int64_t>> samples;

std::uint64_t register_counter(nvtxDomainHandle_t, const nvtxCounterAttr_t* described) {
  const auto& meaning = *reinterpret_cast<const nvtxSemanticsCounter_t*>(described->semantics);
  counters.push_back({described->name, meaning.unit, meaning.flags});
  return NVTX_COUNTER_ID_DYNAMIC_START + counters.size();
}
void sample(nvtxDomainHandle_t, std::uint64_t counter, std::int64_t value) {
  samples.emplace_back(counter - NVTX_COUNTER_ID_DYNAMIC_START, value);
  std::free(std::malloc(100));  // as a tool may
}

int initialize(NvtxGetExportTableFunc_t) { return 1; }
int initialize_extension(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_COUNTERS_MODULEID) return 0;
  module->segments->functionSlots[NVTX3EXT_CBID_nvtxCounterRegister] = reinterpret_cast<std::intptr_t>(register_counter);
  module->segments->functionSlots[NVTX3EXT_CBID_nvtxCounterSampleInt64] = reinterpret_cast<std::intptr_t>(sample);
  return 1;
}

/// Before the first call of NVTX.
const bool is_injected = [] {
  InitializeInjectionNvtx2_fnptr = initialize;
  InitializeInjectionNvtxExtension_fnptr = initialize_extension;
  return true;
}();

}  // namespace

TEST_CASE("nvtx counters: a profiler gets the live bytes of each space at each change") {
  REQUIRE(is_injected);
  constexpr std::uint64_t a = 0x7f0000000000;
  constexpr std::uint64_t b = 0x7f0000100000;
  cuda::program calls;
  calls.alloc(cuda::driver_call::alloc, b, 5);
  CHECK(samples.empty());
  calls.free(b);
  for (int times = 0; times < 2; ++times) {
    samples.clear();
    calls.events.clear(cuda::two_devices());
    auto capture = memprof::begin_capture<memprof::nvtx_counters>();
    calls.alloc(cuda::driver_call::alloc, a, 1000);
    calls.alloc(cuda::driver_call::alloc_host, b, 20);
    calls.alloc(cuda::driver_call::alloc, b + 512, 300);
    calls.free(a, cuda::driver_call::free, cuda::invalid_value);  // and is undone
    calls.free(a);
    capture.end();
    calls.free(b + 512);
    CHECK(capture.profile().space("cuda:0").cumulative_current == 300);
    CHECK(samples ==
          std::vector<std::pair<std::uint64_t, std::int64_t>>{{1, 1000}, {2, 20}, {1, 1300}, {1, 300}, {1, 1300}, {1, 300}});
  }
  REQUIRE(counters.size() == 2);
  CHECK(counters[0].name == "cuda:0 live bytes");
  CHECK(counters[1].name == "pinned live bytes");
  CHECK(counters[0].unit == "B");
  CHECK((counters[0].flags & NVTX_COUNTER_FLAG_VALUETYPE_ABSOLUTE) != 0);
}

}  // namespace memprof_tests::nvtx_counters
