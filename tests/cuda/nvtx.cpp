// NVTX's own headers as programs use them: its ranges are operations, and its regions are blocks.
#include "stand_in/driver.hpp"

#include <memprof/backend/cuda.hpp>
#include <memprof/backend/nvtx.hpp>
#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/memprof.hpp>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::nvtx {

namespace own = memprof::detail::nvtx;

#define MEMPROF_SAME_FIELD(own_type, own_field, type, field)                  \
  static_assert(offsetof(own::own_type, own_field) == offsetof(type, field)); \
  static_assert(sizeof(own::own_type::own_field) == sizeof(type::field))
#define MEMPROF_SAME_SIZE(own_type, type) static_assert(sizeof(own::own_type) == sizeof(type))

MEMPROF_SAME_SIZE(event_attributes, nvtxEventAttributes_t);
MEMPROF_SAME_FIELD(event_attributes, type, nvtxEventAttributes_t, messageType);
MEMPROF_SAME_FIELD(event_attributes, message, nvtxEventAttributes_t, message);
MEMPROF_SAME_SIZE(callback_table, NvtxExportTableCallbacks);
MEMPROF_SAME_FIELD(callback_table, functions_of_module, NvtxExportTableCallbacks, GetModuleFunctionTable);
MEMPROF_SAME_SIZE(extension_segment, nvtxExtModuleSegment_t);
MEMPROF_SAME_FIELD(extension_segment, functions, nvtxExtModuleSegment_t, functionSlots);
MEMPROF_SAME_SIZE(extension_module, nvtxExtModuleInfo_t);
MEMPROF_SAME_FIELD(extension_module, module, nvtxExtModuleInfo_t, moduleId);
MEMPROF_SAME_FIELD(extension_module, segments, nvtxExtModuleInfo_t, segments);
MEMPROF_SAME_SIZE(address_range, nvtxMemVirtualRangeDesc_t);
MEMPROF_SAME_FIELD(address_range, address, nvtxMemVirtualRangeDesc_t, ptr);
MEMPROF_SAME_SIZE(heap_description, nvtxMemHeapDesc_t);
MEMPROF_SAME_FIELD(heap_description, range, nvtxMemHeapDesc_t, typeSpecificDesc);
MEMPROF_SAME_FIELD(heap_description, name, nvtxMemHeapDesc_t, message);
MEMPROF_SAME_SIZE(regions_to_register, nvtxMemRegionsRegisterBatch_t);
MEMPROF_SAME_FIELD(regions_to_register, elements, nvtxMemRegionsRegisterBatch_t, regionDescElements);
MEMPROF_SAME_FIELD(regions_to_register, handles, nvtxMemRegionsRegisterBatch_t, regionHandleElementsOut);
MEMPROF_SAME_SIZE(regions_to_resize, nvtxMemRegionsResizeBatch_t);
MEMPROF_SAME_FIELD(regions_to_resize, elements, nvtxMemRegionsResizeBatch_t, regionDescElements);
MEMPROF_SAME_SIZE(regions_to_unregister, nvtxMemRegionsUnregisterBatch_t);
MEMPROF_SAME_FIELD(regions_to_unregister, elements, nvtxMemRegionsUnregisterBatch_t, refElements);
MEMPROF_SAME_SIZE(region_name, nvtxMemRegionNameDesc_t);
MEMPROF_SAME_FIELD(region_name, region, nvtxMemRegionNameDesc_t, region);
MEMPROF_SAME_FIELD(region_name, name, nvtxMemRegionNameDesc_t, name);
MEMPROF_SAME_FIELD(regions_to_name, elements, nvtxMemRegionsNameBatch_t, regionElements);
static_assert(sizeof(own::regions_to_name) <= sizeof(nvtxMemRegionsNameBatch_t));
static_assert(own::range_push_ex == NVTX_CBID_CORE_RangePushEx && own::range_pop == NVTX_CBID_CORE_RangePop);
static_assert(own::range_push_ascii == NVTX_CBID_CORE_RangePushA && own::range_push_wide == NVTX_CBID_CORE_RangePushW);
static_assert(own::range_start_ex == NVTX_CBID_CORE_RangeStartEx && own::range_end == NVTX_CBID_CORE_RangeEnd);
static_assert(own::range_start_ascii == NVTX_CBID_CORE_RangeStartA && own::range_start_wide == NVTX_CBID_CORE_RangeStartW);
static_assert(own::domain_range_start_ex == NVTX_CBID_CORE2_DomainRangeStartEx);
static_assert(own::domain_range_end == NVTX_CBID_CORE2_DomainRangeEnd);
static_assert(own::domain_range_push_ex == NVTX_CBID_CORE2_DomainRangePushEx);
static_assert(own::domain_range_pop == NVTX_CBID_CORE2_DomainRangePop);
static_assert(own::domain_register_ascii == NVTX_CBID_CORE2_DomainRegisterStringA);
static_assert(own::domain_register_wide == NVTX_CBID_CORE2_DomainRegisterStringW);
static_assert(own::domain_create_ascii == NVTX_CBID_CORE2_DomainCreateA);
static_assert(own::domain_create_wide == NVTX_CBID_CORE2_DomainCreateW);
static_assert(own::core == NVTX_CB_MODULE_CORE && own::core_2 == NVTX_CB_MODULE_CORE2);
static_assert(own::callbacks == NVTX_ETID_CALLBACKS && own::memory_module == NVTX_EXT_MODULEID_MEM);
static_assert(own::heap_register == NVTX3EXT_CBID_nvtxMemHeapRegister);
static_assert(own::heap_unregister == NVTX3EXT_CBID_nvtxMemHeapUnregister);
static_assert(own::heap_reset == NVTX3EXT_CBID_nvtxMemHeapReset);
static_assert(own::regions_register == NVTX3EXT_CBID_nvtxMemRegionsRegister);
static_assert(own::regions_resize == NVTX3EXT_CBID_nvtxMemRegionsResize);
static_assert(own::regions_unregister == NVTX3EXT_CBID_nvtxMemRegionsUnregister);
static_assert(own::regions_name == NVTX3EXT_CBID_nvtxMemRegionsName);
static_assert(own::virtual_address == NVTX_MEM_TYPE_VIRTUAL_ADDRESS);

