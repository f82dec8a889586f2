// Stands in for libcuda.so.1: two devices that only count. STAND_IN_CUDA_BYTES is the memory of each, 1 GiB by default, of which
// each context takes 64 MiB. Pools take 32 MiB at a time, and keep it. What is freed on a stream can be used again by any stream
// once the host has waited for it, and at once by the same. `cuInit` loads the library that CUDA_INJECTION64_PATH names.
#include "driver.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <dlfcn.h>

namespace {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int invalid_context = 201;

constexpr std::size_t bytes_of_context = std::size_t{64} << 20;
constexpr std::size_t pool_step = std::size_t{32} << 20;

struct context {
  int device;
  std::uint32_t number;
};

struct freed_block {
  CUdeviceptr address;
  std::size_t bytes;
  void* stream;
  bool is_pending;
};

struct pool {
  int device = 0;
  bool is_gone = false;
  std::size_t used = 0;  // including what is freed and pending
  std::size_t used_high = 0;
  std::size_t reserved = 0;
  std::size_t reserved_high = 0;
  std::vector<freed_block> freed;
};

struct device {
  std::size_t used = 0;
  context* primary = nullptr;
  pool own_pool;
};

struct held {
  std::size_t bytes;
  context* in;
  pool* from;  // null: of the device itself
  bool is_host;
};

struct memory {
  std::size_t bytes;
  int device;
  int uses;
};

std::mutex lock;
std::array<device, 2> devices;
std::map<CUdeviceptr, held> blocks;
std::map<unsigned long long, memory> memories;
std::map<CUdeviceptr, std::pair<std::size_t, unsigned long long>> mappings;
CUdeviceptr next_address = 0x7f0000000000;
unsigned long long next_handle = 0x1000;
std::uint32_t contexts = 0;
std::deque<context> all_contexts;  // those that have ended, too, and likewise the pools
std::deque<pool> made_pools;
thread_local context* current = nullptr;
thread_local std::vector<context*> pushed;

void (*receiver)(void*, int, std::uint32_t, const void*) = nullptr;
void* receiver_user = nullptr;

std::size_t total() {
  static const char* const set = std::getenv("STAND_IN_CUDA_BYTES");
  return set == nullptr ? std::size_t{1} << 30 : std::strtoull(set, nullptr, 10);
}

void tell(int domain, std::uint32_t id, const void* data) {
  if (receiver != nullptr) receiver(receiver_user, domain, id, data);
}

// CUpti_CallbackData.
struct callback_data {
  int site;
  const char* function;
  const void* parameters;
  const void* result;
  const char* symbol;
  void* context;
  std::uint32_t context_number;
  std::uint64_t* kept;
  std::uint32_t correlation;
};

/// Runs `work` as the driver's call with that number, between its two callbacks.
template <class Parameters, class Work>
int called(std::uint32_t id, const char* name, const Parameters& parameters, Work work) {
  std::uint64_t kept = 0;
  callback_data data{0, name, &parameters, nullptr, nullptr, current, current == nullptr ? 0 : current->number, &kept, 0};
  tell(1, id, &data);
  int result = success;
  {
    const std::lock_guard guard{lock};
    result = work();
  }
  data.site = 1;
  data.result = &result;
  tell(1, id, &data);
  return result;
}

bool take(int number, std::size_t bytes) {
  device& of = devices[static_cast<std::size_t>(number)];
  if (bytes > total() || of.used > total() - bytes) return false;
  of.used += bytes;
  return true;
}

CUdeviceptr new_address(std::size_t bytes) {
  const CUdeviceptr address = next_address;
  next_address += (bytes + 511) / 512 * 512;
  return address;
}

int allocate(CUdeviceptr* address, std::size_t bytes) {
  if (current == nullptr) return invalid_context;
  if (bytes == 0) return invalid_value;
  if (!take(current->device, bytes)) return out_of_memory;
  *address = new_address(bytes);
  blocks[*address] = {bytes, current, nullptr, false};
  return success;
}

int allocate_from(pool& from, CUdeviceptr* address, std::size_t bytes, void* stream) {
  if (current == nullptr) return invalid_context;
  if (bytes == 0) return invalid_value;
  const auto reused = std::find_if(from.freed.begin(), from.freed.end(), [&](const freed_block& freed) {
    return freed.bytes == bytes && (!freed.is_pending || freed.stream == stream);
  });
  if (reused != from.freed.end()) {
    *address = reused->address;
    if (!reused->is_pending) from.used += bytes;
    from.freed.erase(reused);
  } else {
    const std::size_t wanted = (from.used + bytes + pool_step - 1) / pool_step * pool_step;
    if (wanted > from.reserved) {
      if (!take(from.device, wanted - from.reserved)) return out_of_memory;
      from.reserved = wanted;
    }
    *address = new_address(bytes);
    from.used += bytes;
  }
  from.used_high = std::max(from.used_high, from.used);
  from.reserved_high = std::max(from.reserved_high, from.reserved);
  blocks[*address] = {bytes, current, &from, false};
  return success;
}

int release(CUdeviceptr address, void* stream, bool is_on_stream) {
  const auto found = blocks.find(address);
  if (found == blocks.end()) return invalid_value;
  const held freed = found->second;
  blocks.erase(found);
  if (freed.from == nullptr) {
    if (!freed.is_host) devices[static_cast<std::size_t>(freed.in->device)].used -= freed.bytes;
    return success;
  }
  if (!is_on_stream) freed.from->used -= freed.bytes;
  freed.from->freed.push_back({address, freed.bytes, stream, is_on_stream});
  return success;
}

template <class Condition>
void end_pending(Condition is_ended) {
  for (device& each : devices) {
    for (freed_block& freed : each.own_pool.freed) {
      if (!freed.is_pending || !is_ended(freed)) continue;
      freed.is_pending = false;
      each.own_pool.used -= freed.bytes;
    }
  }
}

context* new_context(int number) {
  if (!take(number, bytes_of_context)) return nullptr;
  return &all_contexts.emplace_back(context{number, ++contexts});
}

void end_context(context* ended) {
  const void* const data[3] = {ended, nullptr, nullptr};
  tell(3, 2, data);
  const std::lock_guard guard{lock};
  for (auto each = blocks.begin(); each != blocks.end();) {
    if (each->second.in != ended) {
      ++each;
      continue;
    }
    if (each->second.from == nullptr && !each->second.is_host)
      devices[static_cast<std::size_t>(ended->device)].used -= each->second.bytes;
    each = blocks.erase(each);
  }
  devices[static_cast<std::size_t>(ended->device)].used -= bytes_of_context;
}

void drop(unsigned long long handle) {
  const auto found = memories.find(handle);
  if (found == memories.end() || --found->second.uses != 0) return;
  devices[static_cast<std::size_t>(found->second.device)].used -= found->second.bytes;
  memories.erase(found);
}

}  // namespace

