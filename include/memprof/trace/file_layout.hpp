#pragma once

#include <memprof/trace/crc32c.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// @file
/// The fixed parts of a trace file, as docs/trace_format.md describes them. All numbers are little-endian.

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr std::string_view trace_magic{"\x89MEMTRC\n", 8};
inline constexpr std::uint16_t trace_file_version = 1;
inline constexpr std::uint16_t trace_file_revision = 1;

template <class Number>
void put_little_endian(unsigned char* out, Number value) noexcept {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) out[byte] = static_cast<unsigned char>(value >> (8 * byte));
}
template <class Number>
[[nodiscard]] Number get_little_endian(const unsigned char* in) noexcept {
  Number value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    value = static_cast<Number>(value | static_cast<Number>(in[byte]) << (8 * byte));
  return value;
}

/// The state of a trace file.
enum class trace_file_state : std::uint32_t {
  complete = 0,
  live = 1,     ///< a capture is writing it, or its process ended without ending the capture
  stopped = 2,  ///< writing it failed
};

struct trace_file_header {
  static constexpr std::size_t size = 64;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::uint16_t version = trace_file_version;    ///< a reader for another version cannot read the file
  std::uint16_t revision = trace_file_revision;  ///< a reader for an older revision can
  std::uint64_t first_chunk = size;              ///< offset
  std::uint64_t chunks = 0;                      ///< `unknown` in a live file
  std::uint64_t bytes = 0;                       ///< size of the file; likewise
  trace_file_state state = trace_file_state::complete;
  std::uint32_t error = 0;         ///< `errno` of the write that failed
  std::uint32_t live_area = 0;     ///< its offset; 0: none
  std::uint32_t first_number = 0;  ///< of the first chunk; those before it are gone
  std::uint64_t more_chunks = 0;   ///< offset where the chunks continue after a break; 0: no break

  bool operator==(const trace_file_header&) const = default;

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    std::memcpy(out.data(), trace_magic.data(), trace_magic.size());
    put_little_endian(&out[8], version);
    put_little_endian(&out[10], revision);
    put_little_endian(&out[12], static_cast<std::uint32_t>(first_chunk));
    put_little_endian(&out[16], chunks);
    put_little_endian(&out[24], bytes);
    put_little_endian(&out[32], static_cast<std::uint32_t>(state));
    put_little_endian(&out[36], error);
    put_little_endian(&out[40], live_area);
    put_little_endian(&out[44], first_number);
    put_little_endian(&out[48], more_chunks);
    put_little_endian(&out[56], static_cast<std::uint32_t>(first_chunk >> 32));
    put_little_endian(&out[size - 4], crc32c::extend(0, out.data(), size - 4));
    return out;
  }
  /// False if the checksum does not match. Ignores the magic number.
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    version = get_little_endian<std::uint16_t>(&in[8]);
    revision = get_little_endian<std::uint16_t>(&in[10]);
    first_chunk = get_little_endian<std::uint32_t>(&in[12]) | std::uint64_t{get_little_endian<std::uint32_t>(&in[56])} << 32;
    chunks = get_little_endian<std::uint64_t>(&in[16]);
    bytes = get_little_endian<std::uint64_t>(&in[24]);
    state = static_cast<trace_file_state>(get_little_endian<std::uint32_t>(&in[32]));
    error = get_little_endian<std::uint32_t>(&in[36]);
    live_area = get_little_endian<std::uint32_t>(&in[40]);
    first_number = get_little_endian<std::uint32_t>(&in[44]);
    more_chunks = get_little_endian<std::uint64_t>(&in[48]);
    return get_little_endian<std::uint32_t>(&in[size - 4]) == crc32c::extend(0, in.data(), size - 4);
  }
};

struct chunk_header {
  static constexpr std::size_t size = 24;
  static constexpr std::uint32_t magic = 0x4B4E4843;  // "CHNK"
  /// Longer chunks count as damage, so that a flipped bit costs no memory.
  static constexpr std::uint32_t max_bytes = std::uint32_t{16} << 20;

  std::uint32_t bytes = 0;    ///< of the payload that follows
  std::uint32_t number = 0;   ///< from 0
  std::uint32_t packing = 0;  ///< `not_packed`, `packed_with_zstd` or `generation_beginning`
  std::uint32_t checksum = 0;

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    put_little_endian(&out[0], magic);
    put_little_endian(&out[4], bytes);
    put_little_endian(&out[8], number);
    put_little_endian(&out[12], packing);
    put_little_endian(&out[16], checksum);
    put_little_endian(&out[20], crc32c::extend(0, out.data(), 20));
    return out;
  }
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    bytes = get_little_endian<std::uint32_t>(&in[4]);
    number = get_little_endian<std::uint32_t>(&in[8]);
    packing = get_little_endian<std::uint32_t>(&in[12]);
    checksum = get_little_endian<std::uint32_t>(&in[16]);
    return get_little_endian<std::uint32_t>(in.data()) == magic &&
           get_little_endian<std::uint32_t>(&in[20]) == crc32c::extend(0, in.data(), 20);
  }
};

