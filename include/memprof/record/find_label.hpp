#pragma once

#include <memprof/record/event_ring.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The id of a name that is not in this thread's cache. Takes the registry's lock.
[[nodiscard, gnu::cold, gnu::noinline]] inline label find_uncached_label(std::string_view name, std::uint32_t hash) noexcept {
  registry& shared = abi_1::process_registry;
  thread_slot& self = abi_1::this_thread;
  const control_guard control;
  const label id = detail::intern(shared, name);
  if (self.has_ring() && id != 0) {
    const std::string_view kept = shared.labels->text(id);
    self.ring->label_cache[hash % event_ring::cached_labels] = {kept.data(), static_cast<std::uint32_t>(kept.size()), id};
  }
  return id;
}

/// The id of a name, through this thread's cache of names. A miss takes the registry's lock.
[[nodiscard]] inline label find_label(std::string_view name) noexcept {
  const thread_slot& self = abi_1::this_thread;
  const std::uint32_t hash = label_table::hash_of(name);
  // A thread that has no ring yet finds nothing.
  const event_ring::cached_label& cached = self.ring->label_cache[hash % event_ring::cached_labels];
  if (cached.id != 0 && label_table::is_text(cached.text, cached.size, name)) [[likely]]
    return cached.id;
  return find_uncached_label(name, hash);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
