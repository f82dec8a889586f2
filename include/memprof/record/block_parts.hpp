#pragma once

#include <memprof/config.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace memprof::inline MEMPROF_ABI {

/// A part of a block that a program took as a whole: a tensor in a buffer for all of them.
struct block_part {
  std::size_t offset = 0;  ///< bytes from the block's begin
  std::size_t bytes = 0;
  annotation description{};
};

namespace detail {

/// Says, once, that a part does not lie in its block, or not behind the one before it.
[[gnu::cold, gnu::noinline]] inline void warn_of_misplaced_part(const block_part& part, std::size_t block_bytes) noexcept {
  static constinit std::atomic<bool> is_said{false};
  if (is_said.exchange(true, std::memory_order_relaxed)) return;
  const internal_guard hidden;
  std::fprintf(stderr,
               "memprof: allocate_parts: the part '%.*s' of %zu bytes at offset %zu is left out: parts must be in the order of "
               "their offsets, "
               "not overlap, and lie in the block of %zu bytes; this is said once\n",
               static_cast<int>(part.description.name.size()), part.description.name.data(), part.bytes, part.offset,
               block_bytes);
}

/// Describes the block at `address` in one space.
inline void record_description(std::uint8_t space, std::uint64_t address, const annotation& description) noexcept {
  if (annotation_text::is_empty(description) || !may_control()) return;
  label text = 0;
  {
    const control_guard control;
    text = intern(abi_1::process_registry, annotation_text{description}.view());
  }
  record_event({0, address, 0, text, event_kind::annotate, space, 0});
}

/// Records each part, and what lies between them, as an allocation.
inline void record_parts(std::uint8_t space, std::uint64_t block, std::size_t bytes, const block_part* parts,
                         std::size_t count) noexcept {
  std::size_t done = 0;  // bytes
  const auto rest_until = [&](std::size_t end) {
    if (end == done) return;
    record_event({0, block + done, end - done, 0, event_kind::allocate, space, 0});
    record_description(space, block + done, {.name = "rest of the block"});
    done = end;
  };
  for (const block_part* part = parts; part != parts + count; ++part) {
    if (part->bytes == 0) continue;
    if (part->offset < done || part->offset > bytes || part->bytes > bytes - part->offset) {
      warn_of_misplaced_part(*part, bytes);
      continue;
    }
    rest_until(part->offset);
    record_event({0, block + done, part->bytes, 0, event_kind::allocate, space, part->description.category.tag()});
    record_description(space, block + done, part->description);
    done += part->bytes;
  }
  rest_until(bytes);
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
