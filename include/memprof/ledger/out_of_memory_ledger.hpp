#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/ledger/tally.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
struct frame_parts;
}

/// An allocation that a device had no memory for, and what was held then; bytes.
struct out_of_memory_record {
  std::int64_t requested;
  std::int64_t device_free;  ///< -1: not known
  std::int64_t live;
  std::int64_t reserved;
  std::uint64_t stamp;
  std::uint64_t segment;    ///< its number
  std::uint32_t operation;  ///< the innermost, on the thread that asked
};

/// The first `max_kept` of them, and how many there were beyond: a program may try again and again.
class out_of_memory_ledger {
 public:
  static constexpr std::size_t max_kept = 32;

  void add(const out_of_memory_record& failed) noexcept {
    if (kept_.size() == max_kept || !kept_.push_back(failed)) further_.add(static_cast<std::uint64_t>(failed.requested));
  }

  [[nodiscard]] const detail::page_array<out_of_memory_record>& kept() const noexcept { return kept_; }
  [[nodiscard]] const tally& further() const noexcept { return further_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return kept_.bytes(); }

 private:
  friend struct detail::frame_parts;

  detail::page_array<out_of_memory_record> kept_;
  tally further_;
};

}  // namespace memprof::inline MEMPROF_ABI
