#pragma once

#include <memprof/backend/torch/capture/forward_scopes.hpp>
#include <memprof/backend/torch/capture/memory_from_malloc.hpp>
#include <memprof/backend/torch/capture/operator_labels.hpp>
#include <memprof/backend/torch/capture/operator_scopes.hpp>
#include <memprof/backend/torch/capture/operator_uses.hpp>
#include <memprof/backend/torch/capture/output_annotation.hpp>
#include <memprof/backend/torch/capture/shared_by_two_threads.hpp>
#include <memprof/backend/torch/capture/tensor_events.hpp>
#include <memprof/backend/torch/capture/torch_thread.hpp>
#include <memprof/backend/torch/config.hpp>
#include <memprof/backend/torch/version.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/category.hpp>

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

/// @file
/// Records libtorch's operators as operations: a scope for each on its own thread, nested in those that the program opened.
///
/// The autograd engine opens a wrapper around each node of the backward pass, which also covers the accumulation of gradients and
/// the release of saved tensors. The wrapper becomes the scope "gradients of X", where X is the program's scope around the
/// forward operator that created the node. If there was none, it takes the node's own name.
///
/// A user scope (RECORD_USER_SCOPE, the profiler's `record_function`) may end on another thread than it began on, as with a
/// future. The thread that opened it closes it when it begins or ends its next operator.

namespace memprof::inline MEMPROF_ABI::detail {

/// Called before an operator that autograd does not record, on its thread; null: nothing to call.
inline constinit std::atomic<void (*)()> before_unrecorded_operator{nullptr};

inline void begin_scope(open_operator& opened, std::uint32_t capture, label name, optional_category category) noexcept {
  opened.capture = capture;
  opened.scope = event_sink{}.begin_operation(name, category);
}

inline void end_scope(const open_operator& opened) noexcept {
  if (opened.capture == 0) return;
  event_sink{}.end_operation(opened.scope, opened.capture);
}

/// Pops the innermost operator of a thread and closes its scope.
inline void close_innermost(torch_thread& self) noexcept {
  if (self.graph_operator == self.open_count) decide_category(self);
  const open_operator& ended = self.open[self.open_count - 1];
  if (self.returning_operator == self.open_count) annotate_new_blocks(self, ended.capture == event_sink{}.capture());
  if (self.using_operator == self.open_count) self.using_operator = 0;
  --self.open_count;
  end_scope(ended);
  if (ended.end != nullptr) ended.end->release();
}

/// Closes the scopes that other threads have ended.
inline void close_ended_elsewhere(torch_thread& self) noexcept {
  while (self.open_count != 0) {
    const open_operator& innermost = self.open[self.open_count - 1];
    if (innermost.end == nullptr || !innermost.end->has_ended()) return;
    close_innermost(self);
  }
}

/// libtorch's context for a user scope, until the scope ends on whichever thread.
class user_scope_context final : public at::ObserverContext, public memory_from_malloc {
 public:
  explicit user_scope_context(const torch_thread& thread) : thread_(&thread) {}
  user_scope_context(const user_scope_context&) = delete;
  user_scope_context& operator=(const user_scope_context&) = delete;
  ~user_scope_context() override { end_->release(); }

  /// Shared with the thread on which the scope began, which releases it, too.
  [[nodiscard]] shared_end& end() const noexcept { return *end_; }
  /// Marks the scope as ended if this is another thread than that; otherwise returns false.
  [[nodiscard]] bool mark_ended_elsewhere() const noexcept {
    if (thread_ == this_torch_thread()) return false;
    end_->mark_ended();
    return true;
  }

 private:
  shared_end* end_ = new shared_end;
  const torch_thread* thread_;
};

/// What libtorch calls when an operator begins, and when it ends.
class operator_callbacks {
 public:
  static std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
    // Asynchronous operators of communication libraries may end on another thread, which cannot close a scope of this one.
    if (function.isAsync()) return nullptr;
    const std::uint32_t capture = event_sink{}.capture();
    torch_thread* const thread = this_torch_thread();
    if (thread == nullptr) return nullptr;
    torch_thread& self = *thread;
    close_ended_elsewhere(self);
    if (capture == 0 || self.open_count == torch_thread::max_open || !event_sink{}.is_thread_recordable()) return nullptr;
    switch (function.scope()) {
      case at::RecordScope::BACKWARD_FUNCTION: begin_node(self, function, capture); break;
      case at::RecordScope::USER_SCOPE: return begin_user_scope(self, function, capture);
      default: begin_plain(self, function, capture); break;
    }
    return nullptr;
  }

