#pragma once

#include <memprof/memprof.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/trace/crc32c.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// A trace in a file: docs/trace_format.md. A header, then chunks that are decoded one after the other, each with its length and
/// checksums. All numbers are little-endian.

namespace memprof {

/// What was found of a trace in a file.
struct trace_file_status {
  std::uint64_t chunks = 0;  ///< that are intact, and were read
  std::uint64_t bytes = 0;   ///< of the file up to the end of the last of them
  std::string damage;      ///< what ended the reading before the trace's end, as a sentence without its stop; empty: nothing did
  bool has_ended = false;  ///< the capture had: otherwise the trace is what was known when it was written
};

namespace detail {

inline constexpr std::string_view trace_magic{"\x89MEMTRC\n", 8};
inline constexpr std::uint16_t trace_file_version = 1;

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

struct trace_file_header {
  static constexpr std::size_t size = 64;

  std::uint16_t version = trace_file_version;  ///< a reader of another one cannot read the file
  std::uint16_t revision = 0;                  ///< a reader of an older one can
  std::uint32_t first_chunk = size;            ///< offset
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;  ///< of the file

  [[nodiscard]] std::array<unsigned char, size> encode() const noexcept {
    std::array<unsigned char, size> out{};
    std::memcpy(out.data(), trace_magic.data(), trace_magic.size());
    put_little_endian(&out[8], version);
    put_little_endian(&out[10], revision);
    put_little_endian(&out[12], first_chunk);
    put_little_endian(&out[16], chunks);
    put_little_endian(&out[24], bytes);
    put_little_endian(&out[size - 4], crc32c::extend(0, out.data(), size - 4));
    return out;
  }
  /// False if the checksum is another one. The magic number is not looked at.
  [[nodiscard]] bool decode(const std::array<unsigned char, size>& in) noexcept {
    version = get_little_endian<std::uint16_t>(&in[8]);
    revision = get_little_endian<std::uint16_t>(&in[10]);
    first_chunk = get_little_endian<std::uint32_t>(&in[12]);
    chunks = get_little_endian<std::uint64_t>(&in[16]);
    bytes = get_little_endian<std::uint64_t>(&in[24]);
    return get_little_endian<std::uint32_t>(&in[size - 4]) == crc32c::extend(0, in.data(), size - 4);
  }
};

struct chunk_header {
  static constexpr std::size_t size = 24;
  static constexpr std::uint32_t magic = 0x4B4E4843;  // "CHNK"
  /// Longer ones are damage, so that a flipped bit costs no memory.
  static constexpr std::uint32_t max_bytes = std::uint32_t{16} << 20;

  std::uint32_t bytes = 0;    ///< that follow
  std::uint32_t number = 0;   ///< from 0
  std::uint32_t packing = 0;  ///< 0: none
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

template <std::size_t Size>
[[nodiscard]] std::string_view as_text(const std::array<unsigned char, Size>& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), Size};
}

/// A file that holds a trace, read chunk by chunk.
class trace_file_reader {
 public:
  /// Reads on in `file`, which must stay open; `path` is its name for messages. Raises an error unless a trace of a version that
  /// this memprof reads begins there.
  trace_file_reader(std::FILE* file, const std::filesystem::path& path) : path_{path}, file_{file} {
    std::array<unsigned char, trace_file_header::size> first{};
    const std::size_t got = read(first.data(), first.size());
    if (as_text(first).substr(0, trace_magic.size()) != trace_magic) refuse("it is not a trace");
    if (got < first.size()) refuse("it is cut off within its header of " + std::to_string(first.size()) + " bytes");
    const bool is_intact = header_.decode(first);
    if (header_.version > trace_file_version && is_intact) {
      refuse("it is a trace of version " + std::to_string(header_.version) + ", and this memprof reads version " +
             std::to_string(trace_file_version) + "; read it with a newer memprof");
    }
    if (!is_intact || header_.version == 0 || header_.first_chunk < trace_file_header::size) refuse("its header is damaged");
    std::size_t skipped = header_.first_chunk - trace_file_header::size;
    for (unsigned char byte = 0; skipped != 0 && read(&byte, 1) == 1;) --skipped;
    status_.bytes = header_.first_chunk;
  }

