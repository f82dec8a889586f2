#pragma once

#include <nano_gpt/element.hpp>
#include <nano_gpt/extents.hpp>

#include <memprof/trace/device_description.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/tensor_bytes.hpp>

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <string_view>
#include <type_traits>

namespace nano_gpt {

/// How tensors without a device count: contiguous elements, no limit.
[[nodiscard]] inline const memprof::device_description& plain_device() {
  static const memprof::device_description device = [] {
    memprof::device_description plain;
    plain.name = "cpu";
    return plain.add({.name = "cpu"});
  }();
  return device;
}

/// Where tensors are allocated, and how many bytes they take there.
class tensor_memory {
 public:
  tensor_memory() = default;
  /// Each element has the size of its C++ type.
  // NOLINTNEXTLINE(google-explicit-constructor): most tensors need only a resource
  tensor_memory(std::pmr::memory_resource* resource) : resource_{resource} {}
  /// Uses the layout of a device, unless that is empty. Non-integer elements count as `type`, even if their C++ type only stands
  /// for a type that no kernel computes with. `device` must outlive the tensors.
  tensor_memory(std::pmr::memory_resource* resource, const memprof::device_description& device, memprof::dtype type)
      : resource_{resource}, device_{device.empty() ? &plain_device() : &device}, type_{type} {}

  [[nodiscard]] std::pmr::memory_resource* resource() const { return resource_; }

  /// Throws `std::bad_array_new_length` or `memprof::error` if that does not fit the address space.
  template <class T>
  [[nodiscard]] std::size_t bytes(const extents& shape) const {
    if (!type_) return shape.count(sizeof(T)) * sizeof(T);
    const memprof::dtype type = std::is_integral_v<T> ? memprof::dtype::int32 : *type_;
    return static_cast<std::size_t>(memprof::tensor_bytes(*device_, type, shape.sizes()));
  }

  /// The name of the element type in reports.
  template <class T>
  [[nodiscard]] std::string_view dtype() const {
    return type_ && !is_dispatched_type(*type_) ? memprof::to_string(*type_) : dtype_name<T>;
  }

 private:
  std::pmr::memory_resource* resource_ = nullptr;
  const memprof::device_description* device_ = nullptr;
  std::optional<memprof::dtype> type_;
};

}  // namespace nano_gpt
