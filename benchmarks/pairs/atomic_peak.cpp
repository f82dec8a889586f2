// Another common pattern: process-wide atomic counters, the peak raised by compare-and-swap, the size in front of each block.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::size_t> live{0};
constinit std::atomic<std::size_t> peak{0};
constinit std::atomic<std::size_t> allocations{0};
constinit std::atomic<std::size_t> deallocations{0};

/// Preserves the alignment of the data that follows.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) prefix {
  std::size_t bytes;
};

}  // namespace

void* operator new(std::size_t bytes) {
  auto* const block = static_cast<prefix*>(std::malloc(sizeof(prefix) + bytes));
  if (block == nullptr) throw std::bad_alloc{};
  block->bytes = bytes;
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
  return block + 1;
}

void operator delete(void* address) noexcept {
  if (address == nullptr) return;
  auto* const block = static_cast<prefix*>(address) - 1;
  deallocations.fetch_add(1, std::memory_order_relaxed);
  live.fetch_sub(block->bytes, std::memory_order_relaxed);
  std::free(block);
}

void operator delete(void* address, std::size_t) noexcept { ::operator delete(address); }
