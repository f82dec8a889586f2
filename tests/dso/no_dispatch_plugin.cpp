// Built into two plugins, each of which has all of memprof for itself but what is exported.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

DSO_TEST_VISIBLE void plugin_capture_no_dispatch() {
  auto capture = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch});
}

DSO_TEST_VISIBLE void plugin_touch_phantom() {
  auto capture = memprof::begin_capture({.mode = memprof::run_mode::no_dispatch});
  memprof::memory_resource memory{"dso"};
  *static_cast<volatile char*>(memory.allocate(1)) = 1;
}
