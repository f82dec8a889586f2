// An executable, a shared library that it links, one that was compiled without memprof, and a plugin that it loads with
// RTLD_LOCAL, all built with hidden visibility, are one process with one registry.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

/// A plugin that is loaded until the end of the scope.
class loaded_plugin {
 public:
  loaded_plugin() : handle_(dlopen(DSO_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) std::printf("%s\n", dlerror());
  }
  loaded_plugin(const loaded_plugin&) = delete;
  loaded_plugin& operator=(const loaded_plugin&) = delete;
  ~loaded_plugin() { dlclose(handle_); }

  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

std::int64_t self_allocated(const memprof::profile& profile, const char* path) {
  const memprof::operation_profile* const found = profile.find_operation(path);
  return found == nullptr || found->usage.empty() ? 0 : found->usage[0].self_allocated;
}

void counts_from_all_parts_land_in_one_profile() {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto capture = memprof::begin_capture({.ring_capacity = 8});
  {
    auto outer = memprof::track_operation<"outer">();
    (void)memory->allocate(1);
    const loaded_plugin plugin;
    for (int round = 0; round < 10; ++round) {
      plugin.find<plugin_allocate_function>("plugin_allocate")(100);
#if DSO_TEST_LIBRARIES
      library_allocate(10'000);
      disabled_library_allocate(1'000'000);
#endif
    }
    std::thread{[&plugin] { plugin.find<plugin_allocate_function>("plugin_allocate")(50); }}.join();
  }
  capture.end();
  const memprof::profile& profile = capture.profile();
  expect(profile.segments.size() == 1, "a disabled part ends no segment");
  expect(profile.space("dso").allocations == 1 + 1'000 + 50 + (DSO_TEST_LIBRARIES ? 100'000 : 0), "all parts are counted");
  expect(self_allocated(profile, "outer") == 1, "the executable's operation");
  expect(self_allocated(profile, "outer/in plugin") == 1'000, "its scope is the parent of the plugin's");
  expect(self_allocated(profile, "in plugin") == 50, "the plugin's own thread has no parent");
  expect(!DSO_TEST_LIBRARIES || self_allocated(profile, "outer/in library") == 100'000, "and of the library's");
  expect(profile.find_operation("outer/in disabled library") == nullptr, "a disabled part opens no operation");
  expect(profile.find_space("cpu") == nullptr, "a disabled allocator records nothing");
  expect(profile.exact && profile.anomalies == memprof::event_anomalies{}, "nothing unusual");
}

void a_plugin_may_begin_the_capture_and_be_closed() {
  static auto* const memory = new memprof::memory_resource{"dso"};
  {
    const loaded_plugin plugin;
    plugin.find<plugin_begin_capture_function>("plugin_begin_capture")();
  }
  // Rings of four: the drains below run code that the plugin brought.
  for (int count = 0; count < 100; ++count) memory->deallocate(memory->allocate(20), 20);
  memprof::snapshot("AFTER_DLCLOSE");
  memprof::end_capture();
  const memprof::profile profile = memprof::current_profile();
  expect(profile.space("dso").allocations == 2'000, "recorded after the plugin was closed");
  expect(profile.segments.size() == 2, "two segments");
  expect(profile.space("plugin backend").cumulative_current == 0, "the plugin's backend was detached");
}

}  // namespace

int main() {
  counts_from_all_parts_land_in_one_profile();
  a_plugin_may_begin_the_capture_and_be_closed();
  counts_from_all_parts_land_in_one_profile();
  return failures == 0 ? 0 : 1;
}
