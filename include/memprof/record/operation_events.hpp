#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Begins an operation on this thread and makes it the innermost. Requires an active capture and a thread outside the profiler.
/// `adopted`, if not 0, is the `scope_address` of another operation, for which this one stands.
[[gnu::always_inline]] inline void begin_operation(open_operation& begun, thread_slot& self, label name, std::uint16_t tag,
                                                   std::uint64_t adopted = 0) noexcept {
  begun.number = ++self.last_scope;
  begun.outer = self.innermost_scope;
  begun.name = name;
  begun.outer_name = self.innermost_name;
  self.innermost_scope = begun.number;
  record<no_pauses>(abi_1::process_registry, self,
                    {0, scope_address(begun.number, begun.outer), adopted, name, event_kind::scope_begin, any_space, tag});
  begun.thread = self.ring->thread;
}

/// Notes that an operation ended on its own thread while one nested in it is still open. If there are too many, the oldest is
/// forgotten: that thread's innermost operation may then be one that has ended, which only affects the names that backends ask
/// for.
[[gnu::cold, gnu::noinline]] inline void note_early_end(event_ring& ring, const open_operation& ended) noexcept {
  ring.early_ends[ended.number % event_ring::max_early_ends] = {ended.number, ended.outer, ended.outer_name};
}

/// Makes the operation around `ended` the thread's innermost, or the next one outward that has not ended.
inline void leave_innermost(thread_slot& self, const open_operation& ended) noexcept {
  self.innermost_scope = ended.outer;
  self.innermost_name = ended.outer_name;
  while (self.innermost_scope != 0) {
    event_ring::early_end& early = self.ring->early_ends[self.innermost_scope % event_ring::max_early_ends];
    if (early.number != self.innermost_scope) [[likely]]
      return;
    self.innermost_scope = early.outer;
    self.innermost_name = early.outer_name;
    early = {};
  }
}

/// Ends an operation, on any thread.
[[gnu::always_inline]] inline void end_operation(const open_operation& ended, bool is_recorded) noexcept {
  thread_slot& self = abi_1::this_thread;
  std::uint64_t address = ended.number;
  if (self.ring->thread != ended.thread) [[unlikely]] {
    address = scope_address(ended.number, ended.thread);
  } else if (self.innermost_scope == ended.number) [[likely]] {
    leave_innermost(self, ended);
  } else if (self.has_ring()) {
    note_early_end(*self.ring, ended);
  }
  if (is_recorded) {
    record<no_pauses>(abi_1::process_registry, self, {0, address, 0, ended.name, event_kind::scope_end, any_space, 0});
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
