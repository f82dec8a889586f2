// The reader of traces must handle any bytes, at worst with a quick error.
#include <memprof/memprof.hpp>

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/trace/crc32c.hpp>
#include <memprof/trace/file_layout.hpp>
#include <memprof/trace/trace_file.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using memprof::detail::chunk_header;
using memprof::detail::get_little_endian;
using memprof::detail::put_little_endian;
using memprof::detail::trace_file_header;

/// Corrects the checksums; otherwise nothing but checksum errors would be found.
void correct_checksums(std::string& file) {
  auto* const bytes = reinterpret_cast<unsigned char*>(file.data());
  const auto sum = [](const unsigned char* begin, std::size_t size) { return memprof::detail::crc32c::extend(0, begin, size); };
  if (file.size() < trace_file_header::size) return;
  put_little_endian(bytes + 60, sum(bytes, 60));
  std::size_t at = get_little_endian<std::uint32_t>(bytes + 12);
  while (at < file.size() && file.size() - at >= chunk_header::size) {
    unsigned char* const header = bytes + at;
    const std::size_t payload =
        std::min<std::size_t>(get_little_endian<std::uint32_t>(header + 4), file.size() - at - chunk_header::size);
    put_little_endian(header + 16, sum(header + chunk_header::size, payload));
    put_little_endian(header + 20, sum(header, 20));
    at += chunk_header::size + payload;
  }
}

memprof::detail::file_handle file_of(const std::string& bytes) {
  const int descriptor = ::memfd_create("trace", 0);
  if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size())) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

void read(const std::string& bytes) {
  try {
    memprof::trace_file_status status;
    const memprof::profile found = memprof::profile_of(file_of(bytes).get(), "input", status);
    if (!status.damage.empty() && found.exact) std::abort();
    for (const memprof::space_profile& space : found.spaces) {
      if (space.segments.size() != found.segments.size()) std::abort();
    }
    memprof::allocation_sequence sequence{"cpu"};
    (void)memprof::read_trace(file_of(bytes).get(), "input", sequence);
  } catch (const memprof::error& fault) {
    if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos) std::abort();
  }
}

}  // namespace

/// The last byte determines what the others are: a file, a file whose checksums must be corrected, or the payload of a chunk.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes{reinterpret_cast<const char*>(data), size - 1};
  const unsigned kind = data[size - 1] % 4;
  if (kind == 0) {
    read(bytes);
    return 0;
  }
  if (kind == 1) {
    trace_file_header header;
    header.chunks = 1;
    chunk_header chunk;
    chunk.bytes = static_cast<std::uint32_t>(bytes.size());
    bytes =
        std::string{memprof::detail::as_text(header.encode())} + std::string{memprof::detail::as_text(chunk.encode())} + bytes;
  }
  correct_checksums(bytes);
  read(bytes);
  return 0;
}
