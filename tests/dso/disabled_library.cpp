// Compiled with MEMPROF_ENABLED=0 and linked with parts that are not.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

#include <vector>

static_assert(MEMPROF_ENABLED == 0);

void disabled_library_allocate(std::size_t bytes) {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto capture = memprof::begin_capture();  // none is begun, so none is refused
  auto scope = memprof::track_operation<"in disabled library">();
  auto other = memprof::track_operation("in disabled library as well", memprof::category::gradient);
  (void)memory->allocate(bytes);
  std::vector<char, memprof::allocator<char>> values(bytes);
  memprof::annotate(values.data(), {.name = "nothing"});
  memprof::snapshot("NOT A SEGMENT");
  capture.end();
  memprof::end_capture();
  memprof::discard_capture();
}
