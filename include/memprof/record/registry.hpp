#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/event_ring.hpp>
#include <memprof/record/own_file.hpp>
#include <memprof/record/stack_recorder.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
class profiler_blocks;
class phantom_addresses;
struct ring_places;
}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::abi_1 {

/// Everything that the parts of one process share: exactly one object per process, whatever shared libraries it consists of and
/// whatever macros they were compiled with. Never destroyed.
///
/// Its layout is frozen: changing any type in it, or how rings and the order word are used, requires a new `abi_N` namespace and
/// a new `layout_version`, so that two versions of the library in one process do not read each other's words. Versions with the
/// same layout record into the same capture. Only parts like the one that began a capture know its type (`capture_version`).
struct registry {
  static constexpr std::uint32_t current_layout_version = 1;
  static constexpr std::uint32_t max_spaces = extend::any_space;

  std::uint32_t layout_version = current_layout_version;
  std::uint32_t capture_count = 0;

  /// Calls `visit(context, address, bytes)` for each live block of a space of the active capture. Called under the lock, after a
  /// drain; null while there is no capture. It lies where versions before it had nothing.
  void (*visit_live_blocks)(registry&, std::uint8_t space, void* context,
                            void (*visit)(void* context, const void* address, std::size_t bytes)) = nullptr;

  // Read by every event. Both words rarely change, so they stay in every core's cache.
  alignas(64) std::atomic<std::uint32_t> active_capture{0};  ///< number of the active capture, from 1; 0: none
  std::atomic<std::uint32_t> no_dispatch{0};                 ///< likewise if its `run_mode` is `no_dispatch`, otherwise 0
  std::atomic<std::uint64_t> order_word{0};                  ///< see record/event_order.hpp
  detail::stamp_source stamps;

  // These lie where versions before them had nothing, so that the layout is the same.
  std::atomic<std::uint32_t> heap_stacks{0};     ///< of the active capture: a `stack_capture`; changed under the lock
  std::atomic<std::uint32_t> uses{0};            ///< of the active capture: whether it records uses of blocks; likewise
  std::atomic<stack_recorder*> stacks{nullptr};  ///< null: nothing records the heap
  /// Gives the active capture a table of facts, as `encode_facts` makes it: the types of a table differ between versions and with
  /// the `std::string` that a part was compiled with. Called under the lock; null while there is no capture.
  void (*add_fact_records)(registry&, std::string_view) = nullptr;

  alignas(64) detail::futex_lock lock;
  std::atomic<detail::event_ring*> rings{nullptr};
  std::uint32_t ring_count = 0;
  std::uint32_t ring_capacity = 1024;       ///< events per ring, for rings created or emptied from now on
  std::atomic<bool> drop_when_full{false};  ///< `overflow::drop`; changed under the lock
  std::atomic<std::uint64_t> dropped_events{0};
  std::atomic<std::uint64_t> reentrant_events{0};
  std::uint64_t ring_bytes = 0;
  std::uint32_t thread_count = 0;  ///< threads that have ever recorded
  bool has_fork_handlers = false;

  /// The thread that holds the lock across a `fork`, with its process: events from the program's fork handlers must not wait for
  /// the lock. Null otherwise. Any thread reads it to find out whether it is the forking one.
  std::atomic<const detail::thread_slot*> forking{nullptr};
  std::int64_t forking_process = 0;

  // Changes of the order word; read by tests and `stats`.
  std::uint64_t drains = 0;
  std::uint64_t order_epoch = 0;
  std::uint64_t sole_ring = 0;  ///< id of the ring that was alone in the last drain
  std::uint32_t grants = 0;
  std::atomic<std::uint32_t> revocations{0};
  bool can_grant = false;  ///< whether the system has `membarrier`

  /// Makes room for the thread's next event: gives it a ring, or empties the one it has. Called under the lock; set by the first
  /// capture, and never null after that.
  room (*make_room)(registry&, thread_slot&) noexcept = nullptr;

  /// Drains all rings in order into the active capture. Called under the lock; null while there is no capture.
  void (*drain)(registry&) noexcept = nullptr;
  /// Gives the active capture an event without a thread, ordered after everything drained so far. Called under the lock; null
  /// while there is no capture.
  void (*put_event)(registry&, const extend::event&) noexcept = nullptr;
  /// Tell the active capture about a new name and a new memory space. Called under the lock; null while there is no capture.
  void (*define_name)(registry&, extend::label) noexcept = nullptr;
  void (*define_space)(registry&, std::uint8_t) noexcept = nullptr;
  /// Always null: here earlier builds look for a function that takes a table itself.
  void (*former_add_facts)() = nullptr;
  detail::futex_lock backend_lock;            ///< serialises calls to a capture's backends; taken before `lock`, never inside it
  void* capture = nullptr;                    ///< the active or last capture; only parts like the one that began it know its type
  std::uint32_t capture_version = 0;          ///< that part's `part_version`
  detail::event_ring** drain_heap = nullptr;  ///< scratch of the drain: `ring_count` entries
  std::uint32_t drain_heap_capacity = 0;
  detail::ring_places* places =
      nullptr;                  ///< places for rings while the active capture's trace file has mapped pages; otherwise null
  detail::own_file trace_file;  ///< that file while it is open, mapped or not

  /// Addresses of blocks that do not exist; null before the first capture with `run_mode::no_dispatch`.
  std::atomic<detail::phantom_addresses*> phantom{nullptr};

  /// The profiler's own blocks that the program may free; null before the first.
  std::atomic<detail::profiler_blocks*> profiler_blocks{nullptr};

  /// Bytes that `malloc` may take for the alignment of the program's live aligned blocks, beside their own.
  std::atomic<std::int64_t> alignment_bytes{0};

  detail::label_table* labels = nullptr;
  extend::label space_names[max_spaces + 1] = {};
  extend::label space_memories[max_spaces + 1] = {extend::host_memory};  ///< by id; 0: the space has a memory to itself
  std::uint32_t space_count = 0;
};
static_assert(std::is_trivially_destructible_v<registry>, "programs record until their last instruction");
static_assert(offsetof(registry, active_capture) == 64 && offsetof(registry, order_word) == 72 &&
                  offsetof(registry, lock) == 128 && offsetof(registry, add_fact_records) < 128,
              "its layout is frozen");

/// The process's registry: a single object, however many parts define it, because its symbol is visible even under
/// `-fvisibility=hidden` and the dynamic linker binds all parts to the first definition it finds.
///
/// An executable that uses memprof and loads a plugin that uses it too must export the symbol. The CMake target
/// `memprof::memprof` ensures this (memprof.dynamic-list), as does the linker if the executable links a shared library that uses
/// memprof; in other cases, link the executable with `-rdynamic`. This holds for GCC and clang. Without the export, the plugin
/// has its own registry, whose events reach no profile; `record/duplicate_registries.hpp` detects and reports that. Plugins of an
/// executable without memprof share one registry if they are built with GCC, whose unique symbols hold under `RTLD_LOCAL`, or are
/// loaded with `RTLD_GLOBAL`.
[[gnu::visibility("default")]] inline constinit registry process_registry{};

/// The calling thread's access to its ring. In static thread-local storage, hence one instruction away; small, because a library
/// loaded later takes it from a scarce reserve. Usable until the thread's last instruction.
[[gnu::visibility("default")]] [[gnu::tls_model("initial-exec")]] inline constinit thread_local thread_slot this_thread{};

}  // namespace memprof::abi_1

