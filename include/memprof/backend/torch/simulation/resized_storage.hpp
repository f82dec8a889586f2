#pragma once

#include <memprof/backend/torch/simulation/fake_block.hpp>

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

/// @file
/// `UntypedStorage.resize_`, which Python's binding of libtorch calls without the dispatcher.

namespace memprof::inline MEMPROF_ABI::detail {

/// What is known of a block's content stays known of the one that takes its place.
inline void take_over_content(fake_block& made, const fake_block& former) {
  // Relaxed: a program resizes no storage that another thread uses.
  constexpr auto relaxed = std::memory_order_relaxed;
  const bool has_bytes = former.has_values.load(relaxed) || former.behind == fake_block::memory::small;
  if (has_bytes && made.data != nullptr && former.data != nullptr)
    std::memcpy(made.data, former.data, std::min(made.bytes, former.bytes));
  made.has_values.store(former.has_values.load(relaxed), relaxed);
  made.lacks_bytes.store(former.lacks_bytes.load(relaxed), relaxed);
  made.nominal.store(former.nominal.load(relaxed), relaxed);
  made.share.store(former.share.load(relaxed), relaxed);
  made.is_share_said.store(former.is_share_said.load(relaxed), relaxed);
  made.choices.store(former.choices.load(relaxed), relaxed);
  made.is_drawn_after_skipped.store(former.is_drawn_after_skipped.load(relaxed), relaxed);
}

/// As on the CPU and on a CUDA device: the new block is there before the former one is freed, and 0 bytes have none.
inline void resize_storage(c10::StorageImpl& storage, std::int64_t size) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  TORCH_CHECK(size >= 0, "Requested storage size (", size, ") cannot be represented as a size_t");
  const auto bytes = static_cast<std::size_t>(size);
  c10::DataPtr made = allocator_of(storage.device()).allocate(bytes);
  const fake_block* const former = block_of(storage);
  if (former != nullptr && bytes != 0) take_over_content(*static_cast<fake_block*>(made.get_context()), *former);
  storage.set_data_ptr_noswap(std::move(made));
  storage.set_nbytes(bytes);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