extern "C" {

void stand_in_listen(void (*receive)(void*, int, std::uint32_t, const void*), void* user) {
  receiver_user = user;
  receiver = receive;
}
int stand_in_device_of(void* of, std::uint32_t* device) {
  *device = static_cast<std::uint32_t>(static_cast<context*>(of)->device);
  return success;
}
int stand_in_number_of(void* of, std::uint32_t* number) {
  *number = static_cast<context*>(of)->number;
  return success;
}

int cuInit(unsigned) {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const injected = std::getenv("CUDA_INJECTION64_PATH");
    if (injected == nullptr || *injected == '\0') return;
    void* const library = ::dlopen(injected, RTLD_NOW);
    if (library == nullptr) return;
    if (auto* const initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"))) (void)initialize();
  });
  return success;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(devices.size());
  return success;
}
int cuDevicePrimaryCtxRetain(void** result, int number) {
  const std::lock_guard guard{lock};
  context*& primary = devices[static_cast<std::size_t>(number)].primary;
  if (primary == nullptr) primary = new_context(number);
  devices[static_cast<std::size_t>(number)].own_pool.device = number;
  *result = primary;
  return primary == nullptr ? out_of_memory : success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuDevicePrimaryCtxGetState(int number, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = devices[static_cast<std::size_t>(number)].primary != nullptr ? 1 : 0;
  return success;
}
int cuCtxGetCurrent(void** result) {
  *result = current;
  return success;
}
int cuCtxSetCurrent(void* made) {
  current = static_cast<context*>(made);
  return success;
}
int cuCtxGetDevice(int* device) {
  if (current == nullptr) return invalid_context;
  *device = current->device;
  return success;
}
int cuCtxPushCurrent_v2(void* made) {
  pushed.push_back(current);
  current = static_cast<context*>(made);
  return success;
}
int cuCtxPopCurrent_v2(void** popped) {
  if (popped != nullptr) *popped = current;
  if (pushed.empty()) return invalid_context;
  current = pushed.back();
  pushed.pop_back();
  return success;
}
int cuCtxCreate_v2(void** result, unsigned, int number) {
  const std::lock_guard guard{lock};
  current = new_context(number);
  *result = current;
  return current == nullptr ? out_of_memory : success;
}
int cuCtxDestroy_v2(void* ended) {
  end_context(static_cast<context*>(ended));
  if (current == ended) current = nullptr;
  return success;
}
int cuCtxSynchronize() {
  {
    const std::lock_guard guard{lock};
    end_pending([](const freed_block&) { return true; });
  }
  const void* const data[2] = {current, nullptr};
  tell(4, 2, data);
  return success;
}
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  const std::lock_guard guard{lock};
  if (current == nullptr) return invalid_context;
  *total_bytes = total();
  *free_bytes = total() - devices[static_cast<std::size_t>(current->device)].used;
  return success;
}

int cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const struct {
    CUdeviceptr* address;
    std::size_t bytes;
  } parameters{address, bytes};
  return called(243, "cuMemAlloc_v2", parameters, [&] { return allocate(address, bytes); });
}
int cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element) {
  const struct {
    CUdeviceptr* address;
    std::size_t* pitch;
    std::size_t width;
    std::size_t height;
    unsigned element;
  } parameters{address, pitch, width, height, element};
  return called(244, "cuMemAllocPitch_v2", parameters, [&] {
    *pitch = (width + 511) / 512 * 512;
    return allocate(address, *pitch * height);
  });
}
int cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  const struct {
    CUdeviceptr* address;
    std::size_t bytes;
    unsigned flags;
  } parameters{address, bytes, flags};
  return called(371, "cuMemAllocManaged", parameters, [&] { return allocate(address, bytes); });
}
int cuMemFree_v2(CUdeviceptr address) {
  const struct { CUdeviceptr address; } parameters{address};
  return called(245, "cuMemFree_v2", parameters, [&] { return address == 0 ? success : release(address, nullptr, false); });
}
int cuMemAllocHost_v2(void** address, std::size_t bytes) {
  const struct {
    void** address;
    std::size_t bytes;
  } parameters{address, bytes};
  return called(294, "cuMemAllocHost_v2", parameters, [&] {
    *address = std::malloc(bytes);
    blocks[reinterpret_cast<CUdeviceptr>(*address)] = {bytes, current, nullptr, true};
    return success;
  });
}
int cuMemFreeHost(void* address) {
  const struct { void* address; } parameters{address};
  return called(38, "cuMemFreeHost", parameters, [&] {
    const int result = release(reinterpret_cast<CUdeviceptr>(address), nullptr, false);
    if (result == success) std::free(address);
    return result;
  });
}

