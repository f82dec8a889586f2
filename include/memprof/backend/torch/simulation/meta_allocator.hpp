#pragma once

#include <memprof/backend/torch/capture/set_allocator.hpp>
#include <memprof/backend/torch/simulation/fake_block.hpp>
#include <memprof/detail/error.hpp>

#include <c10/core/Allocator.h>

#include <cstddef>

namespace memprof::inline MEMPROF_ABI::detail {

/// Wraps libtorch's allocator of the Meta device and records what a Meta kernel allocates for a simulated operation.
class meta_allocator final : public c10::Allocator {
 public:
  explicit meta_allocator(c10::Allocator* previous) noexcept : previous_(previous) {}

  // Only one of the two overrides, as in `forwarding_allocator`. NOLINTBEGIN(modernize-*)
  c10::DataPtr allocate(std::size_t bytes) const { return allocate_or_pass_on(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return allocate_or_pass_on(bytes); }
  void copy_data(void*, const void*, std::size_t) const {}
  // NOLINTEND(modernize-*)

 private:
  [[nodiscard]] c10::DataPtr allocate_or_pass_on(std::size_t bytes) const {
    if (!this_simulating_thread.meta_device.has_value()) return previous_->allocate(bytes);
    return new_fake_block(bytes, *this_simulating_thread.meta_device, c10::Device{c10::kMeta});
  }

  c10::Allocator* previous_;
};

/// Installs the allocator once; it stays, because storages refer to it. Call this while no other thread uses the Meta device:
/// libtorch's table of allocators has no lock. Throws `memprof::error` if libtorch does not accept it.
inline void install_meta_allocator() {
  static meta_allocator* const allocator = new meta_allocator{c10::GetAllocator(c10::kMeta)};
  if (c10::GetAllocator(c10::kMeta) == allocator || set_allocator(c10::kMeta, *allocator)) return;
  raise(
      "begin_capture: libtorch keeps another allocator of the Meta device (c10::SetAllocator had no effect); capture without "
      "torch_no_dispatch");
}

}  // namespace memprof::inline MEMPROF_ABI::detail
