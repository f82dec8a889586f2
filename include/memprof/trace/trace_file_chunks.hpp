#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file_reader.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

/// @file
/// How a `trace_file_reader` finds and checks chunks in its file.

namespace memprof::inline MEMPROF_ABI::detail {

inline bool trace_file_reader::has_changed_meanwhile() {
  trace_file_header now;
  if (!live_ || !read_header(now) || now == header_) return false;
  take_changed(now);
  if (now.first_number > number_) {
    if (!is_complete_meanwhile_) look_at_live_file();
    begin_to_read();
  } else if (const std::uint64_t found = find_chunk(); found != 0) {
    offset_ = found;
  }
  return true;
}

inline void trace_file_reader::look_for_another() {
  std::array<unsigned char, trace_magic.size()> bytes{};
  if (live_ || read_on(bytes.data(), bytes.size(), offset_) < bytes.size() || as_text(bytes) != trace_magic) return;
  status_.damage = quoted_path() + " goes on with another trace at byte " + std::to_string(offset_) + ", as joined files do";
}

inline std::uint64_t trace_file_reader::find_chunk() {
  for (std::uint64_t at : {header_.first_chunk, header_.more_chunks}) {
    std::array<unsigned char, chunk_header::size> bytes{};
    chunk_header chunk;
    for (; at != 0 && read_on(bytes.data(), bytes.size(), at) == bytes.size() && chunk.decode(bytes);) {
      if (chunk.number == number_) return at;
      if (chunk.number > number_) break;
      at += bytes.size() + chunk.bytes;
    }
  }
  return 0;
}

inline const char* trace_file_reader::read_events() {
  if (std::exchange(has_chunk_, false)) return nullptr;
  const char* fault = read_chunk();
  if (fault != nullptr && seeks_) {
    const std::uint64_t elsewhere = find_chunk();
    if (elsewhere == 0 || elsewhere == offset_) return fault;
    offset_ = elsewhere;
    fault = read_chunk();
  }
  while (fault == nullptr && is_generation_beginning_) fault = read_chunk();
  return fault;
}

inline const char* trace_file_reader::read_chunk() {
  std::array<unsigned char, chunk_header::size> bytes{};
  const std::size_t got = read_on(bytes.data(), bytes.size(), offset_);
  chunk_header chunk;
  if (skips_hole(bytes, got)) return read_chunk();
  if (got < bytes.size()) return got == 0 ? "cut off" : "cut off within the header of a chunk";
  if (!chunk.decode(bytes) || chunk.number != number_ || chunk.bytes > chunk_header::max_bytes) return "damaged";
  is_generation_beginning_ = chunk.packing == generation_beginning;
  if (!is_generation_beginning_) check_packing(chunk.packing);
  payload_.resize(chunk.bytes);
  if (read_on(payload_.data(), payload_.size(), offset_ + bytes.size()) < payload_.size()) return "cut off within a chunk";
  if (crc32c::extend(0, payload_.data(), payload_.size()) != chunk.checksum) return "damaged";
  offset_ += bytes.size() + chunk.bytes;
  if (chunk.packing == packed_with_zstd && !unpack()) {
    return "damaged, although its checksum is right: it was packed incorrectly,";
  }
  return nullptr;
}

inline bool trace_file_reader::skips_hole(const std::array<unsigned char, chunk_header::size>& bytes, std::size_t got) {
  if (seeks_ || offset_ + got >= header_.more_chunks || bytes[0] != 0) return false;
  std::uint64_t left = header_.more_chunks - offset_ - got;
  for (unsigned char byte = 0; left != 0 && read(&byte, 1) == 1;) --left;
  offset_ = header_.more_chunks;
  return true;
}

inline void trace_file_reader::check_packing(std::uint32_t packing) const {
  if (packing > packed_with_zstd)
    refuse("its chunks are packed in a way that this memprof does not know; read it with a newer memprof");
  if (packing == not_packed || zstd_unpacker != nullptr) return;
  refuse(
      "it is packed with zstd, and this program was built without <memprof/trace/trace_zstd.hpp>; unpack it with a "
      "memprof that has it: memprof trace FILE --unpack -o NEW_FILE");
}

inline bool trace_file_reader::unpack() {
  const std::size_t most = payload_.size() * max_packing_ratio;
  unpacked_.resize(most < chunk_header::max_bytes ? most : chunk_header::max_bytes);
  const std::size_t size = zstd_unpacker(unpacked_.data(), unpacked_.size(), payload_.data(), payload_.size());
  if (size == no_unpacking) return false;
  unpacked_.resize(size);
  payload_.swap(unpacked_);
  return true;
}

inline std::size_t trace_file_reader::read_on(unsigned char* out, std::size_t size, std::uint64_t offset) {
  if (!seeks_) return read(out, size);
  std::size_t got = 0;
  while (got < size) {
    const ::ssize_t more = ::pread(::fileno(file_), out + got, size - got, static_cast<::off_t>(begin_ + offset + got));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) raise_about_file("read", path_, reason_in_errno());
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  return got;
}

inline std::nullopt_t trace_file_reader::stop(std::string_view what) {
  const bool is_known = header_.chunks != trace_file_header::unknown;
  status_.damage = quoted_path() + " is " + std::string{what} + " after " + std::to_string(status_.chunks) +
                   (is_known ? " of " + std::to_string(header_.chunks) : std::string{}) + " chunks (byte " +
                   std::to_string(status_.bytes) + ")";
  return std::nullopt;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
