#pragma once

/// @file
/// Live bytes as counters of NVTX, which Nsight Systems (2026.3 and later) draws above the kernels. Needs NVTX's headers, 3.2 or
/// later, which come with CUDA's toolkit.

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/backend/live_bytes_listener.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtSemanticsCounters.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// A counter for each space, in the domain "memprof".
class nvtx_live_bytes {
 public:
  void begin() noexcept {
    for (std::atomic<std::int64_t>& each : live_) each.store(0, std::memory_order_relaxed);
    if (domain_ == nullptr) domain_ = nvtxDomainCreateA("memprof");
  }

  void change(space_id space, std::int64_t change) noexcept {
    const std::int64_t live = live_[space.value].fetch_add(change, std::memory_order_relaxed) + change;
    const recording_suppressor hidden;  // a tool may allocate
    std::uint64_t counter = counters_[space.value].load(std::memory_order_relaxed);
    if (counter == unknown) counter = register_counter(space);
    if (counter != none) nvtxCounterSampleInt64(domain_, counter, live);
  }

 private:
  static constexpr std::uint64_t unknown = 0;
  static constexpr std::uint64_t none = ~std::uint64_t{0};  ///< there is no tool

  [[gnu::cold, gnu::noinline]] std::uint64_t register_counter(space_id space) noexcept {
    const lock_guard guard{lock_};
    std::uint64_t counter = counters_[space.value].load(std::memory_order_relaxed);
    if (counter != unknown) return counter;
    std::array<char, 128> name{};
    write_name(space, name);
    nvtxSemanticsCounter_t meaning{};
    meaning.header = {sizeof meaning, NVTX_SEMANTIC_ID_COUNTERS_V1, NVTX_COUNTER_SEMANTIC_VERSION, nullptr};
    meaning.flags =
        NVTX_COUNTER_FLAG_VALUETYPE_ABSOLUTE | NVTX_COUNTER_FLAG_INTERPOLATION_UNTIL_NEXT | NVTX_COUNTER_FLAG_LIMIT_MIN;
    meaning.unit = "B";
    meaning.unitScaleNumerator = meaning.unitScaleDenominator = 1;
    meaning.limitType = NVTX_COUNTER_LIMIT_I64;
    nvtxCounterAttr_t described{};
    described.structSize = sizeof described;
    described.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
    described.name = name.data();
    described.description = "bytes that the program has allocated and not freed";
    described.scopeId = NVTX_SCOPE_CURRENT_SW_PROCESS;
    described.semantics = &meaning.header;
    counter = nvtxCounterRegister(domain_, &described);
    if (counter == NVTX_COUNTER_ID_NONE) counter = none;
    counters_[space.value].store(counter, std::memory_order_relaxed);
    return counter;
  }

  /// "cuda:0 live bytes", cut if it is long.
  static void write_name(space_id space, std::array<char, 128>& name) noexcept {
    constexpr std::string_view suffix = " live bytes";
    const std::string_view known = event_sink{}.text_of(abi_1::process_registry.space_names[space.value]);
    const std::size_t length = known.copy(name.data(), name.size() - suffix.size() - 1);
    suffix.copy(name.data() + length, suffix.size());
  }

  futex_lock lock_;
  nvtxDomainHandle_t domain_ = nullptr;
  std::array<std::atomic<std::int64_t>, any_space + 1> live_{};
  std::array<std::atomic<std::uint64_t>, any_space + 1> counters_{};
};

[[nodiscard]] inline nvtx_live_bytes& process_nvtx_live_bytes() {
  const recording_suppressor hidden;
  static auto* const made = new nvtx_live_bytes;
  return *made;
}

}  // namespace detail

inline namespace enabled {

/// Shows a profiler that knows NVTX's counters the live bytes of each space that `cuda_backend` or `torch_cuda_backend` records
/// in the same capture, at each change: list it before them. Where no such profiler runs, NVTX does nothing. A profiler that has
/// CUPTI's callbacks for itself leaves `cuda_backend` without any (CUPTI 13.2 and later can share them).
class nvtx_counters {
 public:
  static constexpr std::string_view name = "nvtx_counters";

  void attach(extend::event_sink&, const capture_options&) {
    detail::process_nvtx_live_bytes().begin();
    // Release pairs with the acquire in `tell_live_bytes`.
    detail::process_live_bytes_listener.store(
        [](extend::space_id space, std::int64_t change) noexcept { detail::process_nvtx_live_bytes().change(space, change); },
        std::memory_order_release);
  }
  void detach(extend::event_sink&) noexcept { detail::process_live_bytes_listener.store(nullptr, std::memory_order_relaxed); }
  void report_facts(extend::event_sink&) const noexcept {}
};

}  // namespace enabled
#else
inline namespace disabled {

class nvtx_counters {
 public:
  static constexpr std::string_view name = "nvtx_counters";
  void attach(extend::event_sink&, const capture_options&) noexcept {}
  void detach(extend::event_sink&) noexcept {}
  void report_facts(extend::event_sink&) noexcept {}
};

}  // namespace disabled
#endif

static_assert(extend::backend<nvtx_counters>);

}  // namespace memprof::inline MEMPROF_ABI