namespace {

[[nodiscard]] nvtxEventAttributes_t attributes_of(const char* message) {
  nvtxEventAttributes_t made{};
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = NVTX_MESSAGE_TYPE_ASCII;
  made.message.ascii = message;
  return made;
}

/// The paths of all operations.
[[nodiscard]] std::vector<std::string> paths_of(const memprof::profile& profile) {
  std::vector<std::string> paths;
  for (const memprof::operation_profile& each : profile.operations) paths.emplace_back(each.path);
  return paths;
}

}  // namespace

TEST_CASE("nvtx: ranges are operations, and what is allocated in them is theirs") {
  const memprof::memory_space arena{"arena"};
  const memprof::extend::event_sink sink;
  CHECK(nvtxRangePushA("before") == 0);
  auto capture = memprof::begin_capture<memprof::nvtx_backend>();
  CHECK(nvtxRangePushA("step") == 1);
  CHECK(nvtxRangePushW(L"r\u00fcckw\u00e4rts \U0001F600") == 2);
  sink.allocate(arena, 0x1000, 100);
  CHECK(nvtxRangePop() == 2);
  {
    const nvtxEventAttributes_t attributes = attributes_of("update");
    CHECK(nvtxRangePushEx(&attributes) == 2);
    auto inner = memprof::track_operation<"adam">();
    sink.allocate(arena, 0x2000, 10);
  }
  CHECK(nvtxRangePop() == 2);
  CHECK(nvtxRangePop() == 1);
  CHECK(nvtxRangePop() == 0);  // of before the capture
  CHECK(nvtxRangePop() == -1);
  sink.allocate(arena, 0x3000, 1);
  capture.end();
  CHECK(nvtxRangePushA("after") == 0);
  const memprof::profile profile = capture.profile();
  CHECK(paths_of(profile) ==
        std::vector<std::string>{"step", "step/r\u00fcckw\u00e4rts \U0001F600", "step/update", "step/update/adam"});
  CHECK(profile.find_operation("step/r\u00fcckw\u00e4rts \U0001F600")->usage[0].total_delta == 100);
  CHECK(profile.find_operation("step/update/adam")->usage[0].total_delta == 10);
  CHECK(profile.find_operation("step")->usage[0].total_delta == 110);
  CHECK(profile.exact);
}