inline constexpr std::uint32_t not_packed = 0;
inline constexpr std::uint32_t packed_with_zstd = 1;
/// Not packed, and not an ordinary chunk: part of the state before the chunk with that number, for readers that start there.
inline constexpr std::uint32_t generation_beginning = 0x100;
/// Limits the density of packing, so that the cost of reading a file is proportional to its size.
inline constexpr std::size_t max_packing_ratio = 256;

template <std::size_t Size>
[[nodiscard]] std::string_view as_text(const std::array<unsigned char, Size>& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), Size};
}

/// The part of a live file that its process has mapped: chunks not yet written, and the rings of threads.
struct live_area_header {
  static constexpr std::size_t size = 64;
  static constexpr std::uint32_t magic = 0x4556494C;  // "LIVE"
  static constexpr std::uint32_t max_buffers = 128;
  static constexpr std::uint64_t max_bytes_of_buffers = std::uint64_t{64} << 20;
  static constexpr std::uint32_t max_places = 1024;

  /// Offsets, within the area, of what changes while the file is live.
  static constexpr std::size_t rings_outside = 64;  ///< 8 bytes: number of rings without a place here
  static constexpr std::size_t given_places = 72;   ///< 8 bytes: number of places in use; these come first
  static constexpr std::size_t buffer_states = 128;

  std::uint32_t buffers = 0;
  std::uint32_t buffer_bytes = 0;
  std::uint32_t places = 0;
  std::uint32_t place_bytes = 0;
  std::uint64_t first_buffer = 0;  ///< offset in the file
  std::uint64_t first_place = 0;   ///< likewise

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    put_little_endian(&out[0], magic);
    put_little_endian(&out[4], buffers);
    put_little_endian(&out[8], buffer_bytes);
    put_little_endian(&out[12], places);
    put_little_endian(&out[16], place_bytes);
    put_little_endian(&out[24], first_buffer);
    put_little_endian(&out[32], first_place);
    put_little_endian(&out[size - 4], crc32c::extend(0, out.data(), size - 4));
    return out;
  }
  /// False if these bytes are not a valid header, or the parts of its area are impossibly large.
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    buffers = get_little_endian<std::uint32_t>(&in[4]);
    buffer_bytes = get_little_endian<std::uint32_t>(&in[8]);
    places = get_little_endian<std::uint32_t>(&in[12]);
    place_bytes = get_little_endian<std::uint32_t>(&in[16]);
    first_buffer = get_little_endian<std::uint64_t>(&in[24]);
    first_place = get_little_endian<std::uint64_t>(&in[32]);
    return get_little_endian<std::uint32_t>(in.data()) == magic &&
           get_little_endian<std::uint32_t>(&in[size - 4]) == crc32c::extend(0, in.data(), size - 4) && buffers <= max_buffers &&
           std::uint64_t{buffers} * buffer_bytes <= max_bytes_of_buffers && places <= max_places;
  }
};

/// What the live area records about each of its buffers. A single store to `commit` makes more of the chunk valid.
struct live_buffer_state {
  static constexpr std::size_t size = 16;

  std::uint64_t number = 0;  ///< number of the chunk, plus one; 0: never used
  std::uint64_t commit = 0;  ///< low half: valid bytes of the payload; high half: `check_of`; 0: none yet

  /// The payload's checksum, combined with the number so that a wrong number is detected too.
  [[nodiscard]] static constexpr std::uint32_t check_of(std::uint32_t checksum, std::uint64_t number) noexcept {
    return checksum ^ static_cast<std::uint32_t>(number);
  }
  [[nodiscard]] static constexpr std::uint64_t commit_of(std::uint32_t bytes, std::uint32_t checksum,
                                                         std::uint64_t number) noexcept {
    return bytes | std::uint64_t{check_of(checksum, number)} << 32;
  }
};

/// The header in front of the events in each ring's place: `ring_slots` (record/event_ring.hpp) as laid out in memory.
struct live_ring_header {
  static constexpr std::size_t size = 64;

  std::uint64_t published = 0;     ///< address after the last event; 0: the place was never used
  std::uint64_t first = 0;         ///< address of the first event
  std::uint64_t first_number = 0;  ///< number of the ring's events before it
  std::uint32_t ring = 0;
  std::uint32_t capacity = 0;
  std::uint32_t check = 0;  ///< CRC-32C of the 8 bytes of `first` and the 8 of `ring` and `capacity`

  void decode(const unsigned char* in) noexcept {
    published = get_little_endian<std::uint64_t>(in);
    first = get_little_endian<std::uint64_t>(in + 8);
    first_number = get_little_endian<std::uint64_t>(in + 16);
    ring = get_little_endian<std::uint32_t>(in + 24);
    capacity = get_little_endian<std::uint32_t>(in + 28);
    check = get_little_endian<std::uint32_t>(in + 32);
  }
  [[nodiscard]] static std::uint32_t check_of(std::uint64_t first, std::uint32_t ring, std::uint32_t capacity) noexcept {
    std::array<unsigned char, 16> bytes{};
    put_little_endian(&bytes[0], first);
    put_little_endian(&bytes[8], ring);
    put_little_endian(&bytes[12], capacity);
    return crc32c::extend(0, bytes.data(), bytes.size());
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
