#pragma once

#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <string_view>

/// @file
/// What `trace_replay` hands to formats that keep single blocks.

namespace memprof::inline MEMPROF_ABI {

/// A block of a trace with everything known about it, for formats that keep single blocks.
struct replayed_block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;       ///< on cores: across all of them
  std::uint64_t ordinal = 0;     ///< of its allocation in its space, from 1
  std::int64_t time_ns = 0;      ///< of its allocation
  std::uint32_t thread = 0;      ///< that allocated it
  std::uint32_t operation = 0;   ///< the innermost open one at its allocation: a node of `replay_state::operations`; 0: none
  extend::label annotation = 0;  ///< `name\x1fshape\x1fdtype[\x1frequires_grad]`
  extend::label stream = 0;      ///< `stream\x1fpool`
  extend::label call_stack = 0;  ///< the stack that asked for it: docs/trace_format.md; 0: not recorded
  std::uint32_t cores = 0;       ///< packed `core_range`, if `is_on_cores`
  std::uint8_t space = 0;
  memprof::category category = category::other;
  bool is_on_cores = false;
  bool is_circular_buffer = false;
  bool is_awaited = false;  ///< freed, and streams may still use it
};

/// The state of a trace up to the current event.
struct replay_state {
  std::int64_t now_ns = 0;
  std::uint64_t segment = 0;  ///< the number of segments that have ended
  extend::capture_info info;
  detail::label_table names;
  extend::label space_names[extend::any_space + 1] = {};
  detail::operation_visitor visitor;

  [[nodiscard]] const detail::operation_tree& operations() const noexcept { return visitor.operations(); }
  [[nodiscard]] std::string_view space_name(std::uint8_t space) const noexcept { return names.text(space_names[space]); }
};

/// The callbacks of `trace_replay`. Handlers derive from it and hide those they need.
struct replay_handler {
  /// A block was allocated.
  void on_allocation(const replay_state&, const replayed_block&) {}
  /// A block was freed.
  void on_deallocation(const replay_state&, const replayed_block&, std::uint32_t /*thread*/) {}
  /// A block got a name, or a category other than `before`, which applied since its allocation.
  void on_annotation(const replay_state&, const replayed_block&, category /*before*/) {}
  /// A live block is read or written: now, or until the innermost open operation of the thread ends.
  void on_use(const replay_state&, const replayed_block&, std::uint32_t /*thread*/, bool /*until_operation_ends*/) {}
  /// A use of memory at which no live block begins.
  void on_unmatched_use(const replay_state&, const extend::event&) {}
  /// Operations began or ended on a thread; `open` are those open now.
  void on_operations(const replay_state&, std::uint32_t /*thread*/, const detail::scope_stack& /*open*/) {}
  void on_thread(const replay_state&, std::uint32_t /*thread*/, extend::label /*name*/, std::uint64_t /*system_id*/) {}
  void on_segment_end(const replay_state&, extend::label /*name*/) {}
  /// A checkpoint, at which the live blocks are wanted; the name is 0 for a periodic one.
  void on_checkpoint(const replay_state&, extend::label /*name*/) {}
  /// A free of a block that is not live.
  void on_unmatched_free(const replay_state&, const extend::event&, std::uint32_t /*thread*/) {}
  /// `reserve`, `release`, `out_of_memory` or `complete_deallocation`.
  void on_allocator_event(const replay_state&, const extend::event&, std::uint32_t /*thread*/) {}
};

}  // namespace memprof::inline MEMPROF_ABI
