#pragma once

#include <memprof/core/clock.hpp>
#include <memprof/core/event_ring.hpp>
#include <memprof/core/label.hpp>
#include <memprof/core/reserved_addresses.hpp>
#include <memprof/detail/spin_lock.hpp>

#include <atomic>
#include <cstdint>
#include <new>
#include <string_view>

namespace memprof::abi_1 {

/// Everything that the parts of one process share: exactly one object per process, whatever shared libraries it is made of
/// and with whatever macros they were compiled. It is never destroyed.
///
/// Its layout is frozen: a change of any type in it needs a new `abi_N` namespace and a new `layout_version`, so that two
/// versions of the library in one process do not read each other's words.
struct registry {
  static constexpr std::uint32_t current_layout_version = 1;
  static constexpr std::uint32_t max_spaces = any_space;

  std::uint32_t layout_version = current_layout_version;
  std::uint32_t capture_count = 0;

  // What every event reads. Both words change seldom, so they stay in every core's cache.
  alignas(64) std::atomic<std::uint32_t> active_capture{0};  ///< number of the active capture, from 1; 0: none
  std::atomic<std::uint32_t> no_dispatch{0};                 ///< the same if its `run_mode` is `no_dispatch`
  std::atomic<std::uint64_t> order_word{0};                  ///< see core/event_order.hpp
  stamp_source stamps;

  alignas(64) detail::spin_lock lock;
  std::atomic<event_ring*> rings{nullptr};
  std::uint32_t ring_count = 0;
  std::uint32_t ring_capacity = 1024;  ///< events in rings that are made or emptied from now on
  bool drop_when_full = false;         ///< `overflow::drop`
  std::atomic<std::uint64_t> dropped_events{0};
  std::atomic<std::uint64_t> reentrant_events{0};
  std::uint64_t ring_bytes = 0;
  bool has_fork_handlers = false;

  // How often the order word changed hands; tests and `stats` read them.
  std::uint64_t drains = 0;
  std::uint64_t order_epoch = 0;
  std::uint64_t lone_ring = 0;  ///< id of the ring that was alone in the last drain
  std::uint32_t grants = 0;
  std::atomic<std::uint32_t> revocations{0};
  bool can_grant = false;  ///< whether the system has `membarrier`

  /// Empties all rings in order into the active capture's ledger. Called under the lock; null while there is no capture.
  void (*drain)(registry&) noexcept = nullptr;
  void* capture = nullptr;            ///< the active or last capture; its type is known to `drain`'s module
  event_ring** drain_heap = nullptr;  ///< scratch of the drain: `ring_count` entries
  std::uint32_t drain_heap_capacity = 0;

  /// Addresses of blocks that do not exist; null before the first capture with `run_mode::no_dispatch`.
  std::atomic<reserved_addresses*> reserved{nullptr};

  label_table* labels = nullptr;
  label space_names[max_spaces + 1] = {};
  std::uint32_t space_count = 0;

  /// Records for threads whose thread-local objects are gone; used under the lock.
  thread_context exited_threads;
};

/// The process's registry: one object, whatever parts define it, because its symbol is visible even under `-fvisibility=hidden`
/// and the dynamic linker binds all parts to the first definition it finds.
///
/// An executable that uses memprof and loads a plugin that does too must export the symbol. The CMake target `memprof::memprof`
/// sees to that (memprof.dynamic-list), and the linker does where a shared library that it links uses memprof; elsewhere link the
/// executable with `-rdynamic`. This holds for GCC and clang. Without it the plugin has a registry of its own, whose events no
/// profile holds; `capture/other_registries.hpp` finds that out and says so. Plugins of an executable without memprof share one
/// registry if they are built with GCC, whose unique symbols hold under `RTLD_LOCAL`, or are loaded with `RTLD_GLOBAL`.
[[gnu::visibility("default")]] inline constinit registry process_registry{};

/// The calling thread's part of the recording path. In static storage of the executable's first libraries, hence one
/// instruction away; it is small because a library that is loaded later takes it from a scarce reserve.
[[gnu::visibility("default")]] [[gnu::tls_model("initial-exec")]] inline constinit thread_local thread_context this_thread{};

/// The id of `text`; 0 if the system has no memory. Under the lock.
[[nodiscard]] inline label intern(registry& shared, std::string_view text) noexcept {
  if (shared.labels == nullptr) {
    void* const pages = detail::map_pages(sizeof(label_table));
    if (pages == nullptr) return 0;
    shared.labels = new (pages) label_table;
    shared.space_names[cpu_space] = shared.labels->intern("cpu");
    shared.space_count = 1;
  }
  return shared.labels->intern(text);
}

}  // namespace memprof::abi_1

namespace memprof {

using abi_1::registry;

}  // namespace memprof
