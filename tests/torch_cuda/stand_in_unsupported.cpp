// The rest of what versions of libtorch look up in CUDA's driver when it is first used, and do not call with one device and one
// process. Without CUDA's headers, so that no signature is needed, and under both names of those that have two.

namespace {

constexpr int not_supported = 801;  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

extern "C" {

int cuMemExportToShareableHandle() { return not_supported; }
int cuMemImportFromShareableHandle() { return not_supported; }
int cuMemRetainAllocationHandle() { return not_supported; }
int cuMemGetAllocationPropertiesFromHandle() { return not_supported; }
int cuMemGetAddressRange() { return not_supported; }
int cuMemGetAddressRange_v2() { return not_supported; }
int cuMemsetD32Async() { return not_supported; }
int cuStreamWriteValue32() { return not_supported; }
int cuStreamWriteValue32_v2() { return not_supported; }
int cuMulticastAddDevice() { return not_supported; }
int cuMulticastBindMem() { return not_supported; }
int cuMulticastCreate() { return not_supported; }
int cuMulticastUnbind() { return not_supported; }
}
