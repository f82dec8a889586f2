#pragma once

#include <memprof/memprof.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace memprof_tests {

/// A block from `memprof::allocator` whose bytes nobody writes.
class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t size) : block_{memprof::allocator<char>{}.allocate(size)}, size_{size} {}
  buffer(buffer&& other) noexcept : block_{std::exchange(other.block_, nullptr)}, size_{other.size_} {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~buffer() { free(); }

  void free() {
    if (block_ != nullptr) memprof::allocator<char>{}.deallocate(std::exchange(block_, nullptr), size_);
  }
  [[nodiscard]] const char* address() const { return block_; }

 private:
  char* block_ = nullptr;
  std::size_t size_ = 0;
};

/// A block that an operation of that name allocates.
inline buffer allocated_in(std::string_view operation, std::size_t bytes, memprof::optional_category kind = {}) {
  const auto scope = memprof::track_operation(operation, kind);
  return buffer(bytes);
}

}  // namespace memprof_tests
