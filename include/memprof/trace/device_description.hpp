#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/short_name.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// How a device stores a matrix: row by row, or in tiles of 32 x 32 elements, with the last ones padded.
enum class tensor_layout : std::uint8_t { row_major, tile };

namespace detail {

/// Names of the `tensor_layout` values, in order.
inline constexpr std::array<std::string_view, 2> tensor_layout_names{"row_major", "tile"};

}  // namespace detail

/// One of a device's kinds of memory.
struct device_space {
  short_name name;                 ///< name of the `memory_space` whose blocks are in it
  std::int64_t capacity = 0;       ///< bytes, per core if `is_per_core`; 0: unlimited
  std::int64_t alignment = 1;      ///< bytes; pages in a bank begin at multiples of it; a power of two
  std::int64_t size_multiple = 1;  ///< bytes; allocations are rounded up to a multiple of it; a power of two
  std::int64_t banks = 1;          ///< a buffer's pages are distributed over the banks in turn
  bool is_per_core = false;        ///< every core has its own; sizes are bytes per core
  bool circular_buffers = false;   ///< whether it holds circular buffers as well as buffers

  bool operator==(const device_space&) const = default;
};

/// The memory limits of a device, real or imagined, and how large tensors are on it. Trivially copyable.
struct device_description {
  static constexpr std::size_t max_spaces = 8;

  short_name name;  ///< empty: no device is described
  tensor_layout layout = tensor_layout::row_major;
  std::uint8_t core_columns = 0;  ///< grid of cores, for `is_per_core` spaces
  std::uint8_t core_rows = 0;
  std::uint8_t space_count = 0;
  std::array<device_space, max_spaces> spaces{};  ///< the first holds the tensors

  [[nodiscard]] bool empty() const noexcept { return name.empty(); }

  /// Throws `memprof::error` if there are already `max_spaces` or the name is taken.
  device_description& add(const device_space& space) {
    if (space_count == max_spaces) {
      detail::raise("device '" + std::string{name.view()} + "': a device has at most " + std::to_string(max_spaces) +
                    " memory spaces; leave '" + std::string{space.name.view()} + "' out");
    }
    if (find_space(space.name.view()) != nullptr) {
      detail::raise("device '" + std::string{name.view()} + "' has two memory spaces '" + std::string{space.name.view()} +
                    "'; rename one");
    }
    spaces[space_count++] = space;
    return *this;
  }

  /// The space with that name, or a null pointer.
  [[nodiscard]] const device_space* find_space(std::string_view wanted) const noexcept {
    for (std::size_t index = 0; index < space_count; ++index) {
      const std::string_view known = spaces[index].name.view();
      if (known.size() == wanted.size() && known.compare(wanted) == 0) return &spaces[index];
    }
    return nullptr;
  }

  /// The space that holds tensors. Throws `memprof::error` if no space was added.
  [[nodiscard]] const device_space& tensor_space() const {
    if (space_count == 0) detail::raise("device '" + std::string{name.view()} + "' has no memory space; add one");
    return spaces[0];
  }
};

}  // namespace memprof::inline MEMPROF_ABI
