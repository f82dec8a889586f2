#pragma once

#include <memprof/memprof.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/tensor_bytes.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

/// @file
/// As much of an automatic differentiation tape as determines how long a tensor lives. Nothing is computed: a tensor is just a
/// size.

namespace tinyllama_table {

/// Bytes on a device, freed when the last owner is destroyed.
class block {
 public:
  block(std::pmr::memory_resource& memory, std::size_t bytes, memprof::category category)
      : memory_{&memory}, bytes_{bytes}, address_{memory.allocate(bytes)} {
    memprof::annotate(address_, {.category = category});
  }
  ~block() { memory_->deallocate(address_, bytes_); }
  block(const block&) = delete;
  block& operator=(const block&) = delete;

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::pmr::memory_resource& memory() const { return *memory_; }

 private:
  std::pmr::memory_resource* memory_;
  std::size_t bytes_;
  void* address_;
};

using tensor = std::shared_ptr<const block>;

/// Creates bf16 tensors whose last two dimensions are padded to whole tiles.
class device_memory {
 public:
  explicit device_memory(std::pmr::memory_resource& memory)
      : memory_{&memory}, device_{memprof::device_preset("wormhole-12gb")} {}

  [[nodiscard]] tensor make(std::vector<std::size_t> sizes, memprof::category category = memprof::category::activation) const {
    return make_bytes(static_cast<std::size_t>(memprof::tensor_bytes(device_, memprof::dtype::bfloat16, sizes)), category);
  }
  [[nodiscard]] tensor make_bytes(std::size_t bytes, memprof::category category) const {
    return std::make_shared<const block>(*memory_, bytes, category);
  }

 private:
  std::pmr::memory_resource* memory_;
  memprof::device_description device_;
};

/// Creates another tensor of the same size.
[[nodiscard]] inline tensor make_like(const tensor& model, memprof::category category = memprof::category::activation) {
  return std::make_shared<const block>(model->memory(), model->bytes(), category);
}

/// A tensor that takes part in differentiation. It lives until the operation that created it has been differentiated.
struct variable {
  tensor value;
  tensor gradient = {};
  bool is_parameter = false;
};

using variable_ptr = std::shared_ptr<variable>;

[[nodiscard]] inline variable_ptr make_variable(tensor value) { return std::make_shared<variable>(variable{std::move(value)}); }

/// Gradients of the same variable are summed into a new tensor, which replaces the first.
inline void add_gradient(variable& target, const tensor& gradient) {
  target.gradient = target.gradient ? make_like(target.gradient) : gradient;
}

/// A new gradient for a variable.
[[nodiscard]] inline tensor make_gradient(const variable& target) {
  return make_like(target.value, target.is_parameter ? memprof::category::gradient : memprof::category::activation);
}

/// The steps that differentiate the operations, in the order of the operations; each keeps what it needs.
class tape {
 public:
  void add(std::function<void()> differentiate) { nodes_.push_back(std::move(differentiate)); }

  /// Differentiates the operations, last first, and releases each at once.
  void backward() {
    while (!nodes_.empty()) {
      nodes_.back()();
      nodes_.pop_back();
    }
  }

 private:
  std::vector<std::function<void()>> nodes_;
};

}  // namespace tinyllama_table
