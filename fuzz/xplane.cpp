// The reader of XLA profiles must handle any bytes, at worst with a quick error.
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

memprof::detail::file_handle file_of(std::string_view bytes) {
  const int descriptor = ::memfd_create("profile", 0);
  if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size())) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

/// Reads a profile in every way. The ledger must reach the same peak as the simulation if the program is consistent.
void read(std::string_view bytes) {
  const memprof::hlo_class_rules rules = memprof::default_hlo_class_rules();
  try {
    const memprof::detail::file_handle file = file_of(bytes);
    const memprof::xplane_file profile{file.get(), "input"};
    for (const memprof::xplane_program& program : profile.programs()) {
      try {
        const memprof::hlo_memory memory{profile.file(), program.bytes};
        for (const std::int64_t space : {0, 1}) (void)memprof::attribute(memory, space, rules);
      } catch (const memprof::error&) {  // NOLINT: this program is damaged, but others may be intact
      }
    }
    memprof::trace made;
    memprof::xplane_trace source{profile};
    memprof::extend::trace_writer writer{made, source.info()};
    source.write_to(
        writer, [&](memprof::hlo_group group, std::string_view op_name) { return memprof::category_of(rules, group, op_name); });
    writer.finish("");
    (void)memprof::profile_of(made);
  } catch (const memprof::error& fault) {
    if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos &&
        std::string_view{fault.what()}.find("255 memory spaces") == std::string_view::npos)
      std::abort();
  }
}

/// Encodes the bytes as field `number` of a message.
std::string field(char number, std::string_view bytes) {
  std::string made{static_cast<char>(number << 3 | 2)};
  for (std::size_t size = bytes.size();; size >>= 7) {
    made += static_cast<char>(size > 0x7f ? size | 0x80 : size);
    if (size <= 0x7f) break;
  }
  return made.append(bytes);
}

}  // namespace

/// The last byte determines what the others are: a file, or a program in a valid profile.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size - 1};
  if (data[size - 1] % 2 == 0) {
    read(bytes);
    return 0;
  }
  using namespace std::string_literals;
  const std::string stat = "\x08\x07"s + field(6, bytes);
  const std::string entry = field(2, field(5, stat));
  const std::string names = "\x08\x07"s + field(2, field(2, "Hlo Proto"));
  read(field(1, field(2, "/host:metadata") + field(4, entry) + field(5, names)));
  return 0;
}