TEST_CASE("nvtx: domains have stacks of their own, registered strings are names, and a name may be missing") {
  nvtxDomainHandle_t const first = nvtxDomainCreateA("first");
  nvtxDomainHandle_t const second = nvtxDomainCreateW(L"second");
  CHECK(first != second);
  nvtxEventAttributes_t outer = attributes_of(nullptr);
  outer.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  outer.message.registered = nvtxDomainRegisterStringA(first, "outer");
  CHECK(outer.message.registered == nvtxDomainRegisterStringW(first, L"outer"));
  const nvtxEventAttributes_t inner = attributes_of("inner");
  const nvtxEventAttributes_t unnamed = attributes_of(nullptr);
  auto capture = memprof::begin_capture<memprof::nvtx_backend>();
  CHECK(nvtxDomainRangePushEx(first, &outer) == 0);
  CHECK(nvtxDomainRangePushEx(second, &inner) == 0);
  CHECK(nvtxDomainRangePop(first) == 0);  // while that of the other domain goes on
  CHECK(nvtxDomainRangePop(first) == -1);
  CHECK(nvtxDomainRangePushEx(first, &unnamed) == 0);
  CHECK(nvtxDomainRangePop(second) == 0);
  CHECK(nvtxDomainRangePop(first) == 0);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(paths_of(profile) == std::vector<std::string>{"outer", "outer/inner", "outer/inner/(unnamed)"});
  CHECK(profile.anomalies.unbalanced_scopes == 0);
}

TEST_CASE("nvtx: a range by start and end may end on another thread, and belongs to that which started it") {
  const memprof::memory_space arena{"arena"};
  const memprof::extend::event_sink sink;
  auto capture = memprof::begin_capture<memprof::nvtx_backend>();
  const nvtxRangeId_t range = nvtxRangeStartA("load");
  const nvtxEventAttributes_t attributes = attributes_of("decode");
  const nvtxRangeId_t other = nvtxDomainRangeStartEx(nullptr, &attributes);
  CHECK(range != other);
  sink.allocate(arena, 0x1000, 100);
  std::thread{[&] {
    sink.allocate(arena, 0x2000, 10);
    nvtxDomainRangeEnd(nullptr, other);
    nvtxRangeEnd(range);
    nvtxRangeEnd(range);
    nvtxRangeEnd(12345);
  }}.join();
  sink.allocate(arena, 0x3000, 1);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(paths_of(profile) == std::vector<std::string>{"load", "load/decode"});
  CHECK(profile.find_operation("load")->usage[0].total_delta == 100);
  CHECK(profile.anomalies.unbalanced_scopes == 0);
}

TEST_CASE("nvtx: ranges of many levels and threads, and those that a capture's end cuts, leave nothing open") {
  auto capture = memprof::begin_capture<memprof::nvtx_backend>();
  nvtxInitialize(nullptr);  // threads that are NVTX's first callers race in its own headers
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        for (int level = 0; level < 200; ++level) (void)nvtxRangePushA("level");
        for (int level = 0; level < 200; ++level) (void)nvtxRangePop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  (void)nvtxRangePushA("cut");
  capture.end();
  auto next = memprof::begin_capture<memprof::nvtx_backend>();
  CHECK(nvtxRangePop() == 0);
  (void)nvtxRangePushA("whole");
  (void)nvtxRangePop();
  next.end();
  CHECK(paths_of(next.profile()) == std::vector<std::string>{"whole"});
  CHECK(next.profile().exact);
}

