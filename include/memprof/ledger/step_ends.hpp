#pragma once

#include <memprof/detail/page_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_segments;

/// The least and the most bytes of one owner at the ends of the steps in a part of a run.
struct part_bytes {
  std::int64_t least;
  std::int64_t most;
};

/// The segments whose ends are the ends of steps: all of one name.
struct step_end_choice {
  static constexpr std::uint32_t no_row = ~std::uint32_t{0};

  std::uint32_t row = no_row;  ///< of the name
  std::uint64_t first = 0;     ///< how many segments of the name had ended when it was chosen

  bool operator==(const step_end_choice&) const = default;
};

/// What each owner in a memory space had at the ends of steps, in bounded memory: at most 64 parts with as many steps each, a
/// power of two; when all are full, every two become one. Owners that never had bytes at such an end take 4 bytes, others 1 KiB.
///
/// At each end, call `begin`, `add` with the bytes of every owner, and `finish`.
class step_ends {
 public:
  static constexpr std::size_t max_parts = 64;
  /// In place of an operation: what an allocator reserves beyond the blocks.
  static constexpr std::uint32_t reserved_owner = ~std::uint32_t{0};

  /// Forgets what it knows. Nothing had any bytes at the first `count` ends since `choice`.
  void restart(const step_end_choice& choice, std::uint64_t count) noexcept {
    choice_ = choice;
    row_of_operation_.clear();
    row_of_reserved_ = 0;
    operations_.clear();
    parts_.clear();
    ends_ = begin_ = count;
    width_ = 1;
    while (count > width_ * max_parts) width_ *= 2;
  }
  [[nodiscard]] const step_end_choice& choice() const noexcept { return choice_; }

  /// Until `finish`, bytes are those at all ends from the last one known to number `count`, exclusive.
  void begin(std::uint64_t count) noexcept {
    is_known_ = true;
    while (count > width_ * max_parts) halve();
    begin_ = count;
  }
  void add(std::uint32_t operation, std::int64_t bytes) noexcept {
    std::uint32_t row = row_of(operation);
    if (row == 0) {
      if (bytes == 0) return;
      row = make_row(operation);
      if (row == 0) {
        is_known_ = false;
        return;
      }
    }
    part_bytes* const parts = parts_.data() + (row - 1) * max_parts;
    for (std::uint64_t part = ends_ / width_; part * width_ < begin_; ++part) {
      if (part * width_ >= ends_) {
        parts[part] = {bytes, bytes};
      } else {
        parts[part] = {std::min(parts[part].least, bytes), std::max(parts[part].most, bytes)};
      }
    }
  }
  /// False if the system had no memory for an owner.
  [[nodiscard]] bool finish() noexcept {
    ends_ = begin_;
    return is_known_;
  }

  /// How many ends there were since the choice, and how many are in a part, except for the last one.
  [[nodiscard]] std::uint64_t count() const noexcept { return ends_; }
  [[nodiscard]] std::uint64_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t part_count() const noexcept { return (ends_ + width_ - 1) / width_; }
  /// The owners: operations, 0 for none, or `reserved_owner`.
  [[nodiscard]] const page_array<std::uint32_t>& owners() const noexcept { return operations_; }
  /// The parts of the owner at that index.
  [[nodiscard]] const part_bytes* parts(std::size_t index) const noexcept { return parts_.data() + index * max_parts; }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return row_of_operation_.bytes() + operations_.bytes() + parts_.bytes(); }

 private:
  friend struct saved_segments;

  [[nodiscard]] std::uint32_t row_of(std::uint32_t operation) const noexcept {
    if (operation == reserved_owner) return row_of_reserved_;
    return operation < row_of_operation_.size() ? row_of_operation_[operation] : 0;
  }

  /// Earlier parts are zero, as the owner had nothing. 0 if the system has no memory.
  [[gnu::cold, gnu::noinline]] std::uint32_t make_row(std::uint32_t operation) noexcept {
    const bool is_new = operation != reserved_owner && operation >= row_of_operation_.size();
    if (!operations_.reserve(operations_.size() + 1) || !parts_.reserve((operations_.size() + 1) * max_parts) ||
        (is_new && !row_of_operation_.resize(operation + std::size_t{1}))) {
      return 0;
    }
    (void)operations_.push_back(operation);
    (void)parts_.resize(operations_.size() * max_parts);
    const auto row = static_cast<std::uint32_t>(operations_.size());
    return (operation == reserved_owner ? row_of_reserved_ : row_of_operation_[operation]) = row;
  }

  [[gnu::cold, gnu::noinline]] void halve() noexcept {
    const std::size_t used = part_count();
    for (std::size_t row = 0; row < operations_.size(); ++row) {
      part_bytes* const parts = parts_.data() + row * max_parts;
      for (std::size_t part = 0; part < used; part += 2) {
        const part_bytes& other = parts[part + 1 < used ? part + 1 : part];
        parts[part / 2] = {std::min(parts[part].least, other.least), std::max(parts[part].most, other.most)};
      }
    }
    width_ *= 2;
  }

  step_end_choice choice_;
  std::uint64_t ends_ = 0;
  std::uint64_t begin_ = 0;  ///< of the ends that are not known yet; `ends_` outside `begin` and `finish`
  std::uint64_t width_ = 1;
  bool is_known_ = true;
  page_array<std::uint32_t> row_of_operation_;  ///< plus one; 0: none
  std::uint32_t row_of_reserved_ = 0;
  page_array<std::uint32_t> operations_;  ///< by row
  page_array<part_bytes> parts_;          ///< `max_parts` for each row
};

}  // namespace memprof::inline MEMPROF_ABI::detail
