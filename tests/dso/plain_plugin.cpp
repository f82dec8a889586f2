// A plugin with no memory space of its own: nothing in its registry tells that it was used.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

DSO_TEST_VISIBLE void plugin_allocate(std::size_t bytes) {
  auto scope = memprof::track_operation<"in plugin">();
  (void)memprof::allocator<char>{}.allocate(bytes);
}