namespace memprof::inline MEMPROF_ABI {

using abi_1::registry;

namespace detail {

/// Maximum number of names in a process: a program that keeps making new names, each with a number in it, still uses bounded
/// memory.
inline constexpr label_limits max_interned_names{65'536, std::size_t{8} << 20};

/// The id of `text`; 0 if the system has no memory, `other_names` if it is new and there are too many. Under the lock.
[[nodiscard]] inline label intern(registry& shared, std::string_view text, const label_limits& most) noexcept {
  if (shared.labels == nullptr) {
    void* const pages = detail::map_pages(sizeof(label_table));
    if (pages == nullptr) return 0;
    shared.labels = new (pages) detail::label_table;
    shared.space_names[cpu_space] = shared.labels->intern("cpu");
    shared.space_count = 1;
  }
  const std::size_t known = shared.labels->size();
  const label id = shared.labels->intern(text, most);
  if (shared.labels->size() != known && shared.define_name != nullptr) shared.define_name(shared, id);
  return id;
}

/// The same with the limits for names. Those of stacks, which have limits of their own, do not count.
[[nodiscard]] inline label intern(registry& shared, std::string_view text) noexcept {
  label_limits most = max_interned_names;
  // Acquire pairs with the release of the hooks, when their library is loaded.
  if (const abi_1::stack_recorder* const stacks = shared.stacks.load(std::memory_order_acquire); stacks != nullptr) {
    most.names += stacks->names;
    most.text_bytes += stacks->text_bytes;
  }
  return intern(shared, text, most);
}

/// The number of the active capture; 0: there is none.
[[nodiscard]] inline std::uint32_t active_capture() noexcept {
  return abi_1::process_registry.active_capture.load(std::memory_order_relaxed);
}

/// Holds the registry's lock until the end of the scope. A thread that is forking already holds it.
///
/// Meanwhile the thread's signals are blocked: a handler that leaves by `siglongjmp` would never release the lock. While it
/// waits, handlers run.
class [[nodiscard]] registry_guard {
 public:
  explicit registry_guard(registry& shared) noexcept : shared_(shared) { lock(); }
  /// Never waits.
  registry_guard(registry& shared, try_to_lock) noexcept
      : shared_(shared), is_held_(is_forking(shared) || shared.lock.try_lock()) {}
  registry_guard(const registry_guard&) = delete;
  registry_guard& operator=(const registry_guard&) = delete;
  ~registry_guard() {
    if (is_held_ && !is_forking(shared_)) shared_.lock.unlock();
  }
  explicit operator bool() const noexcept { return is_held_; }

  /// Whether the calling thread is running its process's fork handlers.
  [[nodiscard]] static bool is_forking(const registry& shared) noexcept {
    // Relaxed: only the thread itself ever stores its own address here.
    return shared.forking.load(std::memory_order_relaxed) == &abi_1::this_thread;
  }

 private:
  void lock() noexcept {
    constexpr std::int64_t look_ns = 20'000'000;
    if (is_forking(shared_)) return;
    while (!shared_.lock.lock_for(look_ns)) signals_.let_through();
  }

  signal_guard signals_;  // first, so that handlers run once the lock is released
  registry& shared_;
  bool is_held_ = true;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
