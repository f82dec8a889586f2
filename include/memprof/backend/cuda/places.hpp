#pragma once

#include <memprof/config.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/stream_and_pool.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// The names of CUDA's memory in a profile: spaces, streams and pools.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Whose memory it is.
enum class memory_kind : std::uint8_t { device, managed, pinned };

/// Where a call allocates or frees.
struct place {
  memory_kind kind = memory_kind::device;
  std::uint32_t device = 0;
  std::uint32_t context = 0;  ///< CUPTI's number
  bool is_on_stream = false;  ///< ordered on `stream`, from `pool`
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;
  label asked_by = 0;  ///< the library that allocates outside every operation; 0: none
};

/// What is recorded of a space.
struct recorded_bytes {
  std::int64_t live = 0;
  std::int64_t on_streams = 0;  ///< those of the stream-ordered allocator
  std::int64_t pending = 0;     ///< not live: freed on streams that the host has not waited for
  std::int64_t pending_peak = 0;
};

/// The spaces "cuda:0", "cuda:0 managed" and so on, and "pinned". A call takes the registry's lock if a space is new.
class spaces {
 public:
  static constexpr std::uint32_t max_devices = 64;

  /// Without taking a lock; `any_space` if nothing was found there yet.
  [[nodiscard]] space_id of_device(std::uint32_t device) const noexcept {
    if (device >= max_devices || !device_[device].has_value()) return space_id{any_space};
    return *device_[device];
  }

  /// Devices beyond the limit count as the last.
  [[nodiscard]] space_id find(memory_kind kind, std::uint32_t device) noexcept {
    if (kind == memory_kind::pinned) return find(pinned_, "pinned");
    if (device >= max_devices) device = max_devices - 1;
    constexpr std::string_view prefix = "cuda:";
    constexpr std::string_view suffix = " managed";
    std::array<char, prefix.size() + 2 + suffix.size()> text{};
    prefix.copy(text.data(), prefix.size());
    char* end = std::to_chars(text.data() + prefix.size(), text.data() + prefix.size() + 2, device).ptr;
    if (kind == memory_kind::managed) end += suffix.copy(end, suffix.size());
    std::optional<memory_space>& known = (kind == memory_kind::managed ? managed_ : device_)[device];
    return find(known, {text.data(), static_cast<std::size_t>(end - text.data())});
  }

 private:
  [[nodiscard]] static space_id find(std::optional<memory_space>& known, std::string_view name) noexcept {
    if (!known.has_value()) known.emplace(name);
    return *known;
  }

  std::array<std::optional<memory_space>, max_devices> device_{};
  std::array<std::optional<memory_space>, max_devices> managed_{};
  std::optional<memory_space> pinned_;
};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`, the names of which 0 is one, too.
inline constexpr std::uint64_t legacy_stream = 1;
inline constexpr std::uint64_t per_thread_stream = 2;

/// A handle as text: "0x55d0c0a1b2c0".
class handle_text {
 public:
  explicit handle_text(std::uint64_t handle) noexcept {
    constexpr int hexadecimal = 16;
    end_ = std::to_chars(text_.data() + 2, text_.data() + text_.size(), handle, hexadecimal).ptr;
  }
  handle_text(const handle_text&) = delete;
  handle_text& operator=(const handle_text&) = delete;
  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), static_cast<std::size_t>(end_ - text_.data())}; }

 private:
  std::array<char, 2 + 16> text_{'0', 'x'};
  char* end_ = nullptr;
};

/// The name of a stream, and of the pool that it allocates from; 0: the device's own. Takes the registry's lock.
[[nodiscard]] inline stream_and_pool name_stream_and_pool(std::uint64_t stream, std::uint64_t pool) noexcept {
  const handle_text pool_handle{pool};
  const std::string_view pool_name = pool == 0 ? std::string_view{} : pool_handle.view();
  if (stream <= legacy_stream) return stream_and_pool{"default", pool_name};
  if (stream == per_thread_stream) return stream_and_pool{"default of each thread", pool_name};
  return stream_and_pool{handle_text{stream}.view(), pool_name};
}

/// A cache of the names of the streams and pools that were used recently. Not thread-safe.
class stream_names {
 public:
  [[nodiscard]] stream_and_pool find(std::uint64_t stream, std::uint64_t pool) noexcept {
    constexpr unsigned object_bits = 6;  // handles are addresses of objects larger than that
    named& place = named_[((stream ^ pool) >> object_bits) % named_.size()];
    if (place.name == stream_and_pool{} || place.stream != stream || place.pool != pool)
      place = {stream, pool, name_stream_and_pool(stream, pool)};
    return place.name;
  }

 private:
  struct named {
    std::uint64_t stream = 0;
    std::uint64_t pool = 0;
    stream_and_pool name;
  };

  std::array<named, 32> named_{};
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
