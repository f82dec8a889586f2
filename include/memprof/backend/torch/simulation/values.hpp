#pragma once

#include <memprof/backend/torch/simulation/fake_block.hpp>
#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/outside_tensors.hpp>
#include <memprof/backend/torch/simulation/sparse_tensors.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstddef>

/// @file
/// Which tensors hold what the program computed. Small ones do, as long as they result from others that do: lengths, indices,
/// masks, counters, permutations, biases before the first step. All others have nominal values (nominal_values.hpp).

namespace memprof::inline MEMPROF_ABI::detail {

/// The number of bytes up to which a tensor holds values. Integers control programs (indices, permutations of a data set);
/// floating-point numbers rarely do.
[[nodiscard]] inline std::size_t max_valued_bytes(c10::ScalarType dtype) noexcept {
  constexpr std::size_t of_numbers = std::size_t{64} << 10;
  constexpr std::size_t of_integers = std::size_t{16} << 20;
  return c10::isIntegralType(dtype, true) ? of_integers : of_numbers;
}

/// Whether the content of a tensor is what the program computed.
[[nodiscard]] inline bool has_values(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return !tensor.defined();
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (storage.nbytes() == 0) return true;
  if (const fake_block* const block = block_of(storage)) return block->has_values.load(std::memory_order_relaxed);
  if (!storage.device().is_cpu()) return false;
  if (!is_outside(storage)) return true;  // made by libtorch without its dispatcher
  const c10::Storage shadow = outside_shadows::instance().find(storage);
  return !shadow || block_of(*shadow.unsafeGetStorageImpl())->has_values.load(std::memory_order_relaxed);
}

[[nodiscard]] inline bool is_small(const at::Tensor& tensor) {
  return !tensor.defined() || tensor.nbytes() <= max_valued_bytes(tensor.scalar_type());
}

/// The block that a write to a tensor changes; null if its bytes are not the simulation's.
[[nodiscard]] inline fake_block* written_block(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (fake_block* const block = adopt(storage)) return block;
  if (storage.nbytes() == 0) return nullptr;
  const c10::Storage shadow = outside_shadows::instance().find(storage);
  return shadow ? block_of(*shadow.unsafeGetStorageImpl()) : nullptr;
}

/// Call after a simulated operation has written a tensor: its content is now unknown.
inline void forget_values(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.has_storage() && is_outside(*tensor.storage().unsafeGetStorageImpl())) {
    (void)outside_shadows::instance().find_or_make(tensor.storage(), 0);
  }
  fake_block* const block = written_block(tensor);
  if (block == nullptr) return;
  const bool has_content = block->has_values.load(std::memory_order_relaxed) || block->is_filled.load(std::memory_order_relaxed);
  if (has_content) forget_values(*block);
}

/// Call after a real kernel has computed a tensor from zeros: a small one keeps its bytes, although they are meaningless.
inline void discard_values(const at::Tensor& tensor) {
  fake_block* const block = written_block(tensor);
  if (block == nullptr) return;
  block->has_values.store(false, std::memory_order_relaxed);
  block->lacks_bytes.store(false, std::memory_order_relaxed);
  if (block->bytes > max_valued_bytes(tensor.scalar_type())) forget_values(*block);
}

/// Call after a real kernel has computed a tensor from values only: they are kept if the whole storage now has values and is
/// small.
inline void keep_values(const at::Tensor& tensor) {
  fake_block* const block = written_block(tensor);
  if (block == nullptr) return;
  const bool covers = tensor.is_non_overlapping_and_dense() && tensor.nbytes() == tensor.storage().nbytes();
  const bool has = covers || block->has_values.load(std::memory_order_relaxed);
  if (block->bytes > max_valued_bytes(tensor.scalar_type())) return forget_values(*block);
  if (!has) return;  // what else is in the block stays unknown
  block->has_values.store(true, std::memory_order_relaxed);
  block->lacks_bytes.store(false, std::memory_order_relaxed);
}

/// Calls `visit(tensor, role)` for every tensor among the arguments of a call, including those in lists.
template <class Visit>
void for_each_tensor(const torch_call& call, const operator_plan& plan, Visit visit) {
  for (std::size_t index = 0; index < call.size(); ++index) {
    const c10::IValue& value = call.argument(index);
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor(), plan.roles[index]);
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() && element.toTensor().defined()) visit(element.toTensor(), plan.roles[index]);
      }
    }
  }
}

