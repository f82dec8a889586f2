// An executable that does not export the registry, and a plugin that therefore has one of its own.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/fact/unrecorded_module.hpp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace {

std::size_t rows(const memprof::profile& profile) { return memprof::rows_of<memprof::unrecorded_module>(profile.facts).size(); }

}  // namespace

int main(int count, char** arguments) {
  void* const plugin = dlopen(count > 1 ? arguments[1] : DSO_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return 2;
  memprof::memory_resource memory{"dso"};
  auto capture = memprof::begin_capture();
  void* const block = memory.allocate(1);
  reinterpret_cast<plugin_allocate_function*>(dlsym(plugin, "plugin_allocate"))(100);
  const memprof::profile during = memprof::current_profile();
  capture.end();
  std::fflush(stderr);
  const memprof::profile& profile = capture.profile();
  std::printf("%s: %lld byte\n", profile.exact ? "exact" : "not exact", static_cast<long long>(profile.space("dso").allocations));
  std::printf("while it ran: %zu, then: %zu\n", rows(during), rows(profile));
  std::fputs(memprof::to_text(profile).c_str(), stdout);
  memory.deallocate(block, 1);
}
