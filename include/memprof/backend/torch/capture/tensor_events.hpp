#pragma once

#include <memprof/backend/torch/capture/operator_memory.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// @file
/// Records the blocks of CPU tensors and decides which are activations. Start reading here; the other files of this folder:
///
/// | subject | files |
/// |---|---|
/// | libtorch's CPU allocator | forwarding_allocator, cpu_allocator, set_allocator, block_sizes, memory_from_malloc |
/// | its CUDA caching allocator | cuda_trace, cuda_streams |
/// | operators as operations | operator_scopes, observe_operators, operator_labels, forward_scopes, torch_thread |
/// | the table of operators | track_pytorch_ops, operator_counter, operator_table, operator_memory, device_times |
/// | what a program says of categories | tensor_annotation, module_annotation, optimizer_annotation |
/// | categories | annotate_tensor, annotate_module, annotate_optimizer, output_annotation |
/// | compiled once, or in each file | torch_control, implementation |
/// | shared by two threads | shared_by_two_threads, shared_end |
///
/// Autograd creates the node of an operator before it calls the kernel, and numbers the nodes of a thread consecutively. A block
/// is therefore part of the graph if the next number has grown since the outermost operator began. Composite operators may
/// allocate before their first node (the mask of dropout): such blocks become activations when the operator ends, if it created a
/// node.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a backend records CPU tensors, real or simulated. Used by control calls only.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> are_tensors_recorded{false};

/// Throws `memprof::error` if one does: a second one would count blocks twice, or mix real and simulated blocks in one space.
inline void check_no_tensors_are_recorded() {
  if (!are_tensors_recorded.load(std::memory_order_relaxed)) return;
  raise(
      "begin_capture: CPU tensors are already being recorded; use only one of torch_backend, torch_allocations and "
      "torch_no_dispatch, once");
}

/// Records the category of a live block in any space, and its description if `description` is not 0.
inline void annotate_block(const void* address, category kind, label description = 0) noexcept {
  event_sink{}.annotate(address, kind, description);
}

/// The category of a block that is being allocated, as far as it is known yet.
[[nodiscard]] inline optional_category category_in_graph(torch_thread& self, const void* address) noexcept {
  if (self.graph_operator == 0) return {};
  if (at::sequence_number::peek() != self.graph_sequence) return category::activation;
  if (self.undecided_count < torch_thread::max_undecided) self.undecided[self.undecided_count++] = address;
  return {};
}

/// Records what is known about a block's tensor, if anything.
inline void annotate_new_block(const new_block& described) noexcept {
  if (described.description != 0) event_sink{}.annotate(described.address, {}, described.description);
}

/// Keeps a block that was allocated within an operator that may return it. If there are too many, annotates the oldest as it is
/// and drops it.
inline void remember_new_block(torch_thread& self, const void* address) noexcept {
  if (self.returning_operator == 0) return;
  if (self.new_block_count == torch_thread::max_new_blocks) {
    annotate_new_block(self.new_blocks[0]);
    std::move(self.new_blocks + 1, self.new_blocks + self.new_block_count--, self.new_blocks);
  }
  self.new_blocks[self.new_block_count++] = {address, 0, 0};
}

/// Forgets a block that was freed, or that the program has described itself.
inline void forget_new_block(torch_thread& self, const void* address) noexcept {
  for (std::uint32_t index = self.new_block_count; index-- > 0;) {
    if (self.new_blocks[index].address != address) continue;
    std::move(self.new_blocks + index + 1, self.new_blocks + self.new_block_count--, self.new_blocks + index);
    return;
  }
}

/// A freed block needs no annotation when its operator ends.
inline void forget_undecided(torch_thread& self, const void* address) noexcept {
  for (std::uint32_t index = 0; index < self.undecided_count; ++index) {
    if (self.undecided[index] != address) continue;
    self.undecided[index] = self.undecided[--self.undecided_count];
    return;
  }
}

/// Call when the outermost operator that autograd may record ends.
inline void decide_category(torch_thread& self) noexcept {
  const bool is_in_graph = self.undecided_count != 0 && at::sequence_number::peek() != self.graph_sequence;
  for (std::uint32_t index = 0; is_in_graph && index < self.undecided_count; ++index) {
    annotate_block(self.undecided[index], category::activation);
  }
  self.undecided_count = 0;
  self.graph_operator = 0;
}

/// Names the stack that asks this thread for a block of that size, as docs/trace_format.md has it; 0: unknown. Null: nobody asks.
/// A binding sets it whose language has calls that stacks of C++ lack.
inline constinit std::atomic<label (*)(std::size_t bytes)> caller_of_tensor{nullptr};

/// Call after a block was allocated, in any space. `where`: the label of its stream and pool, if it has one; it has no caller
/// then.
inline void record_tensor_allocation(const void* address, std::size_t bytes, std::uint8_t space = cpu_space,
                                     label where = 0) noexcept {
  torch_thread* const self = this_torch_thread();
  const optional_category contents = self == nullptr ? optional_category{} : category_in_graph(*self, address);
  // Relaxed: what the function reads was there before it was set, by a thread that then begins the capture.
  const auto caller = caller_of_tensor.load(std::memory_order_relaxed);
  const label said = where != 0 || caller == nullptr ? where : caller(bytes);
  const event_kind kind = where != 0 ? event_kind::allocate_on_stream : event_kind::allocate;
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, said, kind, space, contents.tag()});
  if (self == nullptr) return;
  remember_new_block(*self, address);
  if (space == cpu_space)
    count_allocation(*self, address, bytes);
  else
    count_on_device(*self, static_cast<std::int64_t>(bytes));
}

/// Call before a block is freed. A size of 0 means the size that the ledger remembers; a device's allocator knows it.
inline void record_tensor_deallocation(const void* address, std::size_t bytes = 0, std::uint8_t space = cpu_space,
                                       label where = 0) noexcept {
  if (torch_thread* const self = this_torch_thread()) {
    if (space == cpu_space)
      count_deallocation(*self, address);
    else
      count_on_device(*self, -static_cast<std::int64_t>(bytes));
    forget_undecided(*self, address);
    forget_new_block(*self, address);
  }
  const event_kind kind = where != 0 ? event_kind::deallocate_on_stream : event_kind::deallocate;
  record_event({0, reinterpret_cast<std::uintptr_t>(address), bytes, where, kind, space, 0});
}

}  // namespace memprof::inline MEMPROF_ABI::detail
