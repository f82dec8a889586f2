#include "gzip.hpp"

#include <memprof/toolkit/format/gzip.hpp>
#include <memprof/toolkit/page/base64.hpp>

#include <string>
#include <string_view>

#if MEMPROF_TOOL_ZLIB
#include <zlib.h>

#include <cstddef>
#include <limits>
#include <new>
#endif

namespace memprof_tool {

#if MEMPROF_TOOL_ZLIB

std::string gzip(std::string_view bytes) {
  constexpr int with_gzip_header = 16 + MAX_WBITS;
  constexpr int max_memory = 9;
  constexpr int level = 6;
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2) return memprof::detail::gzip_stored(bytes);
  z_stream stream{};
  gz_header header{};
  std::string comment{gzip_comment};
  header.comment = reinterpret_cast<Bytef*>(comment.data());
  header.os = 255;  // unknown, as the file is the same on all
  if (deflateInit2(&stream, level, Z_DEFLATED, with_gzip_header, max_memory, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc{};
  deflateSetHeader(&stream, &header);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return is_done ? packed : memprof::detail::gzip_stored(bytes);
}

#else

std::string gzip(std::string_view bytes) { return memprof::detail::gzip_stored(bytes); }

#endif

}  // namespace memprof_tool