/// What determines how a call is simulated, besides its operator.
struct call_facts {
  bool is_on_meta = false;  ///< within a Meta kernel, or the program's own use of the Meta device: there is no data
  bool has_tensor = false;
  bool is_dense = true;      ///< every tensor is strided
  bool is_on_cuda = false;   ///< some tensor is, or is to be created there
  bool is_sparse = false;    ///< on CUDA: some tensor is, or the result is to be
  bool is_nested = false;    ///< some tensor is, in strided layout
  bool has_values = true;    ///< everything that is read has values; of sparse tensors, where their elements are
  bool has_masks = true;     ///< everything that is read and may be a mask has values
  bool is_small = true;      ///< everything that is read is small
  bool is_plain = true;      ///< contiguous, numbers of one type of 32 or 64 bits, indices of 64 bits
  bool has_one_type = true;  ///< all tensors have the same type
  bool keeps_type = true;    ///< all that have dimensions do, and those without do not change the type of a result
  bool is_contiguous = true;
  bool names_other_type = false;  ///< an argument names another type to compute in
  bool writes = false;
  std::size_t bytes = 0;                                     ///< of all tensors
  c10::ScalarType type = c10::ScalarType::Undefined;         ///< of the last tensor
  c10::ScalarType number_type = c10::ScalarType::Undefined;  ///< of the last floating-point tensor
  c10::ScalarType array_type = c10::ScalarType::Undefined;   ///< of the last tensor with dimensions
  int number_kind = 0;                                       ///< the greatest `promotion_kind` of those without
};

/// Whether a tensor has one storage that is read element by element: not sparse, nested, quantized, or in a library's own format.
[[nodiscard]] inline bool is_dense(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && tensor.has_storage() && !tensor.is_quantized() && !tensor.is_nested();
}

/// The order in which types are promoted to others: a tensor without dimensions, as a number is, leaves those of its kind as they
/// are.
[[nodiscard]] inline int promotion_kind(c10::ScalarType dtype) {
  if (c10::isComplexType(dtype)) return 3;
  if (c10::isFloatingType(dtype)) return 2;
  return dtype == c10::kBool ? 0 : 1;
}

inline void note_promotion(call_facts& facts, const at::Tensor& tensor) {
  const c10::ScalarType dtype = tensor.scalar_type();
  if (tensor.dim() == 0) {
    facts.number_kind = std::max(facts.number_kind, promotion_kind(dtype));
    return;
  }
  facts.keeps_type = facts.keeps_type && (facts.array_type == c10::ScalarType::Undefined || facts.array_type == dtype);
  facts.array_type = dtype;
}

inline void note_type(call_facts& facts, const at::Tensor& tensor) {
  note_promotion(facts, tensor);
  const c10::ScalarType dtype = tensor.scalar_type();
  const bool is_number = dtype == c10::kFloat || dtype == c10::kDouble;
  const bool is_index = dtype == c10::kLong || dtype == c10::kBool;
  facts.is_contiguous = facts.is_contiguous && tensor.is_contiguous();
  facts.is_plain = facts.is_plain && facts.is_contiguous && (is_number || is_index);
  facts.has_one_type = facts.has_one_type && (facts.type == c10::ScalarType::Undefined || facts.type == dtype);
  if (is_number && facts.number_type != c10::ScalarType::Undefined) facts.is_plain = facts.is_plain && facts.number_type == dtype;
  if (is_number) facts.number_type = dtype;
  facts.type = dtype;
}

[[nodiscard]] inline call_facts facts_of(const torch_call& call, const operator_plan& plan) {
  call_facts facts;
  for (std::size_t index = 0; index < call.size(); ++index) {
    const c10::IValue& value = call.argument(index);
    if (!value.isDevice()) continue;
    facts.is_on_meta |= value.toDevice().is_meta();
    facts.is_on_cuda |= value.toDevice().is_cuda();
  }
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    facts.has_tensor = true;
    facts.writes |= role.is_written;
    if (tensor.is_meta()) {
      facts.is_on_meta = true;
    } else if (!is_dense(tensor)) {
      facts.is_dense = false;
      facts.is_sparse |= is_sparse_on_cuda(tensor);
      facts.is_nested |= tensor.is_nested() && tensor.layout() == c10::kStrided;
      if (is_sparse(tensor) && !role.is_overwritten)
        facts.has_values = facts.has_values && has_values(sparse_parts_of(tensor).indices());
      facts.is_on_cuda |= is_sparse_on_cuda(tensor) || (facts.is_nested && tensor.is_cuda());
    } else {
      facts.is_on_cuda |= tensor.is_cuda();
      facts.bytes += tensor.nbytes();
      note_type(facts, tensor);
      facts.is_small = facts.is_small && is_small(tensor);
      const bool is_known = role.is_overwritten || has_values(tensor);
      facts.has_values = facts.has_values && is_known;
      const bool may_be_mask = tensor.scalar_type() == c10::kBool || tensor.scalar_type() == c10::kByte;
      facts.has_masks = facts.has_masks && (is_known || !may_be_mask);
    }
  });
  if (facts.is_on_cuda && names_sparse_layout(call, plan)) {
    facts.is_sparse = true;
    facts.is_dense = false;
  }
  facts.keeps_type = facts.keeps_type && facts.number_kind <= promotion_kind(facts.array_type);
  for (std::size_t index = 0; facts.has_tensor && index < call.size(); ++index) {
    if (!plan.roles[index].is_dtype || !call.argument(index).isInt()) continue;
    const auto named = static_cast<c10::ScalarType>(call.argument(index).toInt());
    facts.names_other_type = !facts.has_one_type || named != facts.type;
  }
  return facts;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
