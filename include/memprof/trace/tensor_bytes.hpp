#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// A product of sizes that must fit in 63 bits.
class checked_bytes {
 public:
  explicit checked_bytes(std::int64_t value) : value_(value) {}

  checked_bytes& operator*=(std::uint64_t factor) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (factor != 0 && (factor > most || static_cast<std::uint64_t>(value_) > most / factor)) refuse();
    value_ *= static_cast<std::int64_t>(factor);
    return *this;
  }
  /// Rounds up to the next multiple of a power of two.
  void round_up(std::int64_t multiple) {
    if (value_ > std::numeric_limits<std::int64_t>::max() - multiple) refuse();
    value_ = (value_ + multiple - 1) / multiple * multiple;
  }
  [[nodiscard]] std::int64_t value() const noexcept { return value_; }

 private:
  [[noreturn, gnu::cold]] static void refuse() { raise("the tensor's bytes do not fit in 63 bits; check its dimensions"); }

  std::int64_t value_;
};

}  // namespace detail

/// Bytes of a tensor in a device's `tensor_space()`: its elements in the device's layout, rounded up to `size_multiple`. `sizes`
/// are its dimensions, slowest first; in tiles, the last two are padded to multiples of 32, and a vector is one row.
///
/// Throws `memprof::error` for a block float without tiles, and if the bytes do not fit in 63 bits.
[[nodiscard]] inline std::int64_t tensor_bytes(const device_description& device, dtype type, std::span<const std::size_t> sizes) {
  detail::checked_bytes bytes{1};
  if (device.layout == tensor_layout::tile) {
    bytes *= static_cast<std::uint64_t>(tile_bytes(type));
    const std::size_t rank = sizes.size();
    for (std::size_t dimension = 0; dimension < rank; ++dimension) {
      const bool is_tiled = dimension + 2 >= rank;
      const std::size_t size = sizes[dimension];
      bytes *= is_tiled ? size / tile_side + (size % tile_side != 0 ? 1 : 0) : size;
    }
  } else {
    if (is_block_float(type)) {
      detail::raise("device '" + std::string{device.name.view()} + "' stores tensors row by row, but " +
                    std::string{to_string(type)} + " exists only in tiles; choose another dtype or a device with tiles");
    }
    bytes *= static_cast<std::uint64_t>(element_bits(type) / 8);
    for (const std::size_t size : sizes) bytes *= size;
  }
  bytes.round_up(device.tensor_space().size_multiple);
  return bytes.value();
}

/// Bytes that a buffer of `bytes` in pages of `page_bytes` takes in the fullest bank of a space: pages go to the banks in turn,
/// and each begins at a multiple of the alignment. Allocators with banks compare this with the size of a bank.
[[nodiscard]] constexpr std::int64_t bytes_per_bank(const device_space& space, std::int64_t bytes,
                                                    std::int64_t page_bytes) noexcept {
  const std::int64_t pages = (bytes + page_bytes - 1) / page_bytes;
  const std::int64_t pages_per_bank = (pages + space.banks - 1) / space.banks;
  return pages_per_bank * ((page_bytes + space.alignment - 1) / space.alignment * space.alignment);
}

}  // namespace memprof::inline MEMPROF_ABI
