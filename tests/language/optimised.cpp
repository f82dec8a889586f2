// Code that the subcommands of the tool share, compiled as for a Release build: g++ warns of some faults only when it optimises.
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>

namespace memprof {

template class chrome_trace_writer<file_sink>;
template class perfetto_writer<file_sink>;
template class table_writer<file_sink>;

}  // namespace memprof

memprof::memory_breakdown breakdown(const memprof::profile& of) { return memprof::break_down(of, of.spaces.front()); }
