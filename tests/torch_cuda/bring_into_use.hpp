#pragma once

namespace agreement {

/// Makes the caching allocator of device 0 ready, as the first CUDA tensor would; false if there is no CUDA device.
[[nodiscard]] bool bring_cuda_into_use();

}  // namespace agreement
