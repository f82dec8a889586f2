#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/wide_integer.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/segment_record.hpp>
#include <memprof/ledger/top_blocks.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof::inline MEMPROF_ABI::detail {

class space_ledger;

struct saved_spaces;

/// A memory shared by two or more spaces, with its joint peak: the greatest sum of what they hold at one moment.
///
/// Only one space changes at a time, so an event needs no sum: while a space is `active`, the joint peak is exceeded when its own
/// live bytes exceed the peak minus what the others hold. The ledger notifies it when another space becomes active.
class shared_memory {
 public:
  explicit shared_memory(label named) noexcept : name(named) {}

  /// The greatest number of bytes that the active space may hold without exceeding the joint peak.
  [[nodiscard]] std::int64_t room_of_active() const noexcept { return saturated(peak - others); }
  /// The active space holds `live` bytes, which exceeds the joint peak.
  void raise(std::int64_t live, std::uint64_t stamp, std::uint64_t segment, std::uint32_t operation) noexcept {
    peak = others + live;
    ++peaks;
    peak_stamp = stamp;
    peak_segment = segment;
    peak_operation = operation;
    peak_space = active_id;
    sole_space = any_space;
  }

  /// Sums over several spaces may exceed 64 bits; a profile then has the greatest representable number.
  [[nodiscard]] static std::int64_t saturated(int128 bytes) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    return bytes > most ? most : static_cast<std::int64_t>(bytes);
  }

  label name;
  std::uint8_t active_id = any_space;
  std::uint8_t peak_space = any_space;  ///< the space whose allocation reached the peak
  /// The only space when the peak was reached, whose own overall peak says everything about it. `any_space`: there were several,
  /// or none.
  std::uint8_t sole_space = any_space;
  bool is_known = true;    ///< false: a saved state of an older memprof lacked it
  bool is_pinned = false;  ///< `pinned_segment` is kept for the peak's sake
  space_ledger* active = nullptr;
  int128 others = 0;  ///< live bytes of all spaces except the active one
  int128 peak = 0;
  std::uint64_t peaks = 1;  ///< number of times the peak was raised, plus one
  std::uint64_t peak_stamp = 0;
  std::uint64_t peak_segment = 0;  ///< number
  std::uint64_t pinned_segment = 0;
  std::uint32_t peak_operation = 0;
};

/// One space's part of a shared memory's joint peak: the blocks allocated by then that are still live, and those freed since,
/// whose owners are summed and of which the largest are kept.
class memory_share {
 public:
  memory_share(shared_memory* memory, std::uint8_t space, std::uint32_t largest_blocks) noexcept
      : memory_(memory), limit_(largest_blocks), space_(space) {
    is_usable_ = freed_largest_.resize(largest_blocks);
  }

  /// False if the system had no memory for it.
  [[nodiscard]] bool is_usable() const noexcept { return is_usable_; }
  [[nodiscard]] shared_memory& memory() const noexcept { return *memory_; }
  /// The id of the space.
  [[nodiscard]] std::uint8_t space() const noexcept { return space_; }

  /// Call before the space changes. If the joint peak was raised since its last change, the space held at that peak exactly what
  /// it holds now.
  void settle(std::uint64_t ordinal, std::int64_t live, std::size_t blocks) noexcept {
    if (seen_ != memory_->peaks) begin_peak(ordinal, live, blocks);
  }
  /// The space itself has raised the peak.
  void begin_peak(std::uint64_t ordinal, std::int64_t live, std::size_t blocks) noexcept {
    seen_ = memory_->peaks;
    ordinal_ = ordinal;
    live_ = live;
    blocks_ = static_cast<std::int64_t>(blocks);
    freed_count_ = 0;
    ++epoch_;
  }
  void remember_freed(const block& freed) noexcept {
    if (freed.born() > ordinal_) return;
    add(by_category_[freed.category()], freed);
    // If there is no memory for its row, an operation's bytes count as outside every operation.
    const std::uint32_t node = freed.operation();
    if (node < by_operation_.size() || by_operation_.resize(node + std::size_t{1})) add(by_operation_[node], freed);
    top_blocks_view{freed_largest_.data(), freed_count_, limit_}.offer(freed);
  }

  /// Whether the peak was raised since the space last changed; if so, the space held at the peak what it holds now.
  [[nodiscard]] bool is_unchanged_since_peak() const noexcept { return seen_ != memory_->peaks; }
  /// Blocks of the space allocated up to this ordinal were live at the peak, unless freed before.
  [[nodiscard]] std::uint64_t ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t blocks() const noexcept { return blocks_; }
  /// The part of what was live at the peak that has been freed since.
  [[nodiscard]] category_at_peak freed_of_category(std::size_t category) const noexcept {
    return current(by_category_[category]);
  }
  [[nodiscard]] std::size_t operation_count() const noexcept { return by_operation_.size(); }
  [[nodiscard]] category_at_peak freed_of_operation(std::size_t node) const noexcept { return current(by_operation_[node]); }
  /// Calls `visit(block)` for the largest blocks freed since the peak.
  template <class Visitor>
  void for_each_large_freed(Visitor&& visit) const {
    for (std::uint32_t index = 0; index < freed_count_; ++index) visit(freed_largest_[index]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept { return by_operation_.bytes() + freed_largest_.bytes(); }

 private:
  friend struct saved_spaces;

  /// Valid only for the peak with that `epoch`.
  struct freed_bytes {
    std::int64_t bytes;
    std::int64_t blocks;
    std::uint64_t epoch;
  };

  void add(freed_bytes& row, const block& freed) const noexcept {
    if (row.epoch != epoch_) row = {0, 0, epoch_};
    row.bytes += static_cast<std::int64_t>(freed.bytes);
    ++row.blocks;
  }
  [[nodiscard]] category_at_peak current(const freed_bytes& row) const noexcept {
    return row.epoch == epoch_ ? category_at_peak{row.bytes, row.blocks} : category_at_peak{0, 0};
  }

  shared_memory* memory_;
  std::uint32_t limit_;
  std::uint32_t freed_count_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t ordinal_ = 0;
  std::int64_t live_ = 0;
  std::int64_t blocks_ = 0;
  std::uint64_t epoch_ = 1;
  std::array<freed_bytes, category_names.size()> by_category_{};
  page_array<freed_bytes> by_operation_;
  page_array<block> freed_largest_;
  std::uint8_t space_;
  bool is_usable_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
