// A library without memprof that allocates when it is loaded, used and unloaded: four blocks of 1, 2, 4 and 8 times BYTES, in
// place of the third of which there is a byte if BYTES is 0, as `realloc` would free.
#include <cstdlib>

namespace {

void* volatile kept = nullptr;

void allocate_and_free(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
}

[[gnu::constructor]] void begin() { kept = std::malloc(BYTES); }
[[gnu::destructor]] void end() {
  std::free(kept);
  allocate_and_free(std::size_t{8} * BYTES);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void work() {
  allocate_and_free(std::size_t{2} * BYTES);
  kept = std::realloc(kept, BYTES == 0 ? 1 : std::size_t{4} * BYTES);
}
