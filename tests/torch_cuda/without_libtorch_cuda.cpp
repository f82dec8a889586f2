// Of libtorch's CUDA libraries only libc10_cuda, which has the caching allocator: what libtorch_cuda would do first is done here.
#include <torch_cuda/bring_into_use.hpp>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAMacros.h>
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
#include <c10/cuda/PeerToPeerAccess.h>
#endif

namespace c10::cuda::_internal {

// No header declares it.
C10_CUDA_API void setHasPrimaryContext(bool (*has_context)(c10::DeviceIndex));

}  // namespace c10::cuda::_internal

namespace agreement {

bool bring_cuda_into_use() {
  const auto devices = c10::cuda::device_count();
  if (devices == 0) return false;
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
  c10::cuda::detail::init_p2p_access_cache(devices);
#endif
  c10::cuda::CUDACachingAllocator::init(devices);
  return true;
}

}  // namespace agreement
