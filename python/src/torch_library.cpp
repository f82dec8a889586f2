#include "torch_library.hpp"

#include "core.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "../memprof/torch/backend.h"

namespace memprof_python {
namespace {

using library = const memprof_torch_calls*;

// Under the interpreter's lock.
library recording = nullptr;
library simulating = nullptr;
library latest = nullptr;    ///< that the newest capture uses
library counting = nullptr;  ///< that counts operators
int counting_pairs = 0;

/// What a capture keeps of a library: it may be called long after another has been attached.
struct torch_source {
  library calls;
  void* source;
};

/// Of the active capture. A capture may end without the interpreter's lock.
std::mutex recording_now_lock;
torch_source* recording_now = nullptr;

void forget_recording(void* source) noexcept {
  const std::lock_guard locked{recording_now_lock};
  if (recording_now == source) recording_now = nullptr;
}

[[nodiscard]] library& library_for(memprof::run_mode mode) noexcept {
  return mode == memprof::run_mode::no_dispatch ? simulating : recording;
}

[[nodiscard]] torch_source& as_source(void* source) noexcept { return *static_cast<torch_source*>(source); }

constexpr memprof::detail::backend_calls calls_of_source{
    [](void* source) noexcept {
      forget_recording(source);
      as_source(source).calls->detach(as_source(source).source);
    },
    [](void* source) { as_source(source).calls->report_facts(as_source(source).source); },
    [](void* source) noexcept {
      forget_recording(source);
      const std::unique_ptr<torch_source> owned{&as_source(source)};
      owned->calls->destroy(owned->source);
    }};

/// A library shares the registry of the module that this function is in, which Python loads for itself alone.
void share_registry() {
  Dl_info module;
  if (::dladdr(reinterpret_cast<const void*>(&share_registry), &module) == 0 ||
      ::dlopen(module.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == nullptr) {
    memprof::detail::raise("memprof.torch: the extension module cannot share its registry");
  }
}

}  // namespace

bool torch_library::is_loaded(memprof::run_mode mode) noexcept { return library_for(mode) != nullptr; }

void torch_library::load(const std::string& path, memprof::run_mode mode) {
  if (is_loaded(mode)) return;
  share_registry();
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) memprof::detail::raise(std::string{"memprof.torch: "} + ::dlerror());
  const auto function = reinterpret_cast<memprof_torch_function*>(::dlsym(handle, "memprof_torch"));
  const library found = function == nullptr ? nullptr : function();
  if (found == nullptr || found->version != MEMPROF_TORCH_CALLS_VERSION)
    memprof::detail::raise("memprof.torch: '" + path + "' is not of this version of memprof; remove it");
  library_for(mode) = found;
}

memprof::detail::capture_backends torch_library::attach(memprof::run_mode mode, const memprof::device_description& device,
                                                        name_of_caller caller) {
  const memprof::detail::recording_suppressor hidden;
  auto made = std::make_unique<torch_source>(torch_source{library_for(mode), nullptr});
  made->calls->name_callers(caller);
  char reason[1024] = "";
  made->source = made->calls->attach(&device, sizeof device, reason, sizeof reason);
  if (made->source == nullptr) memprof::detail::raise(reason);
  latest = made->calls;
  {
    const std::lock_guard locked{recording_now_lock};
    recording_now = made.get();
  }
  return {made.release(), &calls_of_source};
}

void torch_library::attach_cuda() {
  const memprof::detail::recording_suppressor hidden;
  const std::lock_guard locked{recording_now_lock};
  if (recording_now != nullptr && recording_now->calls->attach_cuda != nullptr)
    recording_now->calls->attach_cuda(recording_now->source);
}

void torch_library::annotate(std::uintptr_t tensor, const std::string& name, const std::string& category) {
  const memprof::category kind = category_of(category).value_or(memprof::category::other);
  if (latest != nullptr) latest->annotate(reinterpret_cast<void*>(tensor), name.c_str(), static_cast<unsigned>(kind));
}

const memprof_torch_simulation* torch_library::simulation() noexcept {
  return simulating == nullptr ? nullptr : simulating->simulation;
}

void torch_library::begin_operators() {
  if (counting_pairs++ == 0) counting = recording != nullptr ? recording : simulating;
  counting->begin_operators();
}

void torch_library::end_operators() {
  counting->end_operators();
  --counting_pairs;
}

}  // namespace memprof_python
