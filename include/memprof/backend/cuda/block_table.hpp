#pragma once

#include <memprof/config.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>

/// @file
/// What a backend remembers of CUDA's blocks: a free says neither the space nor the size. In memory of its own.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// A block that the program has.
struct held_block {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t context;  ///< CUPTI's number of the context that it was allocated in
  space_id space;
  label stream_and_pool;    ///< 0: its calls were not ordered on a stream
  bool is_divided = false;  ///< its parts are recorded
};

/// The blocks by address.
class block_table {
 public:
  /// False if the system has no memory.
  [[nodiscard]] bool put(const held_block& held) noexcept {
    const live_blocks::insertion made = table_.insert(held.address);
    if (made.entry == nullptr) return false;
    *made.entry = {held.address, held.bytes, std::uint64_t{held.context} << 32 | held.stream_and_pool,
                   std::uint64_t{held.is_divided} << divided_bit | held.space.value};
    return true;
  }

  /// Removes the block at `address` into `taken`; false if there is none.
  [[nodiscard]] bool take(std::uint64_t address, held_block& taken) noexcept {
    const live_blocks::place found = table_.find(address);
    if (!found) return false;
    taken = to_held(*found.entry);
    table_.erase(found);
    return true;
  }

  [[nodiscard]] bool has(std::uint64_t address) const noexcept { return table_.at(address) != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }

  /// In no particular order; `visit` must not change the table.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    table_.for_each([&](const block& entry) { visit(to_held(entry)); });
  }

 private:
  [[nodiscard]] static held_block to_held(const block& entry) noexcept {
    return {entry.address,
            entry.bytes,
            static_cast<std::uint32_t>(entry.born_thread >> 32),
            space_id{static_cast<std::uint8_t>(entry.owner)},
            static_cast<label>(entry.born_thread),
            (entry.owner >> divided_bit & 1) != 0};
  }

  static constexpr unsigned divided_bit = 8;  // above the space

  live_blocks table_;
};

/// Memory made by `cuMemCreate`: it is the handle's, and lives until that is released and mapped nowhere.
struct held_memory {
  std::uint64_t handle;
  std::uint64_t bytes;
  space_id space;
  std::uint32_t handles;   ///< how often it was created or retained and not yet released
  std::uint32_t mappings;  ///< how often it is mapped

  [[nodiscard]] bool is_unused() const noexcept { return handles == 0 && mappings == 0; }
};

/// The memory by its handle.
class memory_table {
 public:
  /// Adds it or replaces what is known of the handle. False if the system has no memory.
  [[nodiscard]] bool put(const held_memory& held) noexcept {
    const live_blocks::insertion made = table_.insert(held.handle);
    if (made.entry == nullptr) return false;
    *made.entry = {held.handle, held.bytes, std::uint64_t{held.handles} << 32 | held.mappings, held.space.value};
    return true;
  }
  /// False if the handle is unknown.
  [[nodiscard]] bool get(std::uint64_t handle, held_memory& found) const noexcept {
    const block* const entry = table_.at(handle);
    if (entry == nullptr) return false;
    found = {entry->address, entry->bytes, space_id{static_cast<std::uint8_t>(entry->owner)},
             static_cast<std::uint32_t>(entry->born_thread >> 32), static_cast<std::uint32_t>(entry->born_thread)};
    return true;
  }
  void erase(std::uint64_t handle) noexcept {
    if (const live_blocks::place found = table_.find(handle)) table_.erase(found);
  }

 private:
  live_blocks table_;
};

/// Where memory of a handle is mapped.
struct mapping {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t handle;
};

/// The mappings by address.
class mapping_table {
 public:
  /// False if the system has no memory.
  [[nodiscard]] bool put(const mapping& added) noexcept {
    const live_blocks::insertion made = table_.insert(added.address);
    if (made.entry == nullptr) return false;
    *made.entry = {added.address, added.bytes, added.handle, 0};
    return true;
  }
  [[nodiscard]] bool take(std::uint64_t address, mapping& taken) noexcept {
    const live_blocks::place found = table_.find(address);
    if (!found) return false;
    taken = {found->address, found->bytes, found->born_thread};
    table_.erase(found);
    return true;
  }

 private:
  live_blocks table_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
