#pragma once

#include <memprof/backend/cuda/begun_calls.hpp>
#include <memprof/backend/cuda/block_table.hpp>
#include <memprof/backend/cuda/pending_frees.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/backend/cuda/tracked.hpp>
#include <memprof/backend/live_bytes_listener.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/succeeds.hpp>
#include <memprof/record/block_parts.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// @file
/// What the calls of CUDA's driver mean as events. Knows nothing of CUPTI.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Turns allocations and frees into events. An allocation is recorded when its call has succeeded, a free before its call, since
/// another thread may get the address before that returns; a free that fails is undone by allocating the block again.
///
/// Every call may be made on any thread, during a capture. They take a lock, under which nothing of CUDA is called; memory is
/// pages of its own. Where the system has none, the blocks concerned are not recorded, and `event_sink::count_dropped_event`
/// says that the profile is not exact.
class tracker {
 public:
  /// Forgets everything, as where a capture begins.
  void clear() noexcept {
    const lock_guard guard{lock_};
    known_.emplace();
  }

  void allocated(const place& at, std::uint64_t address, std::uint64_t bytes) noexcept {
    if (address == 0 || bytes == 0) return;
    const lock_guard guard{lock_};
    end_pending_at(address, bytes);
    const owning_operation owner{at.asked_by};
    add({address, bytes, at.context, spaces_.find(at.kind, at.device), name_of(at)}, std::exchange(parts_of_next_block, {}));
  }

  /// The device had no memory for a block.
  void failed(const place& at, std::uint64_t bytes) noexcept {
    const lock_guard guard{lock_};
    event_sink{}.out_of_memory(spaces_.find(at.kind, at.device), bytes, unknown_device_free);
  }

  /// A call begins that frees the block at `address`.
  [[nodiscard]] ticket free_begins(const place& at, std::uint64_t address) noexcept {
    if (address == 0) return 0;
    const lock_guard guard{lock_};
    held_block freed{};
    if (!known_->blocks.take(address, freed)) return 0;
    const ticket taken = next_ticket();
    keep({taken, begun_call::what::free, freed, {}, {}});
    end(freed, at);
    return taken;
  }

  /// The call has ended. A free of a block that is unknown, such as one from before the capture, is only counted.
  void free_ends(const place& at, std::uint64_t address, ticket taken, bool is_done) noexcept {
    if (address == 0) return;
    const lock_guard guard{lock_};
    // If it is known by now, another thread has got the address since.
    if (taken == 0 && is_done && !known_->blocks.has(address))
      event_sink{}.deallocate(spaces_.find(at.kind, at.device), block_address{address});
    settle(taken, is_done);
  }

