#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/record/session.hpp>
#include <memprof/trace/trace.hpp>

#include <string>

#if !MEMPROF_SEPARATE_COMPILATION
#error "memprof::compiled says to all files that link it that they leave the rest to the library"
#endif

// All that is left to the library, of a capture with a peak of one kibibyte.
int main() {
  memprof::session session;  // off: nobody asks for it
  memprof::trace recorded;
  auto capture = memprof::begin_capture({.trace = &recorded});
  memprof::memory_resource memory{"cpu"};
  void* block = memory.allocate(1024);
  memory.deallocate(block, 1024);
  capture.end();
  const memprof::profile captured = capture.profile();
  const bool is_right = captured.space("cpu").cumulative_peak == 1024 &&
                        memprof::profile_of(recorded).space("cpu").cumulative_peak == 1024 &&
                        memprof::to_text(captured).find("1.00 KiB") != std::string::npos &&
                        memprof::to_json_text(captured).find("\"cumulative_peak\": 1024") != std::string::npos;
  memprof::print_memory_usage();
  memprof::discard_capture();
  return is_right && memprof::current_profile().spaces.empty() && !session.is_active() ? 0 : 1;
}
