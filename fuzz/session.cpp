// The reader of session profiles must turn any bytes into either an error that names the file or a consistent trace, with
// bounded memory.
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
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

memprof::detail::file_handle file_of(std::string_view bytes) {
  const int descriptor = ::memfd_create("session", 0);
  if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size())) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memprof::detail::file_handle file = file_of({reinterpret_cast<const char*>(data), size});
  try {
    memprof::session_source source{file.get(), "input"};
    memprof::trace made;
    memprof::extend::trace_writer writer{made, source.info()};
    source.write_to(writer);
    writer.finish("SESSION");
    const memprof::profile found = memprof::profile_of(made);
    for (const memprof::space_profile& space : found.spaces) {
      if (space.cumulative_peak < space.cumulative_current || space.cumulative_current < 0) std::abort();
    }
  } catch (const memprof::error& fault) {
    if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos) std::abort();
  }
  return 0;
}
