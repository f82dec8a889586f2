#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What NVTX (nvtx3/nvtxDetail/nvtxTypes.h and nvtxExtTypes.h, NVTX 3.0 and later) lets a tool do: types and numbers of its own
/// headers, which need not be there. `tests/cuda/nvtx.cpp` compares them.

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

/// Opaque handles, which the tool makes up.
using domain_handle = const void*;
using string_handle = const void*;

enum class message_type : std::int32_t { unknown = 0, ascii = 1, unicode = 2, registered = 3 };

union message_value {
  const char* ascii;
  const wchar_t* unicode;
  string_handle registered;
};

/// nvtxEventAttributes_t.
struct event_attributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  message_type type;
  message_value message;
};

using function = void (*)();
using function_table = function**;  ///< pointers to the places that the program calls through

/// NvtxExportTableCallbacks: number 1 of the tables that `get_export_table` gives.
struct callback_table {
  std::size_t size;
  int (*functions_of_module)(std::int32_t module, function_table* table, unsigned* count);
};
using get_export_table = const void* (*)(std::uint32_t table);
inline constexpr std::uint32_t callbacks = 1;

inline constexpr std::int32_t core = 1;
inline constexpr unsigned range_start_ex = 4;
inline constexpr unsigned range_start_ascii = 5;
inline constexpr unsigned range_start_wide = 6;
inline constexpr unsigned range_end = 7;
inline constexpr unsigned range_push_ex = 8;
inline constexpr unsigned range_push_ascii = 9;
inline constexpr unsigned range_push_wide = 10;
inline constexpr unsigned range_pop = 11;

inline constexpr std::int32_t core_2 = 5;
inline constexpr unsigned domain_range_start_ex = 2;
inline constexpr unsigned domain_range_end = 3;
inline constexpr unsigned domain_range_push_ex = 4;
inline constexpr unsigned domain_range_pop = 5;
inline constexpr unsigned domain_register_ascii = 10;
inline constexpr unsigned domain_register_wide = 11;
inline constexpr unsigned domain_create_ascii = 12;
inline constexpr unsigned domain_create_wide = 13;

/// NvtxInitializeInjectionNvtxFunc_t: NVTX calls it once, with the first call of the program. Returns 1 if the tool takes the
/// calls.
using initialize_function = int (*)(get_export_table);

// --- extensions: nvToolsExtMem.h, version 1.2 ---

/// nvtxExtModuleSegment_t: where the program finds the functions of an extension.
struct extension_segment {
  std::size_t number;
  std::size_t count;
  std::intptr_t* functions;
};
/// nvtxExtModuleInfo_t.
struct extension_module {
  std::uint16_t nvtx_version;
  std::uint16_t size;
  std::uint16_t module;
  std::uint16_t compatibility;
  std::size_t segment_count;
  extension_segment* segments;
  void (*get_export_function)();
  const void* more;
};
/// NvtxExtInitializeInjectionFunc_t: called once for each extension that the program calls.
using initialize_extension_function = int (*)(extension_module*);

inline constexpr std::uint16_t memory_module = 1;
inline constexpr std::size_t heap_register = 0;
inline constexpr std::size_t heap_unregister = 1;
inline constexpr std::size_t heap_reset = 2;
inline constexpr std::size_t regions_register = 3;
inline constexpr std::size_t regions_resize = 4;
inline constexpr std::size_t regions_unregister = 5;
inline constexpr std::size_t regions_name = 6;

/// NVTX_MEM_TYPE_VIRTUAL_ADDRESS: descriptors are `address_range`s.
inline constexpr std::uint32_t virtual_address = 1;

/// nvtxMemVirtualRangeDesc_t.
struct address_range {
  std::size_t bytes;
  const void* address;
};

using heap_handle = const void*;
using region_handle = const void*;  ///< we give out the region's address, so that a reference is an address either way

/// nvtxMemHeapDesc_t.
struct heap_description {
  std::uint16_t compatibility;
  std::uint16_t size;
  std::uint32_t reserved;
  std::uint32_t usage;
  std::uint32_t type;
  std::size_t range_size;
  const address_range* range;
  std::uint32_t category;
  message_type name_type;
  message_value name;
};

/// nvtxMemRegionsRegisterBatch_t.
struct regions_to_register {
  std::uint16_t compatibility;
  std::uint16_t size;
  std::uint32_t type;
  heap_handle heap;
  std::size_t count;
  std::size_t element_size;
  const void* elements;  ///< `address_range`s, each of `element_size` bytes
  region_handle* handles;
};

/// nvtxMemRegionsResizeBatch_t.
struct regions_to_resize {
  std::uint16_t compatibility;
  std::uint16_t size;
  std::uint32_t type;
  std::size_t count;
  std::size_t element_size;
  const void* elements;
};

/// nvtxMemRegionsUnregisterBatch_t.
struct regions_to_unregister {
  std::uint16_t compatibility;
  std::uint16_t size;
  std::uint32_t reference_type;
  std::size_t count;
  std::size_t element_size;
  const void* elements;  ///< `region_handle`s
};

/// nvtxMemRegionNameDesc_t.
struct region_name {
  std::uint32_t reference_type;
  message_type name_type;
  region_handle region;
  message_value name;
  std::uint32_t category;
  std::uint32_t reserved;
};
/// nvtxMemRegionsNameBatch_t.
struct regions_to_name {
  std::uint16_t compatibility;
  std::uint16_t size;
  std::uint32_t reserved;
  std::size_t count;
  std::size_t element_size;
  const void* elements;  ///< `region_name`s
};

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
