// Converts the CSV log of RAPIDS Memory Manager's logging_resource_adaptor to a trace for `memprof show`, the model of PyTorch's
// allocator and everything else. A reader of a foreign format need not be more than toolkit/format/rmm/log.cpp: it
// passes what it reads to a trace_writer.
#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/rmm/log.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: rmm_trace LOG.csv RUN.memtrace\n");
    return 2;
  }
  std::FILE* const log = std::fopen(arguments[1], "rb");
  if (log == nullptr) {
    std::perror(arguments[1]);
    return 2;
  }
  int status = 0;
  try {
    memprof::trace trace;
    memprof::extend::trace_writer writer{trace};
    const std::string damage = memprof::read_rmm_log(log, arguments[1], writer);
    writer.finish("RMM_LOG");
    memprof::write_trace(trace, arguments[2]);
    const memprof::profile profile = memprof::profile_of(trace);
    const memprof::space_profile& space = profile.space("gpu");
    std::printf("gpu: peak %lld bytes, live at the end %lld\n", static_cast<long long>(space.cumulative_peak),
                static_cast<long long>(space.cumulative_current));
    if (!damage.empty()) std::fprintf(stderr, "%s: %s\n", arguments[1], damage.c_str());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    status = 1;
  }
  std::fclose(log);
  return status;
}
