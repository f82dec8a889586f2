#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

void library_allocate(std::size_t bytes) {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto scope = memprof::track_operation<"in library">();
  (void)memory->allocate(bytes);
}
