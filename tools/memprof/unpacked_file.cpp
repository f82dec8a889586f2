#include "unpacked_file.hpp"

#include <memprof/detail/file_io.hpp>

#if MEMPROF_TOOL_ZLIB
#include <zlib.h>
#endif
#if MEMPROF_TOOL_ZSTD
#include <zstd.h>
#endif

#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace memprof_tool {
namespace {

enum class packing { none, gzip, zstd };

packing packing_of(std::FILE* file) {
  std::array<char, 4> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::rewind(file);
  const std::string_view first{begin.data(), got};
  return first.starts_with("\x1f\x8b") ? packing::gzip : first == "\x28\xb5\x2f\xfd" ? packing::zstd : packing::none;
}

enum class outcome { more, end_of_part, damaged };

/// Unpacks bytes as far as there is room; both spans shrink from the front.
class unpacker {
 public:
  unpacker() = default;
  unpacker(const unpacker&) = delete;
  unpacker& operator=(const unpacker&) = delete;
  virtual ~unpacker() = default;

  [[nodiscard]] virtual outcome unpack(std::string_view& in, char*& out, std::size_t& room) = 0;
  /// Starts the next part: packed files may be concatenated.
  virtual void restart() = 0;
};

#if MEMPROF_TOOL_ZLIB
class gzip_unpacker final : public unpacker {
 public:
  gzip_unpacker() {
    constexpr int with_gzip_header = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, with_gzip_header) != Z_OK) throw std::bad_alloc{};
  }
  ~gzip_unpacker() override { inflateEnd(&stream_); }

  outcome unpack(std::string_view& in, char*& out, std::size_t& room) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc{};
    in.remove_prefix(in.size() - stream_.avail_in);
    out += room - stream_.avail_out;
    room = stream_.avail_out;
    return result == Z_STREAM_END                    ? outcome::end_of_part
           : result == Z_OK || result == Z_BUF_ERROR ? outcome::more
                                                     : outcome::damaged;
  }
  void restart() override { inflateReset(&stream_); }

 private:
  z_stream stream_{};
};
#endif

#if MEMPROF_TOOL_ZSTD
class zstd_unpacker final : public unpacker {
 public:
  zstd_unpacker() {
    if (!stream_) throw std::bad_alloc{};
  }

  outcome unpack(std::string_view& in, char*& out, std::size_t& room) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const std::size_t result = ZSTD_decompressStream(stream_.get(), &to, &from);
    in.remove_prefix(from.pos);
    out += to.pos;
    room -= to.pos;
    return ZSTD_isError(result) != 0 ? outcome::damaged : result == 0 ? outcome::end_of_part : outcome::more;
  }
  void restart() override { ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only); }

 private:
  struct freer {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, freer> stream_{ZSTD_createDCtx()};
};
#endif

std::unique_ptr<unpacker> unpacker_for(packing kind, const std::string& path) {
#if MEMPROF_TOOL_ZLIB
  if (kind == packing::gzip) return std::make_unique<gzip_unpacker>();
#endif
#if MEMPROF_TOOL_ZSTD
  if (kind == packing::zstd) return std::make_unique<zstd_unpacker>();
#endif
  memprof::detail::raise_about_file(
      "read", path,
      kind == packing::gzip ? "it is packed with gzip, but this memprof was built without zlib; unpack it first ('gzip -d')"
                            : "it is packed with zstd, but this memprof was built without libzstd; unpack it first ('zstd -d')");
}

/// The state behind the returned file.
class unpacking {
 public:
  unpacking(std::FILE* file, std::unique_ptr<unpacker> with, std::string& damage)
      : file_(file), unpacker_(std::move(with)), damage_(damage) {}

