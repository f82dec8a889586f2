#include "torch_library.hpp"

#include "core.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "../memprof/torch/backend.h"

namespace memprof_python {
namespace {

const memprof_torch_calls* loaded = nullptr;  // under the interpreter's lock

constexpr memprof::detail::backend_calls calls_of_source{[](void* source) noexcept { loaded->detach(source); },
                                                         [](void* source) { loaded->report_facts(source); },
                                                         [](void* source) noexcept { loaded->destroy(source); }};

/// The library shares the registry of the module that this function is in, which Python loads for itself alone.
void share_registry() {
  Dl_info module;
  if (::dladdr(reinterpret_cast<const void*>(&share_registry), &module) == 0 ||
      ::dlopen(module.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == nullptr) {
    memprof::detail::raise("memprof.torch: the extension module cannot share its registry");
  }
}

}  // namespace

bool torch_library::is_loaded() noexcept { return loaded != nullptr; }

void torch_library::load(const std::string& path) {
  if (loaded != nullptr) return;
  share_registry();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) memprof::detail::raise(std::string{"memprof.torch: "} + ::dlerror());
  const auto function = reinterpret_cast<memprof_torch_function*>(::dlsym(library, "memprof_torch"));
  const memprof_torch_calls* const found = function == nullptr ? nullptr : function();
  if (found == nullptr || found->version != MEMPROF_TORCH_CALLS_VERSION)
    memprof::detail::raise("memprof.torch: '" + path + "' is not of this version of memprof; remove it");
  loaded = found;
}

memprof::detail::capture_backends torch_library::attach() {
  const memprof::detail::recording_suppressor hidden;
  char reason[1024] = "";
  void* const source = loaded->attach(reason, sizeof reason);
  if (source == nullptr) memprof::detail::raise(reason);
  return {source, &calls_of_source};
}

void torch_library::annotate(std::uintptr_t tensor, const std::string& name, const std::string& category) {
  const memprof::category kind = category_of(category).value_or(memprof::category::other);
  loaded->annotate(reinterpret_cast<void*>(tensor), name.c_str(), static_cast<unsigned>(kind));
}

void torch_library::begin_operators() { loaded->begin_operators(); }
void torch_library::end_operators() { loaded->end_operators(); }

}  // namespace memprof_python
