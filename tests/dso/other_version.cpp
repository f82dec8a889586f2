// Compiled as version 9.8.7 of the library.
#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

#include <optional>

namespace {

std::optional<memprof::capture_guard> capture;

}  // namespace

void other_version_allocate(std::size_t bytes) {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto scope = memprof::track_operation<"in other version">();
  (void)memory->allocate(bytes);
}

void other_version_snapshot(const char* name) { memprof::snapshot(name); }

void other_version_begin_capture() { capture.emplace(memprof::begin_capture()); }

void other_version_end_capture() { memprof::end_capture(); }

long long other_version_peak() {
  const memprof::profile profile = memprof::current_profile();
  const memprof::space_profile* const found = profile.find_space("dso");
  return found == nullptr ? -1 : static_cast<long long>(found->cumulative_peak);
}

const char* other_version_of_memprof() { return memprof::version_string; }
