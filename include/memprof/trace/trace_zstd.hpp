#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file.hpp>

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// @file
/// Trace files packed with zstd (memprof::zstd in CMake). A program can read them if any of its translation units includes this
/// header; otherwise its error says what is missing.

namespace memprof::inline MEMPROF_ABI {
namespace detail {

/// Unpacks [in, in + size) into [out, out + room). Returns the length, or `no_unpacking` if the bytes are invalid or do not fit.
[[nodiscard]] inline std::size_t unpack_with_zstd(unsigned char* out, std::size_t room, const unsigned char* in,
                                                  std::size_t size) noexcept {
  const std::size_t unpacked = ZSTD_decompress(out, room, in, size);
  return ZSTD_isError(unpacked) != 0 ? no_unpacking : unpacked;
}

[[maybe_unused]] inline const bool reads_zstd = (zstd_unpacker = unpack_with_zstd, true);

struct zstd_freer {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};

/// Packs the payloads of chunks.
class zstd_packer {
 public:
  /// The packed payload, if it is shorter.
  [[nodiscard]] std::optional<std::string_view> pack(std::string_view payload) {
    constexpr int level = 3;  // higher levels save one percent
    packed_.resize(ZSTD_compressBound(payload.size()) + skippable_header);
    std::size_t size = ZSTD_compressCCtx(context_.get(), packed_.data(), packed_.size(), payload.data(), payload.size(), level);
    if (ZSTD_isError(size) != 0) raise("cannot pack a trace: zstd says '" + std::string{ZSTD_getErrorName(size)} + "'");
    // Readers reject denser packing, because a small file should not cost much to read.
    while (size * max_packing_ratio < payload.size()) size = pad(size);
    if (size >= payload.size()) return std::nullopt;
    return std::string_view{reinterpret_cast<const char*>(packed_.data()), size};
  }

 private:
  static constexpr std::size_t skippable_header = 8;

  /// Appends a zstd frame without content.
  [[nodiscard]] std::size_t pad(std::size_t size) {
    packed_.resize(size + 2 * skippable_header);
    put_little_endian(&packed_[size], std::uint32_t{0x184D2A50});
    put_little_endian(&packed_[size + 4], static_cast<std::uint32_t>(skippable_header));
    put_little_endian(&packed_[size + skippable_header], std::uint64_t{0});
    return size + 2 * skippable_header;
  }

  std::unique_ptr<ZSTD_CCtx, zstd_freer> context_{ZSTD_createCCtx()};
  vector<unsigned char> packed_;
};

}  // namespace detail

/// Writes the trace in `source` (`name` is its name for messages) to `target`, with its chunks packed with zstd, or unpacked if
/// `packs` is false. False if the target, which must be seekable, cannot be written; errno says why. Raises an error if the trace
/// is damaged or has not ended. About 300 MB a second, and the memory of a few chunks.
[[nodiscard]] inline bool repack_trace(std::FILE* source, const std::filesystem::path& name, std::FILE* target, bool packs) {
  detail::trace_file_reader from{source, name};
  if (from.live() != nullptr) detail::raise("'" + name.string() + "' was not ended by its capture, so it cannot be packed");
  detail::zstd_packer packer;
  detail::trace_file_header header;
  header.bytes = detail::trace_file_header::size;
  bool is_written = detail::write_text(target, detail::as_text(header.encode()));
  while (const std::optional<std::string_view> payload = from.next()) {
    const std::optional<std::string_view> packed = packs ? packer.pack(*payload) : std::nullopt;
    const std::string_view stored = packed.value_or(*payload);
    detail::chunk_header chunk;
    chunk.bytes = static_cast<std::uint32_t>(stored.size());
    chunk.number = static_cast<std::uint32_t>(header.chunks++);
    chunk.packing = packed ? detail::packed_with_zstd : detail::not_packed;
    chunk.checksum = detail::crc32c::extend(0, reinterpret_cast<const unsigned char*>(stored.data()), stored.size());
    header.bytes += detail::chunk_header::size + stored.size();
    is_written = is_written && detail::write_text(target, detail::as_text(chunk.encode())) && detail::write_text(target, stored);
  }
  if (!from.status().damage.empty()) detail::raise(from.status().damage + "; it was not packed");
  // Only now is the length of the file known.
  return is_written && std::fseek(target, 0, SEEK_SET) == 0 && detail::write_text(target, detail::as_text(header.encode()));
}

/// The same for the name of the target, which must be a file, not a pipe. On failure, raises an error and leaves an existing
/// target unchanged.
inline void repack_trace(std::FILE* source, const std::filesystem::path& name, const std::filesystem::path& target,
                         bool packs = true) {
  detail::replace_file(target, [&](std::FILE* file) { return repack_trace(source, name, file, packs); });
}

}  // namespace memprof::inline MEMPROF_ABI
