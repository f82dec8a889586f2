#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// While this object lives, `map_pages` gives the thread that made it at most this many bytes, and `each_byte` more for each byte
/// of input; for folding traces from untrusted sources.
class page_budget {
 public:
  explicit page_budget(std::size_t bytes, std::size_t each_byte = 0) noexcept
      : left_(bytes), each_byte_(each_byte), outer_(of_this_thread) {
    of_this_thread = this;
  }
  page_budget(const page_budget&) = delete;
  page_budget& operator=(const page_budget&) = delete;
  ~page_budget() { of_this_thread = outer_; }

  /// Used by readers: so much input was read, or came out of packed input.
  static void add_input(std::size_t bytes) noexcept {
    if (of_this_thread == nullptr) return;
    of_this_thread->input_ += bytes;
    of_this_thread->left_ += bytes * of_this_thread->each_byte_;
  }
  /// Bytes of input so far.
  [[nodiscard]] std::size_t input() const noexcept { return input_; }
  /// Whether more was requested.
  [[nodiscard]] bool is_exhausted() const noexcept { return is_exhausted_; }

  /// Used by `map_pages` and `unmap_pages`.
  [[nodiscard]] static bool take(std::size_t bytes) noexcept {
    page_budget* const budget = of_this_thread;
    if (budget == nullptr) return true;
    if (bytes > budget->left_) {
      budget->is_exhausted_ = true;
      return false;
    }
    budget->left_ -= bytes;
    return true;
  }
  static void give_back(std::size_t bytes) noexcept {
    if (of_this_thread != nullptr) of_this_thread->left_ += bytes;
  }

 private:
  [[gnu::tls_model("initial-exec")]] inline static constinit thread_local page_budget* of_this_thread = nullptr;

  std::size_t left_;
  std::size_t each_byte_;
  std::size_t input_ = 0;
  page_budget* outer_;
  bool is_exhausted_ = false;
};

/// Zeroed memory straight from the system, invisible to our hooks and to any allocator under observation. Null if there is none.
/// The system provides each page when it is first touched.
[[nodiscard]] inline void* map_pages(std::size_t bytes) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  if (!page_budget::take(bytes)) return nullptr;
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages != MAP_FAILED) return pages;
  page_budget::give_back(bytes);
  return nullptr;
#else
  return std::calloc(1, bytes);
#endif
}

/// Returns memory from `map_pages` of the same size; a null pointer is allowed.
inline void unmap_pages(void* pages, std::size_t bytes) noexcept {
  if (pages == nullptr) return;
#if defined(__unix__) || defined(__APPLE__)
  ::munmap(pages, bytes);
  page_budget::give_back(bytes);
#else
  (void)bytes;
  std::free(pages);
#endif
}

}  // namespace memprof::inline MEMPROF_ABI::detail
