// Code that the subcommands of the tool share, compiled as for a Release build: g++ warns of some faults only when it optimises.
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/pprof/pprof.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/speedscope.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/toolkit/format/valgrind/dhat.hpp>
#include <memprof/toolkit/format/valgrind/massif.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof {

template class chrome_trace_writer<file_sink>;
template class perfetto_writer<file_sink>;
template class table_writer<file_sink>;
template void write_collapsed(const stack_table&, stack_value, file_sink&);
template void write_dhat(const stack_table&, std::uint32_t, file_sink&);
template void write_massif(const profile&, const space_profile&, file_sink&, std::size_t);
template void write_pprof(const stack_table&, file_sink&);
template void write_speedscope(const stack_table&, std::string_view, file_sink&);

}  // namespace memprof

memprof::memory_breakdown breakdown(const memprof::profile& of) { return memprof::break_down(of, of.spaces.front()); }
