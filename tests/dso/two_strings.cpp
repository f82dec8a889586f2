// A program whose other file was compiled with the other std::string of libstdc++, as one is that uses an older libtorch: both
// record into one capture, and this one reads the profile.

#include <memprof/memprof.hpp>

#include <cstdio>

void record_with_other_string();

int main() {
  auto capture = memprof::begin_capture();
  record_with_other_string();
  capture.end();
  const memprof::profile profile = capture.profile();
  const memprof::space_profile& cpu = profile.space("cpu");
  const bool holds = cpu.cumulative_peak == 1000 && cpu.cumulative_current == 0 && cpu.segments.size() == 2 &&
                     cpu.segments[0].segment == "OTHER" && profile.find_operation("other") != nullptr;
  std::printf("peak %lld, %zu segments\n", static_cast<long long>(cpu.cumulative_peak), cpu.segments.size());
  return holds ? 0 : 1;
}
