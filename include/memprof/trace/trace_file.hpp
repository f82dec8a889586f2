#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/decoder.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/live_rings.hpp>
#include <memprof/trace/live_snapshot.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_file_reader.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// A trace in a file: docs/trace_format.md. A header, then chunks that are decoded one after the other, each with its length and
/// checksum. All numbers are little-endian.

namespace memprof::inline MEMPROF_ABI {

/// Writes a trace to a file. If that fails, an existing file is left unchanged, and the error names the path and the reason.
/// Costs a copy and a checksum: about 2 GB/s without the disk.
inline void write_trace(const trace& source, const std::filesystem::path& path) {
  trace tail;  // the chunks do not say that events were left out
  if (source.left_out() != 0) {
    const extend::event gap{0, 0, source.left_out(), 0, extend::event_kind::gap, extend::any_space, 0};
    tail.events(&gap, &gap + 1, detail::no_ring_id);
  }
  const auto for_each_chunk = [&](auto&& visit) {
    source.for_each_chunk(visit);
    tail.for_each_chunk(visit);
  };
  detail::trace_file_header header;
  header.bytes = detail::trace_file_header::size;
  for_each_chunk([&](const unsigned char*, std::size_t size) {
    ++header.chunks;
    header.bytes += detail::chunk_header::size + size;
  });
  detail::replace_file(path, [&](std::FILE* file) {
    bool is_written = detail::write_text(file, detail::as_text(header.encode()));
    std::uint32_t number = 0;
    for_each_chunk([&](const unsigned char* bytes, std::size_t size) {
      detail::chunk_header chunk;
      chunk.bytes = static_cast<std::uint32_t>(size);
      chunk.number = number++;
      chunk.checksum = detail::crc32c::extend(0, bytes, size);
      is_written = is_written && detail::write_text(file, detail::as_text(chunk.encode())) &&
                   detail::write_text(file, {reinterpret_cast<const char*>(bytes), size});
    });
    return is_written;
  });
}

/// Passes the trace in a file to `visitor`, record by record, in order, and returns what it found. Where the file is truncated or
/// damaged, reading ends with a `gap` as the last event. Raises an error that names the path if the file is not a trace, or has a
/// newer version. Takes the memory of one chunk. Reads `source` from its current position; `path` is its name for messages.
template <extend::trace_visitor Visitor>
trace_file_status read_trace(std::FILE* source, const std::filesystem::path& path, Visitor& visitor) {
  struct adapter {
    Visitor& visitor;
    bool has_ended = false;
    bool is_damaged = false;
    detail::ring_positions* positions = nullptr;  ///< if the file has rings
    std::uint64_t missing_first = 0;
    std::uint64_t dropped = 0;  ///< of those, if a trace limit is why: the state that they left follows, or memory events do
    bool is_at_beginning = true;
    void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
      if (std::exchange(is_at_beginning, false) && first->kind == extend::event_kind::gap) missing_first = first->bytes;
      if (missing_first != dropped &&
          std::any_of(first, last, [](const extend::event& each) { return detail::has_address(each.kind); }))
        dropped = missing_first;
      has_ended = has_ended || (ring == detail::no_ring_id && (last - 1)->kind == extend::event_kind::capture_end);
      if (positions != nullptr) positions->add(first, last, ring);
      visitor.events(first, last, ring);
    }
    void definition(detail::control kind, std::string_view payload) {
      if (kind == detail::control::saved_state) dropped = missing_first;
      is_damaged = is_damaged || !detail::visit_definition(kind, payload, visitor);
      if (positions == nullptr || kind != detail::control::position) return;
      detail::payload_reader in{payload};
      const std::uint64_t ring = in.number();
      const std::uint64_t events = in.number();
      is_damaged = is_damaged || in.has_failed() || ring > 0xFFFF'FFFFU;
      if (!is_damaged) positions->set(static_cast<std::uint32_t>(ring), events);
    }
  };
  detail::trace_file_reader file{source, path};
  detail::ring_positions positions;
  const auto decoder = std::make_unique<detail::trace_decoder>();
  adapter adapted{visitor};
  if (file.live() != nullptr) adapted.positions = &positions;
  while (const std::optional<std::string_view> payload = file.next()) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(payload->data());
    const auto* const end = begin + payload->size();
    decoder->restart();
    if (decoder->decode(begin, end, adapted) == end && !adapted.is_damaged) continue;
    file.report_bad_record();
    break;
  }
  file.finish_live();
  trace_file_status status = file.status();
  status.has_ended = adapted.has_ended;
  status.dropped = adapted.dropped;
  if (file.live() != nullptr && status.damage.empty() && !status.has_ended) {
    for (const auto& ring : file.live()->rings()) detail::page_budget::add_input(ring.events.size() * sizeof(extend::event));
    status.from_rings = detail::visit_rings(file.live()->rings(), positions, visitor);
    if (file.live()->rings_outside() != 0 && !status.is_being_written) {
      const extend::event gap{0, 0, 1, 0, extend::event_kind::gap, extend::any_space, 0};
      visitor.events(&gap, &gap + 1, detail::no_ring_id);
    }
  }
  if (!status.damage.empty()) {
    const extend::event gap{0, 0, 1, 0, extend::event_kind::gap, extend::any_space, 0};  // one or more
    visitor.events(&gap, &gap + 1, detail::no_ring_id);
  }
  return status;
}

/// The same, given the file's name.
template <extend::trace_visitor Visitor>
trace_file_status read_trace(const std::filesystem::path& path, Visitor& visitor) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return read_trace(file.get(), path, visitor);
}

/// Whether a seekable file begins like a trace. Leaves it at its beginning.
[[nodiscard]] inline bool is_trace_file(std::FILE* file) {
  std::array<unsigned char, detail::trace_magic.size()> first{};
  const bool is_whole = std::fread(first.data(), 1, first.size(), file) == first.size();
  std::rewind(file);
  return is_whole && detail::as_text(first) == detail::trace_magic;
}

/// The same, given the file's name. Not for a pipe, whose bytes would be consumed. Also false if it cannot be read.
[[nodiscard]] inline bool is_trace_file(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  return file && is_trace_file(file.get());
}

}  // namespace memprof::inline MEMPROF_ABI