  /// As `read` of the C library.
  ::ssize_t read(char* out, std::size_t room) {
    char* next = out;
    while (room != 0 && !is_done_) {
      const std::size_t before = in_.size() + room;
      const outcome made = unpacker_->unpack(in_, next, room);
      const bool has_moved = in_.size() + room != before;
      if (made == outcome::damaged) {
        end("the packed data is damaged" + place());
      } else if (has_moved) {
        is_within_ = made == outcome::more;
        if (!is_within_) unpacker_->restart();
      } else if (!in_.empty()) {
        end("the packed data is damaged" + place());
      } else if (!fill()) {
        break;
      }
    }
    position_ += next - out;
    if (position_ > max_unpacked && position_ / max_ratio > taken_) {
      end("unpacks to more than " + std::to_string(max_ratio) +
          " times its size, like a decompression bomb; if it is a genuine recording, unpack it first");
    }
    return next - out;
  }
  /// As `lseek`, but only to the beginning or to the current position.
  std::int64_t seek(std::int64_t offset, int whence) {
    if (whence == SEEK_SET && offset == 0) {
      std::rewind(file_);
      unpacker_->restart();
      in_ = {};
      taken_ = 0;
      damage_.clear();
      is_done_ = false;
      is_within_ = true;
      return position_ = 0;
    }
    if ((whence == SEEK_CUR && offset == 0) || (whence == SEEK_SET && offset == position_)) return position_;
    errno = ESPIPE;
    return -1;
  }

 private:
  bool fill() {
    in_ = {buffer_.data(), std::fread(buffer_.data(), 1, buffer_.size(), file_)};
    taken_ += static_cast<std::int64_t>(in_.size());
    if (std::ferror(file_) != 0) {
      end("it cannot be read further: " + memprof::detail::reason_in_errno());
    } else if (in_.empty() && is_within_) {
      end("the packed data is cut off" + place());
    }
    return !in_.empty();
  }
  [[nodiscard]] std::string place() const { return " at byte " + std::to_string(taken_ - static_cast<std::int64_t>(in_.size())); }
  void end(std::string reason) {
    is_done_ = true;
    damage_ = std::move(reason);
  }

  // Recordings shrink to a tenth or a thirtieth, those of a program in a loop to less. The limit keeps a small file from taking
  // unlimited memory and time.
  static constexpr std::int64_t max_unpacked = std::int64_t{32} << 20;
  static constexpr std::int64_t max_ratio = 1000;

  std::FILE* file_;
  std::unique_ptr<unpacker> unpacker_;
  std::string& damage_;
  bool is_done_ = false;
  bool is_within_ = true;  ///< a part has begun but not ended
  std::int64_t position_ = 0;
  std::int64_t taken_ = 0;  ///< packed bytes read from the file so far
  std::string_view in_;
  std::array<char, std::size_t{64} * 1024> buffer_{};
};

}  // namespace

memprof::detail::file_handle unpacked_file(std::FILE* file, const std::string& path, std::string& damage) {
  const packing kind = packing_of(file);
  if (kind == packing::none) return nullptr;
  auto state = std::make_unique<unpacking>(file, unpacker_for(kind, path), damage);
  cookie_io_functions_t functions{};
  functions.read = [](void* cookie, char* out, std::size_t room) -> ::ssize_t {
    try {
      return static_cast<unpacking*>(cookie)->read(out, room);
    } catch (const std::exception&) {
      errno = ENOMEM;  // nothing else can fail
      return -1;
    }
  };
  functions.seek = [](void* cookie, auto* offset, int whence) {  // the type of `offset` differs between C libraries
    const std::int64_t position = static_cast<unpacking*>(cookie)->seek(*offset, whence);
    if (position >= 0) *offset = position;
    return position < 0 ? -1 : 0;
  };
  functions.close = [](void* cookie) {
    delete static_cast<unpacking*>(cookie);
    return 0;
  };
  memprof::detail::file_handle unpacked{::fopencookie(state.get(), "rb", functions)};
  if (!unpacked) throw std::bad_alloc{};
  static_cast<void>(state.release());
  return unpacked;
}

}  // namespace memprof_tool