int cuStreamCreate(void** stream, unsigned) {
  const std::lock_guard guard{lock};
  *stream = reinterpret_cast<void*>(next_handle += 0x1000);
  return success;
}
int cuStreamSynchronize(void* stream) {
  {
    const std::lock_guard guard{lock};
    end_pending([&](const freed_block& freed) { return freed.stream == stream; });
  }
  const void* const data[2] = {current, stream};
  tell(4, 1, data);
  return success;
}
int cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, void* stream) {
  const struct {
    CUdeviceptr* address;
    std::size_t bytes;
    void* stream;
  } parameters{address, bytes, stream};
  return called(598, "cuMemAllocAsync", parameters, [&] {
    if (current == nullptr) return invalid_context;
    return allocate_from(devices[static_cast<std::size_t>(current->device)].own_pool, address, bytes, stream);
  });
}
int cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, void* from, void* stream) {
  const struct {
    CUdeviceptr* address;
    std::size_t bytes;
    void* pool;
    void* stream;
  } parameters{address, bytes, from, stream};
  return called(611, "cuMemAllocFromPoolAsync", parameters,
                [&] { return allocate_from(*static_cast<pool*>(from), address, bytes, stream); });
}
int cuMemFreeAsync(CUdeviceptr address, void* stream) {
  const struct {
    CUdeviceptr address;
    void* stream;
  } parameters{address, stream};
  return called(600, "cuMemFreeAsync", parameters, [&] { return release(address, stream, true); });
}
int cuDeviceGetDefaultMemPool(void** result, int number) {
  *result = &devices[static_cast<std::size_t>(number)].own_pool;
  return success;
}
int cuMemPoolCreate(void** result, const void* properties) {
  const struct {
    void** pool;
    const void* properties;
  } parameters{result, properties};
  return called(607, "cuMemPoolCreate", parameters, [&] {
    int fields[4];
    std::memcpy(fields, properties, sizeof fields);
    pool& made = made_pools.emplace_back();
    made.device = fields[3];
    *result = &made;
    return success;
  });
}
int cuMemPoolDestroy(void* ended) {
  const struct { void* pool; } parameters{ended};
  return called(608, "cuMemPoolDestroy", parameters, [&] {
    static_cast<pool*>(ended)->is_gone = true;
    return success;
  });
}
int cuMemPoolGetAttribute(void* asked, int attribute, void* value) {
  const std::lock_guard guard{lock};
  const auto& of = *static_cast<pool*>(asked);
  if (of.is_gone) std::abort();  // a driver would crash
  const std::uint64_t answers[4] = {of.reserved, of.reserved_high, of.used, of.used_high};
  if (attribute < 5 || attribute > 8) return invalid_value;
  std::memcpy(value, &answers[attribute - 5], sizeof answers[0]);
  return success;
}
int cuMemPoolSetAttribute(void* asked, int attribute, void* value) {
  const std::lock_guard guard{lock};
  auto& of = *static_cast<pool*>(asked);
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, value, sizeof wanted);
  if (wanted != 0) return invalid_value;  // high-water marks can only be reset
  if (attribute == 6)
    of.reserved_high = of.reserved;
  else if (attribute == 8)
    of.used_high = of.used;
  else
    return invalid_value;
  return success;
}

int cuMemCreate(unsigned long long* handle, std::size_t bytes, const void* properties, unsigned long long flags) {
  const struct {
    unsigned long long* handle;
    std::size_t bytes;
    const void* properties;
    unsigned long long flags;
  } parameters{handle, bytes, properties, flags};
  return called(549, "cuMemCreate", parameters, [&] {
    int fields[4];
    std::memcpy(fields, properties, sizeof fields);
    if (!take(fields[3], bytes)) return out_of_memory;
    *handle = ++next_handle;
    memories[*handle] = {bytes, fields[3], 1};
    return success;
  });
}
int cuMemRelease(unsigned long long handle) {
  const struct { unsigned long long handle; } parameters{handle};
  return called(550, "cuMemRelease", parameters, [&] {
    if (memories.count(handle) == 0) return invalid_value;
    drop(handle);
    return success;
  });
}
int cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, unsigned long long handle, unsigned long long flags) {
  const struct {
    CUdeviceptr address;
    std::size_t bytes;
    std::size_t offset;
    unsigned long long handle;
    unsigned long long flags;
  } parameters{address, bytes, offset, handle, flags};
  return called(551, "cuMemMap", parameters, [&] {
    ++memories.at(handle).uses;
    mappings[address] = {bytes, handle};
    return success;
  });
}
int cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const struct {
    CUdeviceptr address;
    std::size_t bytes;
  } parameters{address, bytes};
  return called(552, "cuMemUnmap", parameters, [&] {
    const auto found = mappings.find(address);
    if (found == mappings.end()) return invalid_value;
    drop(found->second.second);
    mappings.erase(found);
    return success;
  });
}
}
