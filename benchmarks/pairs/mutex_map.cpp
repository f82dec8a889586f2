// A common pattern of memory trackers: one mutex, one map from address to size, the live bytes and their peak.
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace {

/// Memory for the map that bypasses operator new.
template <class T>
struct malloc_allocator {
  using value_type = T;
  malloc_allocator() = default;
  template <class Other>
  malloc_allocator(const malloc_allocator<Other>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(std::malloc(count * sizeof(T))); }
  void deallocate(T* address, std::size_t) { std::free(address); }
  bool operator==(const malloc_allocator&) const = default;
};

using size_by_address = std::unordered_map<void*, std::size_t, std::hash<void*>, std::equal_to<>,
                                           malloc_allocator<std::pair<void* const, std::size_t>>>;

struct tracker {
  std::mutex mutex;
  size_by_address blocks;
  std::size_t live = 0;
  std::size_t peak = 0;
};

tracker& all_blocks() {
  // Never destroyed: blocks are freed after main.
  alignas(tracker) static std::byte memory[sizeof(tracker)];
  static tracker* const only = new (memory) tracker;
  return *only;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const address = std::malloc(bytes);
  if (address == nullptr) throw std::bad_alloc{};
  tracker& tracked = all_blocks();
  const std::lock_guard lock{tracked.mutex};
  tracked.blocks.emplace(address, bytes);
  tracked.live += bytes;
  if (tracked.live > tracked.peak) tracked.peak = tracked.live;
  return address;
}

void operator delete(void* address) noexcept {
  if (address == nullptr) return;
  {
    tracker& tracked = all_blocks();
    const std::lock_guard lock{tracked.mutex};
    if (const auto found = tracked.blocks.find(address); found != tracked.blocks.end()) {
      tracked.live -= found->second;
      tracked.blocks.erase(found);
    }
  }
  std::free(address);
}

void operator delete(void* address, std::size_t) noexcept { ::operator delete(address); }
