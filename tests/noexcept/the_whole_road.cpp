// The whole road without exceptions and run-time type information: capture, operation, segment, text.
#include <memprof/memprof.hpp>

#include <cstdio>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};

  void* kept = memory.allocate(1000);
  memprof::snapshot("FIRST");
  {
    auto scope = memprof::track_operation<"forward">();
    void* temporary = memory.allocate(500);
    memory.deallocate(temporary, 500);
  }
  memory.deallocate(kept, 1000);
  capture.end();

  const memprof::profile profile = capture.profile();
  expect(profile.space("cpu").cumulative_peak == 1500, "the peak is 1000 + 500 bytes");
  expect(memprof::to_text(profile).find("forward") != std::string::npos, "the text names the operation");
  return failures == 0 ? 0 : 1;
}
