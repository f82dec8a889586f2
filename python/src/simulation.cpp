#include "simulation.hpp"

#include "core.hpp"
#include "torch_library.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memprof/backend/torch/device_allocator.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/device_json.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/request_places.hpp>
#include <memprof/toolkit/analysis/simulated_caching_allocator.hpp>
#include <memprof/trace/device_description.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../memprof/torch/backend.h"

namespace memprof_python {
namespace {

using namespace nb::literals;

/// A CUDA device that a description has: its capacity in bytes, 0 if it has no limit.
[[nodiscard]] std::optional<std::int64_t> cuda_capacity(const std::string& device) {
  const memprof::device_description found = device_named(device);
  for (std::size_t index = 0; index < found.space_count; ++index) {
    if (found.spaces[index].name.view().starts_with("cuda")) return found.spaces[index].capacity;
  }
  return found.name.view().starts_with("cuda") ? std::optional<std::int64_t>{0} : std::nullopt;
}

/// Never destroyed: tensors may outlive the capture.
[[nodiscard]] memprof::simulated_caching_allocator& claimed_device() {
  static auto* const device = new memprof::simulated_caching_allocator;
  return *device;
}

/// What the library that simulates calls of it.
[[nodiscard]] const memprof_torch_allocator* functions_of_claimed_device() {
  static const memprof::detail::device_allocator functions = memprof::detail::recorded_device(claimed_device());
  static const memprof_torch_allocator in_c{functions.self,   functions.has_room,    functions.allocate, functions.deallocate,
                                            functions.stream, functions.try_to_wait, functions.add_work};
  return &in_c;
}

using pool_handle = memprof::simulated_caching_allocator::pool_handle;

/// The run of mapped blocks that begins with `block`, which becomes what follows it.
[[nodiscard]] nb::dict segment_at(const memprof::cached_block*& block, pool_handle pool) {
  nb::dict segment;
  segment["device"] = 0;
  segment["address"] = block->address;
  segment["stream"] = block->stream;
  segment["segment_type"] = block->pool->is_small() ? "small" : "large";
  segment["segment_pool_id"] = nb::make_tuple(pool.first, pool.second);
  segment["is_expandable"] = block->is_expandable();
  segment["frames"] = nb::list{};
  std::int64_t total = 0;
  std::int64_t allocated = 0;
  std::int64_t active = 0;
  std::int64_t requested = 0;
  nb::list blocks;
  for (; block != nullptr && block->is_mapped; block = block->next) {
    nb::dict row;
    row["address"] = block->address;
    row["size"] = block->bytes;
    row["requested_size"] = block->requested;
    row["state"] = block->is_allocated ? "active_allocated" : block->is_active() ? "active_pending_free" : "inactive";
    row["frames"] = nb::list{};
    blocks.append(row);
    total += block->bytes;
    allocated += block->is_allocated ? block->bytes : 0;
    active += block->is_active() ? block->bytes : 0;
    requested += block->requested;
  }
  segment["total_size"] = total;
  segment["allocated_size"] = allocated;
  segment["active_size"] = active;
  segment["requested_size"] = requested;
  segment["blocks"] = blocks;
  return segment;
}

/// PyTorch's names.
[[nodiscard]] std::map<std::string, std::int64_t> claimed_device_stats() {
  const memprof::simulated_caching_allocator::statistics stats = claimed_device().stats();
  std::map<std::string, std::int64_t> found;
  const auto add = [&](const std::string& name, const memprof::allocator_stat& stat) {
    found[name + ".current"] = stat.current;
    found[name + ".peak"] = stat.peak;
    found[name + ".allocated"] = stat.allocated;
    found[name + ".freed"] = stat.freed;
  };
  const auto add_all = [&](const std::string& pool, const memprof::caching_allocator_stats& of_pool) {
    add("allocation." + pool, of_pool.allocation);
    add("segment." + pool, of_pool.segment);
    add("requested_bytes." + pool, of_pool.requested_bytes);
    add("allocated_bytes." + pool, of_pool.allocated_bytes);
    add("active_bytes." + pool, of_pool.active_bytes);
    add("reserved_bytes." + pool, of_pool.reserved_bytes);
    add("inactive_split_bytes." + pool, of_pool.inactive_split_bytes);
  };
  add_all("all", stats.all);
  add_all("large_pool", stats.large_pool);
  add_all("small_pool", stats.small_pool);
  found["num_alloc_retries"] = stats.all.num_alloc_retries;
  found["num_ooms"] = stats.all.num_ooms;
  found["num_device_alloc"] = stats.all.num_device_alloc;
  found["num_device_free"] = stats.all.num_device_free;
  return found;
}

/// The segments as `torch.cuda.memory_snapshot` has them, of all pools or of one.
[[nodiscard]] nb::list claimed_device_segments() {
  nb::list segments;
  claimed_device().for_each_segment([&](const memprof::cached_block& first, pool_handle pool) {
    const memprof::cached_block* block = &first;
    while (block != nullptr) {
      for (; block != nullptr && !block->is_mapped; block = block->next) {
      }
      if (block != nullptr) segments.append(segment_at(block, pool));
    }
  });
  return segments;
}

/// The calls of PyTorch's allocator, by its names. None raises: Python's side knows PyTorch's words.
void bind_pools(nb::module_& module) {
  using places = memprof::detail::request_places;
  using model = memprof::caching_allocator;
  module.def("_claimed_device_segments", claimed_device_segments,
             nb::sig("def _claimed_device_segments() -> list[dict[str, object]]"));
  module.def("_use_claimed_stream", [](std::uint64_t stream) { claimed_device().use_stream(stream); });
  module.def("_retain_claimed_pool", [](pool_handle pool, bool whole) {
    return claimed_device().change_places([&](places& all, model& of) { return all.retain(of, pool, whole); });
  });
  module.def("_release_claimed_pool", [](pool_handle pool) {
    return claimed_device().change_places([&](places& all, model& of) { return all.release(of, pool); });
  });
  module.def("_empty_claimed_pool", [](pool_handle pool) { claimed_device().empty_pool(pool); });
  module.def("_claimed_pool_users", [](pool_handle pool) {
    return claimed_device().change_places([&](places& all, model&) { return all.users(pool); });
  });
  module.def("_is_claimed_pool_used", [](pool_handle pool) {
    return claimed_device().change_places([&](places& all, model&) { return all.is_used(pool); });
  });
  module.def("_begin_claimed_use",
             [](pool_handle pool) { claimed_device().change_places([&](places& all, model&) { all.begin_use(pool); }); });
  module.def("_begin_claimed_capture", [](pool_handle pool, std::uint64_t stream) {
    return claimed_device().change_places([&](places& all, model&) { return all.begin_capture(pool, stream); });
  });
  module.def("_end_claimed_use", [](pool_handle pool) {
    return claimed_device().change_places([&](places& all, model&) { return all.end_use(pool); });
  });
  module.def("_claimed_capture_of", [](std::uint64_t stream) {
    return claimed_device().change_places([&](places& all, model&) { return all.capture_of(stream); });
  });
  module.def("_mark_claimed_stream", [](std::uint64_t stream) {
    return claimed_device().change_places([&](places& all, model&) { return all.mark(stream); });
  });
  module.def("_join_claimed_capture", [](std::uint64_t stream, std::uint64_t capture, std::uint64_t mark) {
    claimed_device().change_places([&](places& all, model&) { all.join(stream, capture, mark); });
  });
  module.def("_is_claimed_capture_joined", [](std::uint64_t capture) {
    return claimed_device().change_places([&](places& all, model&) { return all.is_joined(capture); });
  });
  module.def("_fail_claimed_capture",
             [](std::uint64_t capture) { claimed_device().change_places([&](places& all, model&) { all.fail(capture); }); });
  module.def("_has_claimed_capture_failed", [](std::uint64_t capture) {
    return claimed_device().change_places([&](places& all, model&) { return all.has_failed(capture); });
  });
  module.def(
      "_fail_claimed_captures",
      [] {
        return claimed_device().change_places([&](places& all, model&) {
          const bool are_any = all.are_captured();
          all.fail_all();
          return are_any;
        });
      },
      "Whether there were any.");
  module.def("_clear_claimed_workspaces", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->clear_workspaces();
  });
}

}  // namespace

