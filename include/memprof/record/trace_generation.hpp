#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/newest_facts.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

/// @file
/// A trace file with a limit keeps two generations of chunks. Each begins with the complete state at that moment, so that the
/// previous one can be dropped.

namespace memprof::inline MEMPROF_ABI::detail {

/// A new generation on its way to the thread that writes the file. In pages of its own.
struct trace_generation {
  std::uint32_t first_chunk = 0;        ///< number of its first event chunk
  std::uint64_t expected_bytes = 0;     ///< of its event chunks
  page_array<unsigned char> beginning;  ///< chunks, as they are in the file

  /// Null if the system has no memory.
  [[nodiscard]] static trace_generation* make() noexcept {
    void* const pages = map_pages(sizeof(trace_generation));
    return pages == nullptr ? nullptr : new (pages) trace_generation;
  }
  void destroy() noexcept {
    this->~trace_generation();
    unmap_pages(this, sizeof(trace_generation));
  }

  /// Adds these records to the beginning. False if the system has no memory.
  [[nodiscard]] bool add(const trace& records) noexcept {
    bool is_added = true;
    records.for_each_chunk([&](const unsigned char* bytes, std::size_t size) {
      const std::size_t filled = beginning.size();
      is_added = is_added && beginning.resize(filled + chunk_header::size + size);
      if (!is_added) return;
      chunk_header header;
      header.bytes = static_cast<std::uint32_t>(size);
      header.number = first_chunk;
      header.packing = generation_beginning;
      header.checksum = crc32c::extend(0, bytes, size);
      const auto encoded = header.encode();
      std::memcpy(beginning.data() + filled, encoded.data(), encoded.size());
      std::memcpy(beginning.data() + filled + encoded.size(), bytes, size);
    });
    return is_added;
  }
};

/// What every generation begins with besides names and a saved state: everything that is not an event. Collected as it arrives.
class generation_definitions {
 public:
  void info(const capture_info& info) { info_.info(info); }
  void space(const space_definition& space) noexcept {
    spaces_[space.id] = space;
    is_space_[space.id] = true;
  }
  void facts(const fact_table& table) { facts_.put(fitted(table)); }

  /// Writes the definitions for a generation's beginning, with names up to `last_name`. Takes nothing from `operator new`, so
  /// that a drain may call it. False if the system has no memory.
  template <class Names>
  [[nodiscard]] bool write(trace_generation& target, const Names& names, label last_name) const noexcept {
    trace definitions;
    for (label id = 1; id <= last_name; ++id) definitions.name(id, names.text(id));
    for (std::size_t id = 0; id < any_space; ++id) {
      if (is_space_[id]) definitions.space(spaces_[id]);
    }
    return definitions.left_out() == 0 && target.add(info_) && target.add(definitions) && target.add(facts_.encoded());
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return info_.bytes() + facts_.encoded().bytes(); }

 private:
  trace info_;
  newest_facts facts_;
  space_definition spaces_[any_space] = {};
  bool is_space_[any_space] = {};
};

}  // namespace memprof::inline MEMPROF_ABI::detail
