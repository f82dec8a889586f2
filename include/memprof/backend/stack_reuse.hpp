#pragma once

#include <memprof/backend/frame_rules.hpp>
#include <memprof/backend/walked_stack.hpp>
#include <memprof/config.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// @file
/// Walks a thread's stack on x86-64 by rules that are looked up once for each call, and only as far as it has changed since the
/// thread's last walk.
///
/// Whether the rest is as it was is proved, not guessed. What a walk finds from one call outwards depends on the call's return
/// address, the stack pointer and rbp there, the rules (which do not change), and the words of the stack that the rules have it
/// load: return addresses and saved values of rbp. So if the new walk comes to a call with the same three values as in the last
/// one, and each of these words is what it was, it would go on as the last one did. The words are compared from there outwards,
/// and the first that differs ends it: no word is read that the walk itself would not have loaded, as its address follows from
/// those before.

namespace memprof::inline MEMPROF_ABI::detail {

/// Where a call returns to, and the registers there, as far as rules need them.
struct call_state {
  std::uintptr_t returns_to;
  std::uintptr_t stack_pointer;
  std::uintptr_t rbp;

  bool operator==(const call_state&) const = default;
};

#if defined(__x86_64__) && defined(__linux__) && defined(__LP64__)
inline constexpr bool walks_by_rules = true;

/// Of the call of the function that this is part of. That must not align its stack.
[[nodiscard, gnu::always_inline]] inline call_state state_of_caller() noexcept {
  const auto* const frame = static_cast<const std::uintptr_t*>(__builtin_frame_address(0));  // where the caller's rbp is saved
  return {frame[1], reinterpret_cast<std::uintptr_t>(frame + 2), frame[0]};
}
#else
inline constexpr bool walks_by_rules = false;

[[nodiscard]] inline call_state state_of_caller() noexcept { return {}; }
#endif

/// One thread's last walk. Some 50 KiB, of which the system provides what deep stacks touch.
class last_walk {
 public:
  /// Walks on from the call, innermost first. False if the rules do not suffice; then what is known of the last walk stays.
  [[nodiscard]] __attribute__((no_sanitize("address", "thread"))) bool walk(registry& shared, frame_rules& rules,
                                                                            const call_state& from) noexcept {
    frame* const past = frames_ + most_frames;  // the new frames grow downwards from there, so that the outermost comes first
    frame* next = past - 1;
    *next = {from, 0, 0};
    std::size_t old = count_;  // of the last walk's frames, those that may be met
    outer_end end;
    for (frame* const lowest = past - most_new_frames;;) {
      while (old != 0 && frames_[old - 1].state.stack_pointer < next->state.stack_pointer) --old;
      if (old != 0 && frames_[old - 1].state == next->state) {
        const std::size_t changed = first_changed(old - 1);
        if (changed == 0 && (is_end_confirmed() || old - 1 + new_frames(next) >= max_stack_frames + most_hook_frames)) {
          join(old - 1, next, end_);
          return true;
        }
        // Those that have not changed are taken over one by one; the walk goes on from the outermost of them.
        for (std::size_t index = old - 1; index > changed && next != lowest; --index) *--next = frames_[index - 1];
        old = changed;
      }
      if (next == lowest) break;
      const frame_rule rule = rules.of(shared, next->state.returns_to);
      if (rule.cfa == frame_rule::frame_address::outermost) {
        end.is_reached = true;
        break;
      }
      if (!leave(*next, rule, next[-1])) return false;
      if (next[-1].state.returns_to < least_code_address) {  // as where a coroutine begins
        end = {true, next[-1].state.stack_pointer - sizeof(word), next[-1].state.returns_to};
        break;
      }
      --next;
    }
    join(0, next, end);
    return true;
  }

  /// How many frames it found inside the call that returns there: those of a hook. 0 if that call is not among the innermost.
  [[nodiscard]] std::size_t frames_inside(std::uintptr_t returns_to) const noexcept {
    for (std::size_t own = 0; own < count_ && own <= most_hook_frames; ++own) {
      if (frames_[count_ - 1 - own].state.returns_to == returns_to) return own;
    }
    return 0;
  }

  /// Where the calls that it found return to, innermost first, without so many innermost ones, and their number: at most
  /// `max_stack_frames`.
  std::size_t copy(void** addresses, std::size_t without = 0) const noexcept {
    const std::size_t found = size(without);
    for (std::size_t index = 0; index < found; ++index)
      addresses[index] =
          reinterpret_cast<void*>(frames_[count_ - 1 - without - index].state.returns_to);  // NOLINT(performance-no-int-to-ptr)
    return found;
  }

  /// Forgets what it found, for another thread.
  void reset() noexcept { count_ = 0; }

  /// `hash_of_frames` for those that `copy` gives, from the outermost on.
  [[nodiscard]] std::uint64_t hash(std::size_t without = 0) const noexcept {
    const std::size_t count = count_ - without;
    if (end_.is_reached && count <= max_stack_frames) [[likely]]
      return frames_[count - 1].hash;
    std::uint64_t hash = hash_of_no_frames;
    for (std::size_t index = count - size(without); index < count; ++index)
      hash = hash_of_frames(hash, frames_[index].state.returns_to);
    return hash;
  }