TEST_CASE("nvtx: without its backend in the capture, ranges are nothing") {
  auto capture = memprof::begin_capture();
  CHECK(nvtxRangePushA("step") == 0);
  CHECK(nvtxRangePop() == 0);
  capture.end();
  CHECK(capture.profile().operations.empty());
}

namespace {

constexpr int success = 0;

/// A program's own allocator over one block of CUDA's.
class arena {
 public:
  explicit arena(std::size_t bytes) {
    void* context = nullptr;
    REQUIRE(cuInit(0) == success);
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == success);
    REQUIRE(cuCtxSetCurrent(context) == success);
    REQUIRE(cuMemAlloc_v2(&block_, bytes) == success);
    const nvtxMemVirtualRangeDesc_t range{bytes, at(0)};
    nvtxMemHeapDesc_t described{};
    described.extCompatID = NVTX_EXT_COMPATID_MEM;
    described.structSize = sizeof described;
    described.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    described.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    described.typeSpecificDescSize = sizeof range;
    described.typeSpecificDesc = &range;
    described.messageType = NVTX_MESSAGE_TYPE_ASCII;
    described.message.ascii = "arena";
    heap_ = nvtxMemHeapRegister(nullptr, &described);
    REQUIRE(heap_ != nullptr);
  }

  [[nodiscard]] const void* at(std::size_t offset) const { return reinterpret_cast<const void*>(block_ + offset); }
  [[nodiscard]] nvtxMemHeapHandle_t heap() const { return heap_; }

  template <std::size_t Count>
  void take(const std::array<std::pair<std::size_t, std::size_t>, Count>& offsets_and_bytes) {
    std::array<nvtxMemVirtualRangeDesc_t, Count> ranges;
    std::array<nvtxMemRegionHandle_t, Count> handles;
    for (std::size_t index = 0; index < Count; ++index)
      ranges[index] = {offsets_and_bytes[index].second, at(offsets_and_bytes[index].first)};
    const nvtxMemRegionsRegisterBatch_t batch{
        NVTX_EXT_COMPATID_MEM, sizeof batch,  NVTX_MEM_TYPE_VIRTUAL_ADDRESS, heap_, Count, sizeof ranges[0],
        ranges.data(),         handles.data()};
    nvtxMemRegionsRegister(nullptr, &batch);
    for (std::size_t index = 0; index < Count; ++index) CHECK(handles[index] != nullptr);
  }
  void name(std::size_t offset, const char* name) {
    nvtxMemRegionNameDesc_t described{NVTX_MEM_REGION_REF_TYPE_POINTER, NVTX_MESSAGE_TYPE_ASCII, {at(offset)}, {name}, 0, 0};
    const nvtxMemRegionsNameBatch_t batch{NVTX_EXT_COMPATID_MEM, sizeof batch, 0, 1, sizeof described, &described, 0};
    nvtxMemRegionsName(nullptr, &batch);
  }
  void resize(std::size_t offset, std::size_t bytes) {
    const nvtxMemVirtualRangeDesc_t range{bytes, at(offset)};
    const nvtxMemRegionsResizeBatch_t batch{NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_TYPE_VIRTUAL_ADDRESS, 1,
                                            sizeof range,          &range};
    nvtxMemRegionsResize(nullptr, &batch);
  }
  void give_back(std::size_t offset) {
    const nvtxMemRegionRef_t region{at(offset)};
    const nvtxMemRegionsUnregisterBatch_t batch{NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_REGION_REF_TYPE_POINTER, 1,
                                                sizeof region,         &region};
    nvtxMemRegionsUnregister(nullptr, &batch);
  }
  void free() { REQUIRE(cuMemFree_v2(block_) == success); }

 private:
  CUdeviceptr block_ = 0;
  nvtxMemHeapHandle_t heap_ = nullptr;
};