memprof::device_description device_named(const std::string& name) {
  if (name.empty()) return {};
  if (name != "cuda") return memprof::find_device(name);
  memprof::device_description device;
  device.name = std::string_view{name};
  return device;
}

// Without the library that simulates, nothing happens.
void bind_simulation(nb::module_& module) {
  module.def("_cuda_capacity", cuda_capacity, "device"_a);
  module.def("_enter_real_scope", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->enter_real_scope();
  });
  module.def("_leave_real_scope", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->leave_real_scope();
  });
  module.def("_join_simulation", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->join();
  });
  module.def("_execute_in_this_process", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->execute_in_this_process();
  });
  module.def(
      "_read_memory",
      [](std::uintptr_t tensor, const char* method) {
        const auto* const simulation = torch_library::simulation();
        char reason[1024] = "";
        if (simulation == nullptr || simulation->read_memory(reinterpret_cast<void*>(tensor), method, reason, sizeof reason))
          return;
        throw std::runtime_error(reason);  // a RuntimeError, as torch's own
      },
      "tensor"_a, "method"_a, "Call before a method of a tensor (`Tensor._cdata`) reads its memory.");
  module.def(
      "_resize_storage",
      [](std::uintptr_t storage, std::int64_t bytes) {
        const auto* const simulation = torch_library::simulation();
        char reason[1024] = "";
        if (simulation == nullptr || simulation->resize_storage(reinterpret_cast<void*>(storage), bytes, reason, sizeof reason))
          return;
        throw std::runtime_error(reason);
      },
      "storage"_a, "bytes"_a, "`UntypedStorage.resize_` of a storage (`UntypedStorage._cdata`) of simulated tensors.");
  module.def(
      "_knowledge_of",
      [](std::uintptr_t tensor) {
        const auto* const simulation = torch_library::simulation();
        if (simulation == nullptr) return 0;
        return static_cast<int>(simulation->knowledge_of(reinterpret_cast<void*>(tensor)));
      },
      "tensor"_a,
      "What a read of a tensor (`Tensor._cdata`) gives: 0: what the program computed; 1: a number unknown to the "
      "simulation; 2: one drawn between 0 and 1.");
  module.def("_begin_print", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->begin_print();
  });
  module.def("_end_print", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->end_print();
  });
  module.def(
      "_list_decision",
      [](const char* decision) {
        if (const auto* const simulation = torch_library::simulation()) simulation->list_decision(decision);
      },
      "decision"_a);
  module.def(
      "_set_read_limit",
      [](std::int64_t reads) {
        if (reads < 1) memprof::detail::raise("set_read_limit: " + std::to_string(reads) + " must be at least 1");
        if (const auto* const simulation = torch_library::simulation()) simulation->set_read_limit(reads);
      },
      "reads"_a);
  module.def(
      "_begin_claimed_device",
      [](std::int64_t capacity, const std::string& settings, bool descending_addresses) {
        const auto* const simulation = torch_library::simulation();
        if (simulation == nullptr) return;
        memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(settings);
        options.capacity = capacity;
        options.descending_addresses = descending_addresses;
        claimed_device().restart(options);
        simulation->use_allocator(functions_of_claimed_device());
      },
      "capacity"_a, "settings"_a, "descending_addresses"_a,
      "Has a model of PyTorch's allocator follow the claimed device from now on: with a capacity, in bytes, as on a device that "
      "is full "
      "then; 0: without a limit. `settings` is a value of PYTORCH_CUDA_ALLOC_CONF.");
  module.def("_end_claimed_device", [] {
    if (const auto* const simulation = torch_library::simulation()) simulation->use_allocator(nullptr);
  });
  module.def("_claimed_device_stats", claimed_device_stats, "`torch.cuda.memory_stats()` of the claimed device.");
  module.def("_reset_claimed_device_peaks", [] { claimed_device().reset_peak_stats(); });
  module.def("_reset_claimed_device_sums", [] { claimed_device().reset_accumulated_stats(); });
  module.def("_set_claimed_memory_fraction", [](double fraction) { claimed_device().set_memory_fraction(fraction); });
  module.def("_claimed_memory_fraction", [] { return claimed_device().memory_fraction(); });
  module.def("_empty_claimed_device_cache", [] { claimed_device().empty_cache(); });
  bind_pools(module);
}

}  // namespace memprof_python
