#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/trace/device_description.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The devices known to `device_preset`.
inline constexpr std::array<std::string_view, 6> device_preset_names{"wormhole-12gb", "blackhole-32gb", "gpu-24gb",
                                                                     "gpu-40gb",      "gpu-80gb",       "gpu-141gb"};

namespace detail {

/// Tensors in tiles in banked DRAM; also the cores' own L1, with circular buffers, and two reserved regions.
[[nodiscard]] inline device_description tiled_device(std::string_view name, std::int64_t banks, std::int64_t bytes_per_bank,
                                                     std::int64_t dram_alignment, std::uint8_t columns, std::uint8_t rows,
                                                     std::int64_t l1_bytes) {
  device_description device;
  device.name = name;
  device.layout = tensor_layout::tile;
  device.core_columns = columns;
  device.core_rows = rows;
  constexpr std::int64_t l1_alignment = 16;
  device.add({.name = "dram", .capacity = banks * bytes_per_bank, .alignment = dram_alignment, .banks = banks});
  device.add({.name = "l1", .capacity = l1_bytes, .alignment = l1_alignment, .is_per_core = true, .circular_buffers = true});
  // Both are set apart when the device is opened, with sizes chosen by the program: no limit is known.
  device.add({.name = "l1_small", .alignment = l1_alignment, .is_per_core = true});
  device.add({.name = "trace", .alignment = dram_alignment, .banks = banks});
  return device;
}

/// One memory, in which the training frameworks' caching allocator rounds every block to 512 bytes.
[[nodiscard]] inline device_description gpu(std::string_view name, std::int64_t mebibytes) {
  device_description device;
  device.name = name;
  device.add({.name = "cuda:0", .capacity = mebibytes << 20, .alignment = 512, .size_multiple = 512});
  return device;
}

}  // namespace detail

/// The description of a common accelerator. For any other name, throws `memprof::error` listing the presets.
///
/// Capacities are what the device's allocator can hand out, not the nominal size. For GPUs, the total that CUDA reports on an RTX
/// 4090, an A100 40 GB, an A100 80 GB and an H200; programs lose a few hundred MiB of it to the CUDA context. For the tiled
/// devices, banks times the bank size in their allocator's out-of-memory messages: 12 x 1,073,741,792 and 8 x 4,273,390,016
/// bytes; for their cores, L1 minus the firmware's share, as stated to three decimals in their memory reports: 1.306 and 1.337
/// MiB on 8 x 8 and 11 x 10 cores.
[[nodiscard]] inline device_description device_preset(std::string_view name) {
  if (name == "wormhole-12gb") return detail::tiled_device(name, 12, 1'073'741'792, 32, 8, 8, 1'369'440);
  if (name == "blackhole-32gb") return detail::tiled_device(name, 8, 4'273'390'016, 64, 11, 10, 1'401'946);
  if (name == "gpu-24gb") return detail::gpu(name, 24'207);
  if (name == "gpu-40gb") return detail::gpu(name, 40'336);
  if (name == "gpu-80gb") return detail::gpu(name, 81'050);
  if (name == "gpu-141gb") return detail::gpu(name, 143'156);
  std::string known;
  for (const std::string_view preset : device_preset_names) known += (known.empty() ? "" : ", ") + std::string{preset};
  detail::raise("unknown device preset '" + std::string{name} + "'; use " + known + ", or a file that describes a device");
}

}  // namespace memprof::inline MEMPROF_ABI