using named_bytes = std::vector<std::pair<std::string, std::int64_t>>;
/// The largest blocks at the peak.
[[nodiscard]] named_bytes blocks_of(const memprof::profile& profile) {
  named_bytes found;
  for (const memprof::live_block& each : profile.space("cuda:0").live_at_peak.largest_blocks)
    found.emplace_back(each.name, each.bytes);
  return found;
}

}  // namespace

TEST_CASE("nvtx: regions of a heap are blocks with their names, and what is left of it has the heap's") {
  auto capture = memprof::begin_capture<memprof::cuda_backend, memprof::nvtx_backend>();
  arena memory{1000};
  memory.take<2>({{{0, 100}, {500, 300}}});
  memory.name(0, "q");
  memory.name(500, "k");
  memory.name(7, "no region");
  CHECK(capture.profile().space("cuda:0").cumulative_peak == 1000);
  CUdeviceptr other = 0;
  REQUIRE(cuMemAlloc_v2(&other, 1) == success);  // a new peak
  CHECK(blocks_of(capture.profile()) == named_bytes{{"arena", 400}, {"k", 300}, {"arena", 200}, {"q", 100}, {"", 1}});
  memory.resize(0, 450);
  CHECK(capture.profile().space("cuda:0").cumulative_current == 1001);
  memory.give_back(500);
  REQUIRE(cuMemAlloc_v2(&other, 2) == success);
  CHECK(blocks_of(capture.profile()) == named_bytes{{"arena", 550}, {"q", 450}, {"", 2}, {"", 1}});
  nvtxMemHeapReset(nullptr, memory.heap());
  memory.take<1>({{{0, 1000}}});
  nvtxMemHeapUnregister(nullptr, memory.heap());
  memory.free();
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 3);
  CHECK(profile.space("cuda:0").cumulative_peak == 1003);
  CHECK(profile.space("cuda:0").anomalies == memprof::space_anomalies{});
  CHECK(profile.exact);
}

TEST_CASE("nvtx: regions outside a capture, and of memory that is not CUDA's, change nothing") {
  std::array<char, 64> buffer{};
  arena early{1000};
  early.take<1>({{{0, 100}}});
  auto capture = memprof::begin_capture<memprof::cuda_backend, memprof::nvtx_backend>();
  early.take<1>({{{200, 100}}});
  const nvtxMemVirtualRangeDesc_t range{buffer.size(), buffer.data()};
  const nvtxMemRegionsRegisterBatch_t batch{NVTX_EXT_COMPATID_MEM,
                                            sizeof batch,
                                            NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                            NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE,
                                            1,
                                            sizeof range,
                                            &range,
                                            nullptr};
  nvtxMemRegionsRegister(nullptr, &batch);
  early.give_back(200);
  nvtxMemHeapReset(nullptr, NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE);
  capture.end();
  const memprof::profile profile = capture.profile();
  CHECK(profile.find_space("cuda:0") == nullptr);
  CHECK(profile.exact);
}

TEST_CASE("nvtx: parts of a block can be said by memprof's own calls, too") {
  arena none{8};  // of before the capture
  auto capture = memprof::begin_capture<memprof::cuda_backend>();
  arena memory{1000};
  memprof::begin_cuda_part(memory.at(10), 90, {.name = "cache", .category = memprof::category::activation});
  memprof::begin_cuda_part(none.at(0), 8, {.name = "unknown"});
  CUdeviceptr other = 0;
  REQUIRE(cuMemAlloc_v2(&other, 1) == success);  // a new peak
  CHECK(blocks_of(capture.profile()) ==
        named_bytes{{"rest of the block", 900}, {"cache", 90}, {"rest of the block", 10}, {"", 1}});
  memprof::end_cuda_part(memory.at(10));
  memprof::end_cuda_part(memory.at(10));
  capture.end();
  memprof::begin_cuda_part(memory.at(10), 90);
  const memprof::profile profile = capture.profile();
  CHECK(profile.space("cuda:0").cumulative_current == 1001);
  CHECK(profile.space("cuda:0").anomalies == memprof::space_anomalies{});
}

}  // namespace memprof_tests::nvtx
