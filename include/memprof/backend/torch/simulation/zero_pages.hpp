#pragma once

#include <memprof/detail/futex_lock.hpp>
#include <memprof/record/recorder.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// The size classes of blocks of pages, four per power of two.
struct page_classes {
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t count = std::size_t{4} * 33;

  [[nodiscard]] static constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  /// The class of a size; `count` or more if there is none.
  [[nodiscard]] static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    const std::size_t pages = whole_pages(bytes) / page_bytes;
    if (pages <= 4) return pages == 0 ? 0 : pages - 1;
    const auto exponent = static_cast<std::size_t>(63 - std::countl_zero(pages - 1));  // 2^exponent < pages <= 2^(exponent + 1)
    const std::size_t quarter = (pages - 1) >> (exponent - 2);                         // 4 to 7
    return 4 * (exponent - 1) + quarter - 4;
  }
  [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    if (size_class < 4) return (size_class + 1) * page_bytes;
    const std::size_t exponent = size_class / 4 + 1;
    return ((size_class % 4 + 5) << (exponent - 2)) * page_bytes;
  }
};
static_assert(page_classes::class_of(1) == 0 && page_classes::class_of(4 * 4096) == 3 &&
              page_classes::class_of(4 * 4096 + 1) == 4);
static_assert(page_classes::bytes_of(4) == 5 * 4096 && page_classes::bytes_of(7) == 8 * 4096);
static_assert(page_classes::class_of(8 * 4096) == 7 && page_classes::class_of(9 * 4096) == 8);
static_assert(page_classes::bytes_of(8) == 10 * 4096 && page_classes::class_of(page_classes::bytes_of(131)) == 131);

/// Addresses that read as zeros and take memory only where something is written.
///
/// They come from one range of the address space. A returned block is reused for a later one of about its size: sizes are rounded
/// up to a power of two or one of three steps between, which costs addresses but no memory. Thread-safe.
class zero_pages {
 public:
  /// Reserves as much of the address space as the system allows, up to 32 TiB.
  zero_pages() noexcept {
    constexpr unsigned max_bits = 45;
    constexpr unsigned least_bits = 36;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (unsigned bits = max_bits; bits >= least_bits; --bits) {
      const std::size_t bytes = std::size_t{1} << bits;
      void* const range = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
      if (range == MAP_FAILED) continue;
#if defined(MADV_NOHUGEPAGE)
      ::madvise(range, bytes, MADV_NOHUGEPAGE);  // a written byte should take a page, not two MiB
#endif
      next_ = static_cast<char*>(range);
      end_ = next_ + bytes;
      return;
    }
  }
  zero_pages(const zero_pages&) = delete;
  zero_pages& operator=(const zero_pages&) = delete;
  ~zero_pages() = delete;  // there is only one, and tensors may outlive everything else

  /// False if the system refused even the smallest range.
  [[nodiscard]] bool is_usable() const noexcept { return end_ != nullptr; }

  /// Null if the range is used up. If `give_back` has no memory for the list of free blocks, it forgets them, which costs
  /// addresses.
  [[nodiscard]] void* take(std::size_t bytes) noexcept {
    const std::size_t size_class = page_classes::class_of(bytes);
    if (size_class >= page_classes::count) return nullptr;
    const lock_guard guard{lock_};
    std::vector<void*>& free = free_[size_class];
    if (!free.empty()) {
      void* const taken = free.back();
      free.pop_back();
      return taken;
    }
    const std::size_t rounded = page_classes::bytes_of(size_class);
    if (rounded > static_cast<std::size_t>(end_ - next_)) return nullptr;
    void* const taken = next_;
    next_ += rounded;
    return taken;
  }

  /// The block reads as zeros again when it is next taken. `was_touched`: it may have been read or written.
  void give_back(void* address, std::size_t bytes, bool was_touched) noexcept {
    if (was_touched) clear(address, bytes);
    const recording_suppressor hidden;
    const lock_guard guard{lock_};
    try {
      free_[page_classes::class_of(bytes)].push_back(address);
    } catch (...) {
      return;
    }
  }

  /// Zeroes a block and gives its memory back to the system.
  static void clear(void* address, std::size_t bytes) noexcept {
    ::madvise(address, page_classes::whole_pages(bytes), MADV_DONTNEED);
  }

 private:
  futex_lock lock_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::array<std::vector<void*>, page_classes::count> free_;
};

/// The process's zero pages.
[[nodiscard, gnu::visibility("default")]] inline zero_pages& process_zero_pages() {
  const recording_suppressor hidden;
  static auto* const pages = new zero_pages;
  return *pages;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
