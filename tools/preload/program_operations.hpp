#pragma once

#include "unseen.hpp"

#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/signal_guard.hpp>
#include <memprof/record/find_label.hpp>
#include <memprof/record/operation_events.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/run_listener.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/trace/open_operation.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <unordered_map>

namespace memprof_preload {

/// The operations and segments of a program that has a capture of its own by memprof: they are recorded here, too.
class program_operations {
 public:
  /// Has the program tell of them; false if none of its files can. It is never destroyed.
  [[nodiscard]] bool listen() noexcept {
    using pointer = std::atomic<const memprof::abi_1::run_listener*>;
    const void* const found = find_in_any_file("_ZN7memprof5abi_120process_run_listenerE");
    if (found == nullptr) return false;
    only_ = this;
    static constexpr memprof::abi_1::run_listener listener{
        [](const void* scope, const char* name, std::size_t length, std::uint16_t tag) noexcept {
          only_->begin(scope, {name, length}, tag);
        },
        [](const void* scope) noexcept { only_->end(scope); },
        [](const char* name, std::size_t length) noexcept {
          memprof::snapshot({name, length});
        }};
    const_cast<pointer*>(static_cast<const pointer*>(found))->store(&listener, std::memory_order_release);
    return true;
  }

  /// In the child of a `fork`: forgets what the parent had open. Another thread of it may have been in the middle of a change.
  void begin_in_child() noexcept {
    lock_.reset();
    new (&open_) std::unordered_map<const void*, begun_operation>;
  }

 private:
  struct begun_operation {
    memprof::open_operation operation;
    std::uint32_t capture;
  };

  /// Hidden from recording, without signals, whose handlers may begin operations.
  struct held {
    explicit held(program_operations& of) noexcept : lock(of.lock_) {}
    memprof::detail::signal_guard no_signals;
    memprof::detail::recording_suppressor hidden;
    memprof::detail::lock_guard<memprof::detail::futex_lock> lock;
  };

  void begin(const void* scope, std::string_view name, std::uint16_t tag) noexcept {
    namespace detail = memprof::detail;
    detail::thread_slot& self = memprof::abi_1::this_thread;
    begun_operation begun{{}, detail::active_capture()};
    if (begun.capture == 0 || self.doing().load(std::memory_order_relaxed) != detail::activity::idle) return;
    const memprof::label own = detail::find_label(name);
    detail::begin_operation(begun.operation, self, own, tag);
    self.innermost_name = own;
    try {
      const held whole{*this};
      open_.insert_or_assign(scope, begun);
    } catch (const std::exception&) {
      detail::end_operation(begun.operation, true);
    }
  }

  void end(const void* scope) noexcept {
    if (memprof::detail::active_capture() == 0) return;  // also in a child that is not recorded, whose lock may be held
    begun_operation begun{};
    {
      const held whole{*this};
      const auto found = open_.find(scope);
      if (found == open_.end()) return;
      begun = found->second;
      open_.erase(found);
    }
    memprof::detail::end_operation(begun.operation, memprof::detail::active_capture() == begun.capture);
  }

  inline static constinit program_operations* only_ = nullptr;
  memprof::detail::futex_lock lock_;
  std::unordered_map<const void*, begun_operation> open_;
};

}  // namespace memprof_preload