  static void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
    if (context != nullptr && static_cast<const user_scope_context*>(context)->mark_ended_elsewhere()) return;
    torch_thread* const thread = this_torch_thread();
    if (thread == nullptr) return;
    torch_thread& self = *thread;
    std::uint32_t kept = self.open_count;
    while (kept != 0 && self.open[kept - 1].function != &function) --kept;
    if (kept == 0) return;  // its beginning was not observed
    while (kept > 1 && self.open[kept - 2].function == &function) --kept;
    while (self.open_count > kept) close_innermost(self);
    if (self.open[kept - 1].returns_tensors) {
      describe_outputs(self, function);
      record_output_uses(self, function, kept);
    }
    close_innermost(self);
    close_ended_elsewhere(self);
  }

 private:
  [[nodiscard]] static open_operator& push(torch_thread& self, const at::RecordFunction& function) noexcept {
    open_operator& opened = self.open[self.open_count++];
    opened = {&function, 0, {}, false, false, nullptr};
    return opened;
  }

  [[nodiscard]] static bool is_engine_wrapper(const char* name) noexcept {
    static constexpr char prefix[] = "autograd::engine::evaluate_function: ";
    return std::strncmp(name, prefix, sizeof prefix - 1) == 0;
  }

  static void begin_plain(torch_thread& self, const at::RecordFunction& function, std::uint32_t capture) {
    const char* const name = function.name();
    if (is_engine_wrapper(name)) {
      push(self, function).is_engine_wrapper = true;  // its scope waits for the node
      return;
    }
    const std::int64_t sequence = function.seqNr();
    if (sequence >= 0) {
      process_forward_scopes.store(function.threadId(), sequence, event_sink{}.innermost_name());
    } else {
      // Acquire pairs with the release in `optimizer_annotation`.
      if (auto* const look = before_unrecorded_operator.load(std::memory_order_acquire); look != nullptr) look();
    }
    open_operator& opened = push(self, function);
    begin_scope(opened, capture, operator_label(self, name), {});
    record_input_uses(self, function, self.open_count);
    opened.returns_tensors = function.num_outputs() != 0;
    if (opened.returns_tensors && self.returning_operator == 0) self.returning_operator = self.open_count;
    if (sequence >= 0 && self.graph_operator == 0) {
      self.graph_operator = self.open_count;
      self.graph_sequence = static_cast<std::uint64_t>(sequence);
    }
  }

  /// A RECORD_USER_SCOPE counts as a scope of the program, like `track_operation`.
  [[nodiscard]] static std::unique_ptr<at::ObserverContext> begin_user_scope(torch_thread& self,
                                                                             const at::RecordFunction& function,
                                                                             std::uint32_t capture) {
    const label name = operator_label(self, function.name());
    auto context = std::make_unique<user_scope_context>(self);
    open_operator& opened = push(self, function);
    opened.end = &context->end();
    begin_scope(opened, capture, name, {});
    event_sink{}.set_innermost_name(name);
    return context;
  }

  static void begin_node(torch_thread& self, const at::RecordFunction& function, std::uint32_t capture) {
    const label name = operator_label(self, function.name());
    const std::int64_t sequence = function.seqNr();
    const label cause = sequence < 0 ? 0 : process_forward_scopes.find(function.forwardThreadId(), sequence);
    open_operator* wrapper = self.open_count == 0 ? nullptr : &self.open[self.open_count - 1];
    if (wrapper == nullptr || !wrapper->is_engine_wrapper || wrapper->capture != 0) wrapper = &push(self, function);
    if (cause == 0) return begin_scope(*wrapper, capture, name, category::temporary);
    begin_scope(*wrapper, capture, gradients_label(self, cause), category::temporary);
    if (self.open_count < torch_thread::max_open) begin_scope(push(self, function), capture, name, {});
  }
};

/// The process whose capture observes operators, and libtorch's handle of that. Used by control calls only.
struct operator_observer {
  std::int64_t process = 0;  ///< 0: none does
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};
inline constinit operator_observer process_operator_observer{};

MEMPROF_TORCH_SEPARABLE void operator_scopes::begin() {
  operator_observer& present = process_operator_observer;
  if (present.process == process_id()) {
    raise("begin_capture: operators are already being recorded; use only one of torch_backend and torch_no_dispatch, once");
  }
  // A child after `fork` has its parent's, whose capture it cannot end.
  if (present.process != 0) at::removeCallback(present.handle);
  present = {};
  present.handle = at::addGlobalCallback(
      at::RecordFunctionCallback{operator_callbacks::begin_operator, operator_callbacks::end_operator}
          .needsInputs(event_sink{}.records_uses())
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  present.process = process_id();
}

MEMPROF_TORCH_SEPARABLE void operator_scopes::end() noexcept {
  at::removeCallback(process_operator_observer.handle);
  process_operator_observer = {};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
