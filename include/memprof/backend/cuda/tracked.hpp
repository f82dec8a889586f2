#pragma once

#include <memprof/backend/cuda/begun_calls.hpp>
#include <memprof/backend/cuda/block_table.hpp>
#include <memprof/backend/cuda/divided_blocks.hpp>
#include <memprof/backend/cuda/pending_frees.hpp>
#include <memprof/backend/cuda/places.hpp>
#include <memprof/config.hpp>
#include <memprof/record/block_parts.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

/// @file
/// What a `tracker` works with.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// How the program divides the next block that this thread gets from CUDA.
struct parts_of_block {
  const block_part* first = nullptr;
  std::size_t count = 0;
};
inline constinit thread_local parts_of_block parts_of_next_block{};

/// An operation around one event, of the library that allocates; 0: none.
class [[nodiscard]] owning_operation {
 public:
  explicit owning_operation(label library) noexcept : capture_(library == 0 ? 0 : event_sink{}.capture()) {
    if (capture_ != 0 && event_sink{}.is_thread_recordable()) operation_ = event_sink{}.begin_operation(library, {});
  }
  owning_operation(const owning_operation&) = delete;
  owning_operation& operator=(const owning_operation&) = delete;
  ~owning_operation() {
    if (operation_.number != 0) event_sink{}.end_operation(operation_, capture_);
  }

 private:
  std::uint32_t capture_;
  open_operation operation_{};
};

/// What a `tracker` knows in a capture.
struct tracked {
  block_table blocks;
  divided_blocks divided;
  memory_table memory;
  mapping_table mappings;
  pending_frees pending;
  begun_calls begun;
  std::array<recorded_bytes, any_space + 1> recorded{};  ///< by space
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
