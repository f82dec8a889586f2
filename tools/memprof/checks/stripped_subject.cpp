// stripped_subject FILE: has the hook linked in, and writes a trace with all stacks to FILE. Three functions ask for one block
// each.
#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>

#include <cstdlib>
#include <new>

namespace {

/// An optimiser may leave out a block that nobody uses, but not this one.
template <class T>
[[gnu::always_inline]] inline T* keep(T* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

[[gnu::noinline]] char* grow() { return keep(new char[4'194'304]); }
[[gnu::noinline]] long* table() { return keep(new long[2]); }
[[gnu::noinline]] void* buffer() { return keep(std::malloc(100'000)); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  auto capture = memprof::begin_capture({.trace_file = arguments[1], .stacks = memprof::stack_capture::all});
  char* const grown = grow();
  long* const rows = table();
  void* const bytes = buffer();
  std::free(bytes);
  delete[] rows;
  delete[] grown;
  capture.end();
}
