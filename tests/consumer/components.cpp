// A program with the components that were asked for; each is compiled, linked and used.
#include <memprof/memprof.hpp>
#ifdef WITH_json
#include <memprof/profile/json.hpp>
#endif
#ifdef WITH_toolkit
#include <memprof/toolkit/page/base64.hpp>
#endif
#ifdef WITH_protozero
#include <memprof/toolkit/format/xla/xplane.hpp>
#endif
#ifdef WITH_toml
#include <memprof/record/session_toml.hpp>
#endif
#ifdef WITH_zstd
#include <memprof/trace/trace_zstd.hpp>
#endif

#include <cstdio>
#include <cstdlib>

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture({.trace_file = "components.memtrace"});
  memprof::memory_resource memory{"cpu"};
  void* block = memory.allocate(1024);
  memory.deallocate(block, 1024);
  capture.end();
  check(capture.profile().space("cpu").cumulative_peak == 1024, "the peak is wrong");

  std::FILE* const trace = std::fopen("components.memtrace", "rb");
  check(trace != nullptr, "there is no trace file");
#ifdef WITH_json
  check(memprof::to_json(capture.profile()).at("format") == "memprof-profile", "json");
#endif
#ifdef WITH_toolkit
  check(memprof::detail::base64("memprof") == "bWVtcHJvZg==", "toolkit");
#endif
#ifdef WITH_protozero
  check(memprof::xplane_kind_of(trace) == memprof::xplane_kind::none, "protozero");
#endif
#ifdef WITH_toml
  std::FILE* const settings = std::fopen("components.toml", "w");
  check(settings != nullptr && std::fputs("[memprof]\ninterval = 30\n", settings) >= 0 && std::fclose(settings) == 0, "no file");
  check(memprof::read_session_toml("components.toml").interval == 30, "toml");
#endif
#ifdef WITH_zstd
  memprof::repack_trace(trace, "components.memtrace", "components_packed.memtrace");
#endif
  std::fclose(trace);
}
