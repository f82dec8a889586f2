#pragma once

#include <memprof/record/stream_and_pool.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// The names of CUDA's streams and of the caching allocator's pools in a profile.

namespace memprof::inline MEMPROF_ABI::detail {

/// A pool as libtorch numbers it; both numbers are 0 for the allocator's own. Older versions, such as 2.6, omit it from trace
/// entries.
struct cuda_pool {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool is_known = false;

  bool operator==(const cuda_pool&) const = default;
};

/// The pool of a trace entry.
template <class Entry>
[[nodiscard]] cuda_pool pool_of_entry(const Entry& entry) noexcept {
  if constexpr (requires { entry.mempool_.first; }) {
    return {entry.mempool_.first, entry.mempool_.second, true};
  } else {
    return {};
  }
}

/// The pool of a segment in a snapshot. Known only if trace entries have it, too, so that both count in the same row.
template <class Entry, class Segment>
[[nodiscard]] cuda_pool pool_of_segment(const Segment& segment) noexcept {
  if constexpr (requires(const Entry& entry) { entry.mempool_.first; }) {
    return {segment.owner_private_pool_id.first, segment.owner_private_pool_id.second, true};
  } else {
    return {};
  }
}

/// The name of a stream and a pool. Takes the registry's lock.
[[nodiscard]] inline stream_and_pool name_cuda_stream(std::uintptr_t stream, const cuda_pool& pool) noexcept {
  constexpr std::size_t longest_number = 20;
  constexpr std::size_t longest = 2 * longest_number + 8;  // plus the prefix and the separator
  constexpr int hexadecimal = 16;
  std::array<char, longest> stream_text{'0', 'x'};
  std::array<char, longest> pool_text{};
  char* const stream_end = std::to_chars(stream_text.data() + 2, stream_text.data() + longest, stream, hexadecimal).ptr;
  char* pool_end = std::to_chars(pool_text.data(), pool_text.data() + longest_number, pool.first).ptr;
  *pool_end++ = ':';
  pool_end = std::to_chars(pool_end, pool_text.data() + longest, pool.second).ptr;
  const std::string_view private_pool{pool_text.data(), static_cast<std::size_t>(pool_end - pool_text.data())};
  const std::string_view address{stream_text.data(), static_cast<std::size_t>(stream_end - stream_text.data())};
  const bool is_own = pool.first == 0 && pool.second == 0;
  return stream_and_pool{stream == 0 ? "default" : address, !pool.is_known ? "unknown" : is_own ? "" : private_pool};
}

/// A cache of the names that the trace of one device used recently. Used under the lock of that device's allocator.
class cuda_stream_names {
 public:
  [[nodiscard]] stream_and_pool find(std::uintptr_t stream, const cuda_pool& pool) noexcept {
    // Streams are addresses of objects larger than this.
    constexpr unsigned object_bits = 6;
    named& place = named_[(stream >> object_bits ^ pool.first ^ pool.second) % named_.size()];
    if (place.name == stream_and_pool{} || place.stream != stream || place.pool != pool) {
      place = {stream, pool, name_cuda_stream(stream, pool)};
    }
    return place.name;
  }

 private:
  struct named {
    std::uintptr_t stream = 0;
    cuda_pool pool;
    stream_and_pool name;
  };

  std::array<named, 16> named_{};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
