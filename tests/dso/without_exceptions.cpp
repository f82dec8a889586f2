#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

// Begins a capture too, so that both files have the functions that check its options.
void library_allocate(std::size_t bytes) {
  static auto* const memory = new memprof::memory_resource{"dso"};
  if (bytes == 1) memprof::begin_capture({.ring_capacity = 8}).end();
  (void)memory->allocate(bytes);
}