 private:
  struct frame {
    call_state state;
    std::uintptr_t rbp_at;  ///< where its rbp was loaded from; 0: nowhere; `unverifiable`: more was loaded
    std::uint64_t hash;     ///< of it and all frames around it, if there are few
  };
  /// What the outermost frame showed.
  struct outer_end {
    bool is_reached = false;       ///< there is nothing around it
    std::uintptr_t loaded_at = 0;  ///< as this word says; 0: as its rule says
    std::uintptr_t loaded = 0;
  };
  using word [[gnu::may_alias]] = std::uintptr_t;

  static constexpr std::size_t most_new_frames = 512;
  static constexpr std::size_t most_kept_frames = 512;
  static constexpr std::size_t most_frames = most_kept_frames + most_new_frames;
  static constexpr std::uintptr_t unverifiable = 1;
  static constexpr std::uintptr_t least_code_address = 0x4000;  // as in libunwind

  [[nodiscard]] std::size_t size(std::size_t without) const noexcept {
    const std::size_t count = count_ - without;
    return count < max_stack_frames ? count : max_stack_frames;
  }
  [[nodiscard]] std::size_t new_frames(const frame* next) const noexcept {
    return static_cast<std::size_t>(frames_ + most_frames - next);
  }

  [[nodiscard, gnu::always_inline]] __attribute__((no_sanitize("address", "thread"))) static std::uintptr_t load(
      std::uintptr_t address) noexcept {
    return *reinterpret_cast<const word*>(address);
  }

  /// The state around a frame. False if the rule, or what it finds, is not to be trusted: each word that is loaded is within the
  /// frame, and a stack grows down.
  [[nodiscard, gnu::always_inline]] __attribute__((no_sanitize("address", "thread"))) static bool leave(const frame& inner,
                                                                                                        frame_rule rule,
                                                                                                        frame& outer) noexcept {
    const call_state& state = inner.state;
    const auto plus = [](std::uintptr_t base, std::int32_t offset) {
      return base + static_cast<std::uintptr_t>(std::intptr_t{offset});
    };
    std::uintptr_t end = plus(rule.cfa == frame_rule::frame_address::from_rsp ? state.stack_pointer : state.rbp, rule.cfa_offset);
    const bool is_loaded = rule.cfa == frame_rule::frame_address::loaded;
    if (rule.cfa == frame_rule::frame_address::unknown) return false;
    if (is_loaded) {
      if (end < state.stack_pointer || end - state.stack_pointer > largest_frame || end % sizeof(word) != 0) return false;
      end = load(end);
    }
    if (end <= state.stack_pointer || end - state.stack_pointer > largest_frame || end % sizeof(word) != 0) return false;
    outer.state = {load(end - sizeof(word)), end, state.rbp};
    outer.rbp_at = 0;
    if (rule.rbp != frame_rule::saved_rbp::kept) {
      const std::uintptr_t at = plus(rule.rbp == frame_rule::saved_rbp::from_cfa ? end : state.rbp, rule.rbp_offset);
      if (at < state.stack_pointer || at >= end || at % sizeof(word) != 0) return false;
      outer.state.rbp = load(at);
      outer.rbp_at = at;
    }
    if (is_loaded) outer.rbp_at = unverifiable;
    return true;
  }
  static constexpr std::uintptr_t largest_frame = std::uintptr_t{1} << 28;

  /// Compares what was loaded to find the frames around the one with that index, from there outwards. The number of outermost
  /// frames that it does not confirm.
  [[nodiscard]] __attribute__((no_sanitize("address", "thread"))) std::size_t first_changed(std::size_t index) const noexcept {
    for (; index != 0; --index) {
      const frame& around = frames_[index - 1];
      if (load(around.state.stack_pointer - sizeof(word)) != around.state.returns_to || around.rbp_at == unverifiable) break;
      if (around.rbp_at != 0 && load(around.rbp_at) != around.state.rbp) break;
    }
    return index;
  }

  [[nodiscard]] __attribute__((no_sanitize("address", "thread"))) bool is_end_confirmed() const noexcept {
    return end_.is_reached && (end_.loaded_at == 0 || load(end_.loaded_at) == end_.loaded);
  }

  /// Keeps the outermost frames of the last walk, and puts the new ones inside them.
  void join(std::size_t kept, const frame* next, outer_end end) noexcept {
    std::size_t added = new_frames(next);
    count_ = 0;  // should a signal handler leave by `siglongjmp` in the middle
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (kept + added > most_kept_frames) {  // the outermost half goes
      const std::size_t dropped = kept + added - most_kept_frames / 2;
      const std::size_t dropped_here = dropped < kept ? dropped : kept;
      std::memmove(frames_, frames_ + dropped_here, (kept - dropped_here) * sizeof(frame));
      kept -= dropped_here;
      next += dropped - dropped_here;
      added -= dropped - dropped_here;
      end = {};
    }
    std::memmove(frames_ + kept, next, added * sizeof(frame));
    if (end.is_reached) {
      const std::size_t few = kept + added < max_stack_frames ? kept + added : max_stack_frames;
      std::uint64_t hash = kept == 0 ? hash_of_no_frames : frames_[kept - 1].hash;
      for (std::size_t index = kept; index < few; ++index) {
        hash = hash_of_frames(hash, frames_[index].state.returns_to);
        frames_[index].hash = hash;
      }
    }
    end_ = end;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    count_ = kept + added;
  }

  std::size_t count_ = 0;
  outer_end end_;
  frame frames_[most_frames];
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
