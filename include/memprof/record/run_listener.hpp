#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/label.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::abi_1 {

/// What `memprof run` hears of a program that has a capture of its own, for its trace. Called on the thread concerned. Its layout
/// is frozen, as the registry's.
struct run_listener {
  /// An operation has begun; `scope` tells it from others that are open. `tag` is as in its event.
  void (*operation_began)(const void* scope, const char* name, std::size_t length, std::uint16_t tag) noexcept;
  void (*operation_ended)(const void* scope) noexcept;
  void (*segment_ended)(const char* name, std::size_t length) noexcept;
};

/// Null unless the program runs under `memprof run`, which finds it by its symbol and sets it before `main`.
[[gnu::visibility("default")]] inline constinit std::atomic<const run_listener*> process_run_listener{nullptr};

}  // namespace memprof::abi_1

namespace memprof::inline MEMPROF_ABI::detail {

[[gnu::cold, gnu::noinline]] inline void tell_operation_began(const abi_1::run_listener& listener, const void* scope, label name,
                                                              std::uint16_t tag) noexcept {
  std::string_view text;
  {
    const control_guard control;
    text = abi_1::process_registry.labels->text(name);  // which stays where it is
  }
  listener.operation_began(scope, text.data(), text.size(), tag);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
