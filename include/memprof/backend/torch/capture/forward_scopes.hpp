#pragma once

#include <memprof/trace/label.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The program's scope in which each forward operator ran. The operator's node in the backward pass looks it up by the operator's
/// thread and sequence number.
///
/// Keeps the last 65,536 operators in 512 KiB; nodes of older ones find nothing. Any thread may store and find: an entry is one
/// word, and autograd itself orders the two calls.
class forward_scopes {
 public:
  static constexpr std::size_t capacity = 65536;

  void store(std::uint64_t thread, std::int64_t sequence, label scope) noexcept {
    const std::uint64_t known = scope <= max_label ? scope : 0;
    // Relaxed, here and in `find`: a label is a number that means the same to every thread.
    slot_of(thread, sequence).store(key_of(thread, sequence) << label_bits | known, std::memory_order_relaxed);
  }

  /// The innermost scope in which the operator ran; 0 if there was none or it has been overwritten.
  [[nodiscard]] label find(std::uint64_t thread, std::int64_t sequence) const noexcept {
    const std::uint64_t word = slot_of(thread, sequence).load(std::memory_order_relaxed);
    return word >> label_bits == key_of(thread, sequence) ? static_cast<label>(word & max_label) : 0;
  }

 private:
  static constexpr unsigned label_bits = 24;
  static constexpr std::uint64_t max_label = (std::uint64_t{1} << label_bits) - 1;
  static constexpr unsigned thread_bits = 12;
  static constexpr unsigned sequence_bits = 64 - label_bits - thread_bits;

  /// Distinguishes the operators that share a slot. Repeats after 2^28 operators of a thread, long after the slot was
  /// overwritten.
  [[nodiscard]] static std::uint64_t key_of(std::uint64_t thread, std::int64_t sequence) noexcept {
    const std::uint64_t number = static_cast<std::uint64_t>(sequence) & ((std::uint64_t{1} << sequence_bits) - 1);
    return number << thread_bits | (thread & ((1U << thread_bits) - 1));
  }

  /// Consecutive operators of a thread are adjacent; threads start at different places.
  [[nodiscard]] static std::size_t index_of(std::uint64_t thread, std::int64_t sequence) noexcept {
    constexpr std::uint64_t stride = 0x9E37;
    return (static_cast<std::uint64_t>(sequence) + thread * stride) % capacity;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& slot_of(std::uint64_t thread, std::int64_t sequence) noexcept {
    return slots_[index_of(thread, sequence)];
  }
  [[nodiscard]] const std::atomic<std::uint64_t>& slot_of(std::uint64_t thread, std::int64_t sequence) const noexcept {
    return slots_[index_of(thread, sequence)];
  }

  std::atomic<std::uint64_t> slots_[capacity]{};
};

/// Zero-initialised, so that it takes no memory in a program without a capture.
inline constinit forward_scopes process_forward_scopes{};

}  // namespace memprof::inline MEMPROF_ABI::detail
