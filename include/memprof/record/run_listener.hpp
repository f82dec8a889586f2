#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::abi_1 {

/// What `memprof run` hears of a program that has a capture of its own, for its trace. Called on the thread concerned. Its layout
/// is frozen, as the registry's. An `id`, the `scope_address` of the operation's number and thread, tells those that are open
/// apart.
struct run_listener {
  /// An operation has begun; `tag` is as in its event.
  void (*operation_began)(std::uint64_t id, const char* name, std::size_t length, std::uint16_t tag) noexcept;
  /// This thread works for the operation `adopted`, of that name, from now on, until the end of `id`.
  void (*operation_adopted)(std::uint64_t id, std::uint64_t adopted, const char* name, std::size_t length) noexcept;
  /// Also where an adoption ends.
  void (*operation_ended)(std::uint64_t id) noexcept;
  void (*segment_ended)(const char* name, std::size_t length) noexcept;
};

/// Null unless the program runs under `memprof run`: its library sets it when a capture begins (`find_run_listener`).
[[gnu::visibility("default")]] inline constinit std::atomic<const run_listener*> process_run_listener{nullptr};

}  // namespace memprof::abi_1

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] inline std::uint64_t id_for_run(const open_operation& of) noexcept { return scope_address(of.number, of.thread); }

/// The text of a name, which stays where it is.
[[gnu::cold, gnu::noinline]] inline std::string_view text_for_run(label name) noexcept {
  const control_guard control;
  return abi_1::process_registry.labels->text(name);
}

[[gnu::cold, gnu::noinline]] inline void tell_operation_began(const abi_1::run_listener& listener, const open_operation& begun,
                                                              std::uint16_t tag) noexcept {
  const std::string_view name = text_for_run(begun.name);
  listener.operation_began(id_for_run(begun), name.data(), name.size(), tag);
}

[[gnu::cold, gnu::noinline]] inline void tell_operation_adopted(const abi_1::run_listener& listener, const open_operation& begun,
                                                                std::uint64_t adopted) noexcept {
  const std::string_view name = text_for_run(begun.name);
  listener.operation_adopted(id_for_run(begun), adopted, name.data(), name.size());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
