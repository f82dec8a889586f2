#include <torch_cuda/bring_into_use.hpp>

#include <torch/torch.h>

namespace agreement {

bool bring_cuda_into_use() {
  if (!torch::cuda::is_available()) return false;
  (void)at::empty({1}, at::kCUDA);
  return true;
}

}  // namespace agreement
