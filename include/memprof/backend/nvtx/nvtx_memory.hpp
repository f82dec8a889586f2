#pragma once

#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/backend/nvtx/nvtx_text.hpp>
#include <memprof/backend/nvtx/region_receiver.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/record/recorder.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// @file
/// NVTX's memory extension: a program says of a block that it is a heap, and which regions of it are in use.

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

[[nodiscard]] inline std::uint64_t number_of(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

/// The heaps that a program has registered. A handle is the heap's number.
class heaps {
 public:
  struct heap {
    address_range range;
    const std::string* name;
  };

  [[nodiscard]] heap_handle add(const heap& registered) noexcept {
    const lock_guard guard{lock_};
    return known_.push_back(registered) ? reinterpret_cast<heap_handle>(known_.size()) : nullptr;
  }
  /// The whole process for handle 0; nothing for one that is unknown.
  [[nodiscard]] heap at(heap_handle handle) noexcept {
    const std::uint64_t number = number_of(handle);
    if (number == 0) return {{std::numeric_limits<std::size_t>::max(), nullptr}, nullptr};
    const lock_guard guard{lock_};
    return number <= known_.size() ? known_[number - 1] : heap{};
  }

 private:
  futex_lock lock_;
  page_array<heap> known_;
};

/// Lives as long as the process.
[[nodiscard]] inline heaps& process_heaps() {
  const recording_suppressor hidden;
  static auto* const made = new heaps;
  return *made;
}

/// Calls `use(receiver)` if there is one.
template <class Use>
void with_receiver(Use use) {
  // Acquire pairs with the release of the backend that sets it.
  if (const region_receiver* const receiver = process_region_receiver.load(std::memory_order_acquire)) use(*receiver);
}

/// Calls `use(element)` with each element of a batch, which may be of a later version: longer.
template <class Element, class Batch, class Use>
void for_each_element(const Batch& batch, Use use) {
  if (batch.elements == nullptr || batch.element_size < sizeof(Element)) return;
  const auto* const first = static_cast<const char*>(batch.elements);
  for (std::size_t index = 0; index != batch.count; ++index)
    use(*reinterpret_cast<const Element*>(first + index * batch.element_size), index);
}

/// Null: there is none.
[[nodiscard]] inline const std::string* kept_name(message_type type, message_value message) noexcept {
  if (type == message_type::unknown || message.registered == nullptr) return nullptr;
  return with_message(type, message, [](std::string_view text) { return process_strings().add(text); });
}

inline heap_handle register_heap(domain_handle, const heap_description* heap) noexcept {
  if (heap == nullptr || heap->type != virtual_address || heap->range == nullptr || heap->range_size < sizeof(address_range))
    return nullptr;
  return process_heaps().add({*heap->range, kept_name(heap->name_type, heap->name)});
}
inline void end_regions_of(domain_handle, heap_handle heap) noexcept {
  const address_range range = process_heaps().at(heap).range;
  with_receiver([&](const region_receiver& receiver) { receiver.end_all(number_of(range.address), range.bytes); });
}

inline void register_regions(domain_handle, const regions_to_register* batch) noexcept {
  if (batch == nullptr || batch->type != virtual_address) return;
  const std::string* const rest = process_heaps().at(batch->heap).name;
  for_each_element<address_range>(*batch, [&](const address_range& region, std::size_t index) {
    if (batch->handles != nullptr) batch->handles[index] = region.address;
    with_receiver([&](const region_receiver& receiver) { receiver.begin(number_of(region.address), region.bytes, rest); });
  });
}
inline void resize_regions(domain_handle, const regions_to_resize* batch) noexcept {
  if (batch == nullptr || batch->type != virtual_address) return;
  for_each_element<address_range>(*batch, [&](const address_range& region, std::size_t) {
    with_receiver([&](const region_receiver& receiver) { receiver.resize(number_of(region.address), region.bytes); });
  });
}
inline void unregister_regions(domain_handle, const regions_to_unregister* batch) noexcept {
  if (batch == nullptr) return;
  for_each_element<region_handle>(*batch, [&](region_handle region, std::size_t) {
    with_receiver([&](const region_receiver& receiver) { receiver.end(number_of(region)); });
  });
}
inline void name_regions(domain_handle, const regions_to_name* batch) noexcept {
  if (batch == nullptr) return;
  for_each_element<region_name>(*batch, [&](const region_name& named, std::size_t) {
    with_receiver(
        [&](const region_receiver& receiver) { receiver.name(number_of(named.region), kept_name(named.name_type, named.name)); });
  });
}

/// InitializeInjectionNvtxExtension.
inline int initialize_extension(extension_module* module) noexcept {
  if (module == nullptr || module->module != memory_module || module->segment_count == 0) return 0;
  const extension_segment& found = *module->segments;
  const auto set = [&](std::size_t id, auto* taken) {
    if (id < found.count) found.functions[id] = reinterpret_cast<std::intptr_t>(taken);
  };
  set(heap_register, register_heap);
  set(heap_unregister, end_regions_of);
  set(heap_reset, end_regions_of);
  set(regions_register, register_regions);
  set(regions_resize, resize_regions);
  set(regions_unregister, unregister_regions);
  set(regions_name, name_regions);
  return 1;
}

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
