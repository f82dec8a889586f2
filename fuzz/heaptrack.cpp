// The reader of heaptrack recordings must turn any bytes into either an error that names the file or a consistent trace.
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

memprof::detail::file_handle file_of(const std::uint8_t* data, std::size_t size) {
  const int descriptor = ::memfd_create("recording", 0);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<::ssize_t>(size)) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

/// The reader assigns the addresses: each block is allocated once, disjoint from all others, and freed once.
void check(const memprof::profile& found) {
  for (const memprof::space_profile& space : found.spaces) {
    if (space.anomalies != memprof::space_anomalies{}) std::abort();
    if (space.cumulative_current != space.allocations - space.deallocations || space.cumulative_current < 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memprof::detail::file_handle file = file_of(data, size);
  (void)memprof::is_heaptrack(file.get());
  try {
    memprof::heaptrack_source source{file.get(), "input"};
    memprof::trace made;
    memprof::trace_writer writer{made, source.info()};
    source.write_to(writer);
    writer.finish();
    check(memprof::profile_of(made));
  } catch (const memprof::error& fault) {
    if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos) std::abort();
  }
  return 0;
}