  /// The payload of the next chunk; none behind the last one, or at damage, which `status` then says.
  [[nodiscard]] std::optional<std::string_view> next() {
    if (status_.chunks == header_.chunks || !status_.damage.empty()) return std::nullopt;
    std::array<unsigned char, chunk_header::size> bytes{};
    const std::size_t got = read(bytes.data(), bytes.size());
    chunk_header chunk;
    if (got < bytes.size()) return stop(got == 0 ? "cut off" : "cut off within the header of a chunk");
    if (!chunk.decode(bytes) || chunk.number != status_.chunks || chunk.bytes > chunk_header::max_bytes || chunk.packing != 0) {
      return stop("damaged");
    }
    payload_.resize(chunk.bytes);
    if (read(payload_.data(), payload_.size()) < payload_.size()) return stop("cut off within a chunk");
    if (crc32c::extend(0, payload_.data(), payload_.size()) != chunk.checksum) return stop("damaged");
    ++status_.chunks;
    status_.bytes += chunk_header::size + chunk.bytes;
    return std::string_view{reinterpret_cast<const char*>(payload_.data()), payload_.size()};
  }

  /// The last payload holds what is no record.
  void report_bad_record() { stop("damaged, although its checksum is right: it was written wrong"); }

  [[nodiscard]] const trace_file_status& status() const noexcept { return status_; }

 private:
  [[nodiscard]] std::size_t read(unsigned char* out, std::size_t size) {
    const std::size_t got = std::fread(out, 1, size, file_);
    if (got < size && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
    return got;
  }
  [[noreturn]] void refuse(const std::string& reason) const { raise_about_file("read", path_, reason); }
  std::nullopt_t stop(std::string_view what) {
    status_.damage = "'" + path_.string() + "' is " + std::string{what} + " after " + std::to_string(status_.chunks) + " of " +
                     std::to_string(header_.chunks) + " chunks (byte " + std::to_string(status_.bytes) + ")";
    return std::nullopt;
  }

  std::filesystem::path path_;
  std::FILE* file_;
  trace_file_header header_;
  trace_file_status status_;
  std::vector<unsigned char> payload_;
};

}  // namespace detail

/// Writes a trace to a file. If that fails, a file that was there before stays as it was, and an error names the path and the
/// reason. Costs a copy and a checksum: some 2 GB/s without the disk.
inline void write_trace(const trace& source, const std::filesystem::path& path) {
  trace tail;  // that events were left out is not in the chunks
  if (source.left_out() != 0) {
    const event gap{0, 0, source.left_out(), 0, event_kind::gap, any_space, 0};
    tail.events(&gap, &gap + 1, no_ring_id);
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

/// Hands the trace in a file to `visitor`, record by record, in order, and says what it found. Where the file is cut off or
/// damaged the reading ends, with a `gap` as the last event. Raises an error that names the path if the file holds no trace, or
/// one of a newer version. Takes the memory of one chunk. `source` is read from where it stands; `path` is its name for messages.
template <trace_visitor Visitor>
trace_file_status read_trace(std::FILE* source, const std::filesystem::path& path, Visitor& visitor) {
  struct adapter {
    Visitor& visitor;
    bool has_ended = false;
    bool is_damaged = false;
    void events(const event* first, const event* last, std::uint32_t ring) {
      has_ended = has_ended || (ring == no_ring_id && (last - 1)->kind == event_kind::capture_end);
      visitor.events(first, last, ring);
    }
    void definition(detail::control kind, std::string_view payload) {
      is_damaged = is_damaged || !detail::visit_definition(kind, payload, visitor);
    }
  };
  detail::trace_file_reader file{source, path};
  const auto decoder = std::make_unique<detail::trace_decoder>();
  adapter adapted{visitor};
  while (const std::optional<std::string_view> payload = file.next()) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(payload->data());
    const auto* const end = begin + payload->size();
    decoder->restart();
    if (decoder->decode(begin, end, adapted) == end && !adapted.is_damaged) continue;
    file.report_bad_record();
    break;
  }
  trace_file_status status = file.status();
  status.has_ended = adapted.has_ended;
  if (!status.damage.empty()) {
    const event gap{0, 0, 1, 0, event_kind::gap, any_space, 0};  // one or more
    visitor.events(&gap, &gap + 1, no_ring_id);
  }
  return status;
}

/// The same of the file of that name.
template <trace_visitor Visitor>
trace_file_status read_trace(const std::filesystem::path& path, Visitor& visitor) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) detail::raise_about_file("read", path, detail::reason_in_errno());
  return read_trace(file.get(), path, visitor);
}

/// Whether a file that can be read again begins as a trace does. It stands at its begin afterwards.
[[nodiscard]] inline bool is_trace_file(std::FILE* file) {
  std::array<unsigned char, detail::trace_magic.size()> first{};
  const bool is_whole = std::fread(first.data(), 1, first.size(), file) == first.size();
  std::rewind(file);
  return is_whole && detail::as_text(first) == detail::trace_magic;
}

/// The same of the file of that name, which must be no pipe: what was read of one is gone. False too if it cannot be read.
[[nodiscard]] inline bool is_trace_file(const std::filesystem::path& path) {
  const detail::file_handle file{std::fopen(path.c_str(), "rb")};
  return file && is_trace_file(file.get());
}

}  // namespace memprof