  /// `cuMemCreate` has made memory without an address.
  void created(const place& at, std::uint64_t handle, std::uint64_t bytes) noexcept;
  void retained(std::uint64_t handle) noexcept;
  [[nodiscard]] ticket release_begins(std::uint64_t handle) noexcept;
  void mapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) noexcept;
  /// A call begins that unmaps [address, address + bytes), which may be several mappings.
  [[nodiscard]] ticket unmap_begins(std::uint64_t address, std::uint64_t bytes) noexcept;
  /// A call that released or unmapped has ended.
  void ends(ticket taken, bool is_done) noexcept {
    const lock_guard guard{lock_};
    settle(taken, is_done);
  }

  /// A context is about to be destroyed, and with it all that was allocated in it, except memory of `cuMemCreate`.
  void context_ends(std::uint32_t context) noexcept {
    const lock_guard guard{lock_};
    page_array<std::uint64_t> addresses;
    bool has_memory = true;
    known_->blocks.for_each([&](const held_block& held) {
      if (held.context == context) has_memory = addresses.push_back(held.address) && has_memory;
    });
    if (!has_memory) event_sink{}.count_dropped_event();
    for (const std::uint64_t address : addresses) {
      held_block freed{};
      if (known_->blocks.take(address, freed)) end(freed, {});
    }
    end_pending_where([&](const pending_free& freed) { return freed.context == context; });
  }

  /// The host has waited for a stream, or for all of a context: what was freed there before can be used again.
  void stream_synchronized(std::uint32_t context, std::uint64_t stream) noexcept {
    const lock_guard guard{lock_};
    const std::uint64_t waited_for = pending_stream(stream);
    end_pending_where([&](const pending_free& freed) { return freed.context == context && freed.stream == waited_for; });
  }
  void context_synchronized(std::uint32_t context) noexcept {
    const lock_guard guard{lock_};
    end_pending_where([&](const pending_free& freed) { return freed.context == context; });
  }

  /// From now on, until `part_ends`, the program uses [address, address + bytes) of one of its blocks for something of its own;
  /// the rest of the block has the name `rest`, if not null. A part outside the blocks, or over another one, does not count.
  void part_begins(std::uint64_t address, std::uint64_t bytes, const annotation& description, const std::string* rest) noexcept {
    const lock_guard guard{lock_};
    const bool has_memory = succeeds([&] {
      if (!known_->divided.has(address)) divide_block_with(address, rest);
      (void)known_->divided.begin(address, bytes, description);
    });
    if (!has_memory) event_sink{}.count_dropped_event();
  }
  void part_is_resized(std::uint64_t address, std::uint64_t bytes) noexcept {
    const lock_guard guard{lock_};
    if (!succeeds([&] { known_->divided.resize(address, bytes); })) event_sink{}.count_dropped_event();
  }
  void part_is_named(std::uint64_t address, const std::string* name) noexcept {
    const lock_guard guard{lock_};
    known_->divided.name(address, name);
  }
  void part_ends(std::uint64_t address) noexcept {
    const lock_guard guard{lock_};
    known_->divided.end(address);
  }
  void parts_end(std::uint64_t address, std::uint64_t bytes) noexcept {
    const lock_guard guard{lock_};
    known_->divided.end_all(address, bytes);
  }

  /// What is recorded as live on a device now.
  [[nodiscard]] recorded_bytes recorded_on(std::uint32_t device) noexcept {
    const lock_guard guard{lock_};
    return known_->recorded[spaces_.of_device(device).value];
  }

 private:
  /// Lets the block around `address` have parts that come and go, unless the program has said its parts for good.
  void divide_block_with(std::uint64_t address, const std::string* rest) {
    held_block found{};
    known_->blocks.for_each([&](const held_block& held) {
      if (address - held.address < held.bytes) found = held;
    });
    if (found.bytes == 0 || found.is_divided) return;
    known_->divided.add(found.address, found.bytes, found.space, rest);
    if (found.stream_and_pool != 0) {  // parts are on no stream
      end_recorded(found);
      event_sink{}.allocate(found.space, block_address{found.address}, found.bytes);
    }
    found.is_divided = true;
    (void)known_->blocks.put(found);  // it is there already: nothing grows
  }

  /// Tells the default streams of threads apart, which have one number.
  [[nodiscard]] static std::uint64_t pending_stream(std::uint64_t stream) noexcept {
    return stream == per_thread_stream ? reinterpret_cast<std::uintptr_t>(&parts_of_next_block) : stream;
  }

  void complete(const pending_free& freed) noexcept {
    known_->recorded[freed.space.value].pending -= signed_of(freed.bytes);
    event_sink{}.complete_deallocation(freed.space, block_address{freed.address}, freed.bytes);
  }

  [[nodiscard]] static std::int64_t signed_of(std::uint64_t bytes) noexcept { return static_cast<std::int64_t>(bytes); }
  void count(space_id space, std::int64_t change, bool is_on_stream) noexcept {
    recorded_bytes& sum = known_->recorded[space.value];
    sum.live += change;
    tell_live_bytes(space, change);
    if (is_on_stream) sum.on_streams += change;
  }

  [[nodiscard]] ticket next_ticket() noexcept { return ++last_ticket_; }

  /// 0 for a call that is not ordered on a stream.
  [[nodiscard]] label name_of(const place& at) noexcept {
    return at.is_on_stream ? names_.find(at.stream, at.pool).name() : label{0};
  }

  void add(held_block added, const parts_of_block& parts = {}) noexcept {
    added.is_divided = parts.count != 0;
    if (!known_->blocks.put(added)) return event_sink{}.count_dropped_event();
    count(added.space, signed_of(added.bytes), added.stream_and_pool != 0);
    if (added.is_divided) return record_parts(added.space.value, added.address, added.bytes, parts.first, parts.count);
    const event_kind kind = added.stream_and_pool == 0 ? event_kind::allocate : event_kind::allocate_on_stream;
    record_event({0, added.address, added.bytes, added.stream_and_pool, kind, added.space.value, 0});
  }

  /// A block that is not ordered on a stream by its allocation or by its free can be used again at once.
  void end(const held_block& freed, const place& at) noexcept {
    count(freed.space, -signed_of(freed.bytes), freed.stream_and_pool != 0);
    if (freed.is_divided) known_->divided.forget(freed.address, freed.bytes);
    if (freed.is_divided || freed.stream_and_pool == 0) return end_recorded(freed);
    const bool is_pending = at.is_on_stream && known_->pending.add({freed.address, freed.bytes, pending_stream(at.stream),
                                                                    freed.context, freed.space});
    if (is_pending) {
      recorded_bytes& sum = known_->recorded[freed.space.value];
      sum.pending += signed_of(freed.bytes);
      sum.pending_peak = std::max(sum.pending_peak, sum.pending);
    }
    record_event({0, freed.address, freed.bytes, freed.stream_and_pool, event_kind::deallocate_on_stream, freed.space.value,
                  static_cast<std::uint16_t>(is_pending)});
  }

  template <class Condition>
  void end_pending_where(Condition&& is_ended) noexcept {
    known_->pending.end_where(is_ended, [this](const pending_free& freed) { complete(freed); });
  }
  /// Ends what is recorded of a block: itself, or its parts, which are on no stream.
  static void end_recorded(const held_block& ended) noexcept {
    if (ended.is_divided) {
      event_sink{}.deallocate_range(ended.space, block_address{ended.address}, ended.bytes);
    } else {
      const event_kind kind = ended.stream_and_pool == 0 ? event_kind::deallocate : event_kind::deallocate_on_stream;
      record_event({0, ended.address, ended.bytes, ended.stream_and_pool, kind, ended.space.value, 0});
    }
  }

  /// The driver gives the memory out again, so it was free.
  void end_pending_at(std::uint64_t address, std::uint64_t bytes) noexcept {
    known_->pending.end_overlapping(address, bytes, [this](const pending_free& freed) { complete(freed); });
  }

  /// Ends memory that has become unused.
  void keep_memory(const held_memory& held) noexcept;
  void begin(const held_memory& made) noexcept;

  void keep(const begun_call& begun) noexcept {
    if (!known_->begun.add(begun)) event_sink{}.count_dropped_event();
  }

  void settle(ticket taken, bool is_done) noexcept {
    if (taken == 0) return;
    known_->begun.take(taken, [&](const begun_call& begun) {
      if (!is_done) take_back(begun);
    });
  }

  void take_back(const begun_call& begun) noexcept {
    switch (begun.done) {
      case begun_call::what::free: end_pending_at(begun.block.address, begun.block.bytes); return add(begun.block);
      case begun_call::what::release: return restore(begun.memory, 1, 0);
      case begun_call::what::unmap:
        if (!known_->mappings.put(begun.unmapped)) return event_sink{}.count_dropped_event();
        return restore(begun.memory, 0, 1);
    }
  }

  /// Takes back that a handle was released or unmapped, whatever other threads have done with it since.
  void restore(held_memory held, std::uint32_t handles, std::uint32_t mappings) noexcept;

  futex_lock lock_;
  std::optional<tracked> known_{std::in_place};
  spaces spaces_;
  stream_names names_;
  ticket last_ticket_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda

#include <memprof/backend/cuda/tracker_memory.hpp>
