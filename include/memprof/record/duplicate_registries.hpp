#pragma once

#include <memprof/record/registry.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

/// @file
/// Finds parts of the process whose events no profile will hold, because they were linked such that they have a registry of
/// their own (record/registry.hpp says how that comes about).

namespace memprof::detail {

#if defined(__linux__)

/// Asks for the path of the loaded object of that number.
struct module_query {
  std::uint32_t number;
  char path[4096];
};

/// Copies the path of the module that `query` asks for; false if there are not so many.
[[nodiscard]] inline bool find_module(module_query& query) noexcept {
  const auto visit = [](dl_phdr_info* module, std::size_t, void* asked) {
    auto& wanted = *static_cast<module_query*>(asked);
    if (wanted.number-- != 0) return 0;
    std::strncpy(wanted.path, module->dlpi_name == nullptr ? "" : module->dlpi_name, sizeof wanted.path - 1);
    return 1;
  };
  return ::dl_iterate_phdr(visit, &query) != 0;
}

/// Whether a loaded library records in a registry of its own.
[[nodiscard]] inline bool has_other_registry(const char* path) noexcept {
  // Not inside `find_module`: the loader's lock is held there. The library is loaded, so this only looks it up.
  void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const auto* const found = static_cast<const registry*>(::dlsym(handle, "_ZN7memprof5abi_116process_registryE"));
  // Every library brings a registry, and those that are bound to another leave their own untouched: without a name in it.
  const bool is_in_use = found != nullptr && found != &abi_1::process_registry &&
                         found->layout_version == registry::current_layout_version && found->labels != nullptr;
  ::dlclose(handle);
  return is_in_use;
}

/// Counts the loaded libraries that record in another registry than this code, and warns of each on stderr. The executable cannot
/// be looked into. Not under the lock: a library's constructor may wait for it while the loader waits for the constructor.
inline std::uint32_t count_other_registries() noexcept {
  std::uint32_t count = 0;
  module_query query{};
  for (std::uint32_t number = 0;; ++number) {
    query.number = number;
    if (!find_module(query)) return count;
    if (query.path[0] == '\0') continue;  // the executable
    if (!has_other_registry(query.path)) continue;
    ++count;
    std::fprintf(stderr,
                 "memprof: what %s allocates is missing in this profile: it has a registry of its own; link the executable with "
                 "-rdynamic (CMake: ENABLE_EXPORTS ON)\n",
                 query.path);
  }
}

#else

inline std::uint32_t count_other_registries() noexcept { return 0; }

#endif

}  // namespace memprof::detail
