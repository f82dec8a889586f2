#pragma once

#include <memprof/backend/cuda/places.hpp>
#include <memprof/config.hpp>
#include <memprof/ledger/live_blocks.hpp>

#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// The calls that free: each frees blocks of one sort only.
enum class freeing_call : std::uint8_t { free, free_host, free_array, free_mipmapped_array };

/// A block of a simulated device, or of the host's memory that goes with it.
struct simulated_block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< as the program asked for them
  memory_kind kind = memory_kind::device;
  freeing_call freed_by = freeing_call::free;
  std::uint32_t device = 0;
  std::uint64_t pool = 0;              ///< 0: by no call of the stream-ordered allocator
  std::uint16_t bytes_of_element = 0;  ///< of an array
};

/// The blocks by address, in memory of its own.
class simulated_blocks {
 public:
  /// False if the system has no memory.
  [[nodiscard]] bool put(const simulated_block& added) noexcept {
    const live_blocks::insertion made = table_.insert(added.address);
    if (made.entry == nullptr) return false;
    *made.entry = {added.address, added.bytes, added.pool,
                   std::uint64_t{added.device} << 32 | std::uint64_t{added.bytes_of_element} << 16 |
                       std::uint64_t{static_cast<std::uint8_t>(added.freed_by)} << 8 | static_cast<std::uint8_t>(added.kind)};
    return true;
  }

  /// The block at `address`; one of address 0 if there is none.
  [[nodiscard]] simulated_block at(std::uint64_t address) const noexcept {
    const block* const entry = table_.at(address);
    return entry == nullptr ? simulated_block{} : to_simulated(*entry);
  }

  /// The block that `address` lies in, likewise. Costs a pass over all, unless it is the first byte.
  [[nodiscard]] simulated_block around(std::uint64_t address) const noexcept {
    simulated_block found = at(address);
    if (found.address != 0) return found;
    for_each([&](const simulated_block& each) {
      if (address >= each.address && address - each.address < each.bytes) found = each;
    });
    return found;
  }

  void erase(std::uint64_t address) noexcept {
    if (const live_blocks::place found = table_.find(address)) table_.erase(found);
  }

  /// In no particular order; `visit` must not change the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    table_.for_each([&](const block& entry) { visit(to_simulated(entry)); });
  }

 private:
  [[nodiscard]] static simulated_block to_simulated(const block& entry) noexcept {
    return {entry.address,
            entry.bytes,
            static_cast<memory_kind>(entry.owner & 0xFF),
            static_cast<freeing_call>(entry.owner >> 8 & 0xFF),
            static_cast<std::uint32_t>(entry.owner >> 32),
            entry.born_thread,
            static_cast<std::uint16_t>(entry.owner >> 16)};
  }

  live_blocks table_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
