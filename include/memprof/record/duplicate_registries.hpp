#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

/// @file
/// Finds parts of the process whose events reach no profile, because they were linked in a way that gives them a registry of
/// their own (record/registry.hpp explains how).

namespace memprof::inline MEMPROF_ABI::detail {

/// File paths, each with its terminating zero, in pages that no hook sees.
using module_paths = page_array<char>;

[[nodiscard]] inline bool append_path(module_paths& paths, const char* path) noexcept {
  const std::size_t before = paths.size();
  const std::size_t length = std::strlen(path) + 1;
  if (!paths.resize(before + length)) return false;
  std::memcpy(paths.data() + before, path, length);
  return true;
}

#if defined(__linux__)

/// Asks for the path of the loaded object with that number.
struct module_query {
  std::uint32_t number;
  char path[4096];
};

/// Copies the path of the module that `query` asks for; false if there are fewer modules.
[[nodiscard]] inline bool find_module(module_query& query) noexcept {
  const auto visit = [](dl_phdr_info* module, std::size_t, void* asked) {
    auto& wanted = *static_cast<module_query*>(asked);
    if (wanted.number-- != 0) return 0;
    std::strncpy(wanted.path, module->dlpi_name == nullptr ? "" : module->dlpi_name, sizeof wanted.path - 1);
    return 1;
  };
  return ::dl_iterate_phdr(visit, &query) != 0;
}

inline constexpr const char* registry_symbol = "_ZN7memprof5abi_116process_registryE";

/// Whether a library that defines a registry may still be bound to this one, because the program exports it.
[[nodiscard]] inline bool is_exported() noexcept { return ::dlsym(RTLD_DEFAULT, registry_symbol) == &abi_1::process_registry; }

/// Whether a loaded library records in a registry of its own.
[[nodiscard]] inline bool has_other_registry(const char* path) noexcept {
  // Outside `find_module`, where the loader's lock is held. The library is already loaded, so this only looks it up.
  void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const auto* const found = static_cast<const registry*>(::dlsym(handle, registry_symbol));
  Dl_info place{};
  // The lookup also searches the library's dependencies, which are examined on their own. A library that does not use the
  // registry has none.
  const bool has_own = found != nullptr && found != &abi_1::process_registry &&
                       found->layout_version == registry::current_layout_version && ::dladdr(found, &place) != 0 &&
                       place.dli_fname != nullptr && std::strcmp(place.dli_fname, path) == 0;
  // A library bound to another registry leaves its own untouched, without a single name in it.
  const bool is_apart = has_own && (found->labels != nullptr || !is_exported());
  ::dlclose(handle);
  return is_apart;
}

/// The loaded libraries that record in a registry other than this one. The executable cannot be examined. Not under the
/// registry's lock: a library's constructor may wait for it while the loader waits for the constructor.
[[nodiscard]] inline module_paths find_duplicate_registries() noexcept {
  const internal_guard hidden;  // the loader allocates
  module_paths paths;
  module_query query{};
  for (std::uint32_t number = 0;; ++number) {
    query.number = number;
    if (!find_module(query)) return paths;
    const bool is_executable = query.path[0] == '\0';
    if (is_executable || !has_other_registry(query.path)) continue;
    if (!append_path(paths, query.path)) return paths;
  }
}

#else

[[nodiscard]] inline module_paths find_duplicate_registries() noexcept { return {}; }

#endif

/// Says on stderr whose events are missing.
inline void warn_about_duplicate_registries(const module_paths& paths) noexcept {
  for (std::size_t begin = 0; begin < paths.size(); begin += std::strlen(paths.data() + begin) + 1) {
    std::fprintf(stderr,
                 "memprof: allocations by %s are missing from this profile: it has a registry of its own; link the executable "
                 "with -rdynamic (CMake: ENABLE_EXPORTS ON)\n",
                 paths.data() + begin);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
