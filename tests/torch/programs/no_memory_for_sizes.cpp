// A program whose heap is full for a while: the sizes of blocks recorded meanwhile are unknown, and nothing else happens.

#include <memprof/backend/torch/capture/block_sizes.hpp>
#include <memprof/memprof.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

bool is_heap_full = false;
int faults = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("fault: %s\n", what);
  ++faults;
}

}  // namespace

// Not inlined: GCC would take the `free` of one for a mismatch with the `new` of the other.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const address = is_heap_full ? nullptr : std::malloc(bytes);
  if (address == nullptr) throw std::bad_alloc{};
  return address;
}
[[gnu::noinline]] void operator delete(void* address) noexcept { std::free(address); }
[[gnu::noinline]] void operator delete(void* address, std::size_t) noexcept { std::free(address); }

int main() {
  static memprof::detail::block_sizes sizes;
  char known = 0;
  char unknown = 0;
  sizes.insert(&known, 100);
  is_heap_full = true;
  try {
    sizes.insert(&unknown, 200);
    sizes.insert(&known, 300);
  } catch (const std::bad_alloc&) {
    check(false, "a size that cannot be kept is no fault of the operator that allocates");
  }
  is_heap_full = false;
  check(sizes.take(&unknown) == 0, "a size that could not be kept is unknown");
  check(sizes.take(&known) == 300, "a size that is known already can be given anew");
  return faults == 0 ? 0 : 1;
}
