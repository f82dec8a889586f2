#pragma once

#include <memprof/backend/cuda/runtime_interface.hpp>
#include <memprof/backend/cuda/simulated_blocks.hpp>
#include <memprof/backend/cuda/simulated_runtime.hpp>
#include <memprof/config.hpp>
#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/registry.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// The calls of CUDA's runtime that copy and fill memory, without a device. Where both ends are memory (the host's, pinned or
/// managed), they do it. What a device would write into the host's memory is zeros, so that a run repeats, and that loops which
/// ask the device whether to go on end. Everything else has no effect.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Whether an address has no memory behind it.
[[nodiscard]] inline bool is_on_device(const void* address) noexcept {
  // Acquire pairs with the release in `prepare_no_dispatch`.
  const phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  return reserved != nullptr && reserved->contains(address);
}

/// `from` is null for what a device has without an address of its own, such as arrays.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0 || to == nullptr || is_on_device(to)) return;
  if (from == nullptr || is_on_device(from)) {
    std::memset(to, 0, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

/// Rows of memory.
struct rows_of_bytes {
  const void* first;
  std::size_t pitch;

  [[nodiscard]] const void* row(std::size_t index) const noexcept {
    return first == nullptr ? nullptr : static_cast<const char*>(first) + index * pitch;
  }
  [[nodiscard]] void* writable_row(std::size_t index) const noexcept { return const_cast<void*>(row(index)); }
};

inline void copy_rows(const rows_of_bytes& to, const rows_of_bytes& from, std::size_t width, std::size_t rows) noexcept {
  if (to.first == nullptr || is_on_device(to.first)) return;
  for (std::size_t index = 0; index < rows; ++index) copy_bytes(to.writable_row(index), from.row(index), width);
}

inline void fill_rows(const rows_of_bytes& filled, int value, std::size_t width, std::size_t rows) noexcept {
  if (filled.first == nullptr || is_on_device(filled.first)) return;
  for (std::size_t index = 0; index < rows; ++index) std::memset(filled.writable_row(index), value, width);
}

[[nodiscard]] inline int copy(void* to, const void* from, std::size_t bytes) noexcept {
  return called([&](simulated_runtime&) {
    if (bytes != 0 && (to == nullptr || from == nullptr)) return runtime_result::invalid_value;
    copy_bytes(to, from, bytes);
    return runtime_result::done;
  });
}

/// `from` of an array has no address.
[[nodiscard]] inline int copy(const rows_of_bytes& to, const rows_of_bytes& from, std::size_t width, std::size_t rows) noexcept {
  return called([&](simulated_runtime&) {
    copy_rows(to, from, width, rows);
    return runtime_result::done;
  });
}

[[nodiscard]] inline int fill(void* filled, std::size_t pitch, int value, std::size_t width, std::size_t rows) noexcept {
  return called([&](simulated_runtime&) {
    if (filled == nullptr && width != 0 && rows != 0) return runtime_result::invalid_value;
    fill_rows({filled, pitch}, value, width, rows);
    return runtime_result::done;
  });
}
[[nodiscard]] inline int fill(const pitched_pointer& filled, int value, const extent& size) noexcept {
  for (std::size_t layer = 1; layer < size.depth; ++layer) {
    const rows_of_bytes rows{filled.address, filled.pitch};
    const int result = fill(rows.writable_row(layer * filled.height), filled.pitch, value, size.width, size.height);
    if (result != 0) return result;
  }
  return fill(filled.address, filled.pitch, value, size.width, size.height);
}

/// Widths count elements where an end is an array, and else bytes.
template <class Copy>
[[nodiscard]] int copy_box(const Copy* asked) noexcept {
  return called([&](simulated_runtime& runtime) {
    if (asked == nullptr) return runtime_result::invalid_value;
    if (asked->to_array != nullptr || asked->to.address == nullptr) return runtime_result::done;
    std::size_t width = asked->extent.width;
    if (asked->from_array != nullptr) width *= runtime.memory.around(asked->from_array).bytes_of_element;
    const auto layer_of = [](const pitched_pointer& of, const position& at, std::size_t layer) -> rows_of_bytes {
      const rows_of_bytes whole{of.address, of.pitch};
      const void* const first = whole.row((at.z + layer) * of.height + at.y);
      return {first == nullptr ? nullptr : static_cast<const char*>(first) + at.x, of.pitch};
    };
    for (std::size_t layer = 0; layer < asked->extent.depth; ++layer) {
      const rows_of_bytes from =
          asked->from_array != nullptr ? rows_of_bytes{nullptr, 0} : layer_of(asked->from, asked->from_position, layer);
      copy_rows(layer_of(asked->to, asked->to_position, layer), from, width, asked->extent.height);
    }
    return runtime_result::done;
  });
}

/// Between the program and a variable of its device code, of which only the size is there. `to` is null for a copy to it.
[[nodiscard]] inline int copy_variable(void* to, const void* variable, std::size_t bytes, std::size_t offset) noexcept {
  return called([&](simulated_runtime& runtime) {
    std::uint64_t size = 0;
    if (!runtime.variables.find(variable, size)) return runtime_result::invalid_symbol;
    if (offset > size || bytes > size - offset) return runtime_result::invalid_value;
    copy_bytes(to, nullptr, bytes);
    return runtime_result::done;
  });
}

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
