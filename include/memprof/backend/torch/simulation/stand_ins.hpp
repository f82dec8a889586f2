#pragma once

#include <memprof/backend/torch/simulation/sparse_tensors.hpp>
#include <memprof/backend/torch/simulation/values.hpp>

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Replaces every tensor in an argument or result with `map(tensor)`, including those in lists.
template <class Map>
void map_tensors(c10::IValue& value, Map map) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) value = c10::IValue{map(value.toTensor())};
  } else if (value.isTensorList()) {
    std::vector<at::Tensor> tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) {
      if (tensor.defined()) tensor = map(tensor);
    }
    value = c10::IValue{std::move(tensors)};
  } else if (value.isList()) {  // a list of optional tensors, or of numbers
    bool has_tensor = false;
    for (const c10::IValue& element : value.toListRef()) has_tensor |= element.isTensor() && element.toTensor().defined();
    if (!has_tensor) return;
    c10::List<c10::IValue> elements = value.toList().copy();
    for (std::size_t index = 0; index < elements.size(); ++index) {
      const c10::IValue& element = elements.get(index);
      if (element.isTensor() && element.toTensor().defined()) elements.set(index, c10::IValue{map(element.toTensor())});
    }
    value = c10::IValue{std::move(elements)};
  }
}

/// The tensors that a real CPU kernel gets in place of a call's own: CUDA tensors become CPU tensors over the same memory, also
/// the parts of sparse ones;
/// tensors from outside the capture become their shadows, if they have or get one; all others stay as they are. Also maps results
/// back.
class stand_ins {
 public:
  [[nodiscard]] at::Tensor stand_in_of(const at::Tensor& tensor, bool is_written) {
    const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
    c10::Storage source;
    if (is_outside(storage)) {
      if (is_written || !storage.device().is_cpu()) {
        source = outside_shadows::instance().find_or_make(tensor.storage(), max_valued_bytes(tensor.scalar_type()));
      } else {
        source = outside_shadows::instance().find(storage);
      }
    }
    if (!source && tensor.is_cpu()) return tensor;
    for (const pair& known : pairs_) {
      if (known.original.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) return known.stand_in;
    }
    if (!source) source = tensor.storage();
    at::Tensor stand_in =
        tensor_over(on_cpu(tensor.storage(), source), tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) stand_in._set_conj(true);
    if (tensor.is_neg()) stand_in._set_neg(true);
    if (tensor.requires_grad()) stand_in.set_requires_grad(true);
    pairs_.push_back({tensor, stand_in});
    return stand_in;
  }

  /// The same for a sparse tensor of fake CUDA.
  [[nodiscard]] at::Tensor sparse_stand_in_of(const at::Tensor& tensor, bool is_written) {
    for (const pair& known : sparse_pairs_) {
      if (known.original.unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl()) return known.stand_in;
    }
    const at::SparseTensorImpl& parts = sparse_parts_of(tensor);
    at::Tensor stand_in = sparse_over(stand_in_of(parts.indices(), is_written), stand_in_of(parts.values(), is_written), parts);
    sparse_pairs_.push_back({tensor, stand_in});
    return stand_in;
  }
  [[nodiscard]] bool has_sparse() const noexcept { return !sparse_pairs_.empty(); }

  /// The program's own tensor for one that a kernel returns; undefined if it is not a stand-in.
  [[nodiscard]] at::Tensor original_of(const at::Tensor& result) const {
    for (const pair& known : pairs_) {
      if (known.stand_in.unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) return known.original;
    }
    for (const pair& known : sparse_pairs_) {
      if (known.stand_in.unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) return known.original;
    }
    if (!result.has_storage()) return {};
    for (const storage_pair& known : storages_) {
      if (known.stand_in.unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl()) {
        return tensor_over(known.original, result.dtype(), result.sizes(), result.strides(), result.storage_offset());
      }
    }
    return {};
  }

  /// Calls `visit(original, stand_in)` for each sparse tensor.
  template <class Visit>
  void for_each_sparse(Visit visit) const {
    for (const pair& one : sparse_pairs_) visit(one.original, one.stand_in);
  }

  /// Applies what the kernel did to the sizes of arguments.
  void take_over_sizes() {
    for (const pair& one : pairs_) {
      c10::StorageImpl& original = *one.original.storage().unsafeGetStorageImpl();
      const c10::StorageImpl& stand_in = *one.stand_in.storage().unsafeGetStorageImpl();
      if (stand_in.nbytes() > original.nbytes()) {
        enlarge(original, stand_in.nbytes(), one.original.device());
        fake_block* const block = block_of(original);
        if (block->data != nullptr) std::memcpy(block->data, stand_in.data(), stand_in.nbytes());
      }
      if (one.original.sizes() == one.stand_in.sizes() && one.original.strides() == one.stand_in.strides()) continue;
      one.original.unsafeGetTensorImpl()->set_sizes_and_strides(one.stand_in.sizes(), one.stand_in.strides());
      one.original.unsafeGetTensorImpl()->set_storage_offset(one.stand_in.storage_offset());
    }
  }

 private:
  struct pair {
    at::Tensor original;
    at::Tensor stand_in;
  };
  struct storage_pair {
    c10::Storage original;
    c10::Storage stand_in;
  };

  /// A CPU storage over the memory of `source`, which lives as long as the call.
  [[nodiscard]] c10::Storage on_cpu(const c10::Storage& original, const c10::Storage& source) {
    for (const storage_pair& known : storages_) {
      if (known.original.unsafeGetStorageImpl() == original.unsafeGetStorageImpl()) return known.stand_in;
    }
    c10::Storage stand_in{c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), static_cast<std::int64_t>(source.nbytes()),
        c10::DataPtr{source.mutable_data(), c10::Device{c10::kCPU}}, c10::GetAllocator(c10::kCPU), true)};
    storages_.push_back({original, stand_in});
    kept_.push_back(source);
    return stand_in;
  }

  std::vector<pair> pairs_;
  std::vector<pair> sparse_pairs_;
  std::vector<storage_pair> storages_;
  std::vector<c10::Storage> kept_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
