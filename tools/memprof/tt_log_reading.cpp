#include "tt_log_reading.hpp"

#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace memprof_tool {

tt_reading read_tt_log(std::FILE* file, const std::string& path, memprof::trace& trace, std::uint32_t operations) {
  memprof::tt_log_source source{file, path};
  memprof::capture_info info = memprof::tt_log_source::info();
  info.operations = operations;
  memprof::trace_writer writer{trace, info};
  writer.finish(source.write_to(writer));
  return {memprof::remarks_on(source), source.status().damage, memprof::is_whole(source.status())};
}

}  // namespace memprof_tool
