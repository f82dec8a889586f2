#pragma once

#include <memprof/backend/torch/simulation/operator_plans.hpp>
#include <memprof/backend/torch/simulation/torch_call.hpp>
#include <memprof/backend/torch/simulation/values.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/recorder.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstddef>
#include <mutex>
#include <set>
#include <vector>

/// @file
/// Random numbers are drawn only for small tensors. A generator that was not advanced by a large one gives other numbers from
/// then on, until it is seeded; sizes that depend on these are listed.

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr const char* drawn_after_skipped =
    "the size of the result depends on random numbers, drawn after others that the simulation skipped";

/// The generators that are behind those of the real run. Thread-safe.
class skipped_draws {
 public:
  [[nodiscard]] static skipped_draws& instance() {
    const recording_suppressor hidden;
    static auto* const all = new skipped_draws;
    return *all;
  }

  void begin() {
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    behind_.clear();
  }

  /// Call when the numbers of a call are not drawn. Advances the generator by one number, so that it does not look newly seeded.
  void skip(const torch_call& call, bool is_on_cuda) {
    at::CPUGeneratorImpl* const generator = generator_of(call, is_on_cuda);
    if (generator == nullptr) return;
    {
      const std::lock_guard<std::mutex> drawing{generator->mutex_};
      (void)generator->random();
    }
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    behind_.insert(generator);
  }

  /// Call before numbers are drawn: whether they are others than in the real run.
  [[nodiscard]] bool precede(const torch_call& call, bool is_on_cuda) {
    at::CPUGeneratorImpl* const generator = generator_of(call, is_on_cuda);
    if (generator == nullptr) return false;
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    const auto found = behind_.find(generator);
    if (found == behind_.end()) return false;
    const std::lock_guard<std::mutex> drawing{generator->mutex_};
    if (generator->engine().data().next_ != 0) return true;  // 0 only from seeding to the first draw
    behind_.erase(found);
    return false;
  }

 private:
  /// Null if it is of another kind.
  [[nodiscard]] static at::CPUGeneratorImpl* generator_of(const torch_call& call, bool is_on_cuda) {
    for (std::size_t index = 0; index < call.size(); ++index) {
      const c10::IValue& value = call.argument(index);
      if (value.isGenerator()) return dynamic_cast<at::CPUGeneratorImpl*>(value.toGenerator().unsafeGetGeneratorImpl());
    }
    if (is_on_cuda) return nullptr;  // CUDA's generator has other numbers than the CPU's in any case
    return dynamic_cast<at::CPUGeneratorImpl*>(at::detail::getDefaultCPUGenerator().unsafeGetGeneratorImpl());
  }

  futex_lock lock_;
  std::set<const void*> behind_;
};

/// Whether a tensor's values rest on numbers that were drawn after skipped ones.
[[nodiscard]] inline bool is_drawn_after_skipped(const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  if (is_sparse(tensor)) return is_drawn_after_skipped(sparse_parts_of(tensor).indices());
  if (!tensor.has_storage()) return false;
  const fake_block* const block = block_of(*tensor.storage().unsafeGetStorageImpl());
  return block != nullptr && block->is_drawn_after_skipped.load(std::memory_order_relaxed);
}

/// Whether what a call reads rests on such numbers; with `masks_only`, whether a mask does.
[[nodiscard]] inline bool reads_drawn_after_skipped(const torch_call& call, const operator_plan& plan, bool masks_only = false) {
  bool found = false;
  for_each_tensor(call, plan, [&](const at::Tensor& tensor, const argument_role& role) {
    const bool is_mask = tensor.scalar_type() == c10::kBool || tensor.scalar_type() == c10::kByte;
    if (role.is_overwritten || (masks_only && !is_mask)) return;
    found = found || is_drawn_after_skipped(tensor);
  });
  return found;
}

/// Whether the size of what a call makes rests on such numbers.
[[nodiscard]] inline bool has_drawn_size(const torch_call& call, const operator_plan& plan) {
  return plan.depends_on_data && reads_drawn_after_skipped(call, plan, plan.depends_on_masks);
}

/// Call with each tensor that such a call has made or written.
inline void note_drawn_after_skipped(const at::Tensor& tensor) {
  if (fake_block* const block = written_block(tensor)) block->is_drawn_after_skipped.store(true, std::memory_order_relaxed);
}

/// After a kernel has run on data that decided the size of its result, and that is not the real one.
inline void assume_size_of_result(torch_call& call, const char* cause) {
  const c10::IValue& result = torch::jit::peek(call.stack(), 0, call.called().schema().returns().size());
  std::int64_t length = 0;
  if (result.isTensor() && result.toTensor().defined()) {
    const at::Tensor& made = result.toTensor();
    if (is_sparse(made)) length = sparse_parts_of(made).nnz();
    if (made.layout() == c10::kStrided) length = made.numel();
  }
  (void)call.assume_length(length, 0, cause);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
