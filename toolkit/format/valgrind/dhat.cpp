#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/toolkit/format/valgrind/dhat.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI {

void write_dhat(const stack_table& table, std::uint32_t space, byte_sink_view out) {
  if (!table.has_lifetimes) detail::raise("write_dhat: lifetimes and the maximum of each operation need a trace");
  const stack_table::space_row& of = table.spaces[space];
  std::string text = R"({"dhatFileVersion":2,"mode":"memprof-heap","verb":"Allocated","bklt":true,"bkacc":false,)";
  text += R"("tu":"µs","Mtu":"s","tuth":10,"cmd":)";
  detail::append_json_string(text, table.process.command_line + " [" + of.name + "]");
  text += R"(,"pid":)" + std::to_string(std::max<std::int64_t>(table.process.id, 0));
  text += R"(,"tg":)" + std::to_string(of.peak_time_ns / 1000) + R"(,"te":)" + std::to_string(table.duration_ns / 1000);
  text += R"(,"pps":[)";
  bool is_first = true;
  for (const stack_row& row : table.rows) {
    if (row.space != space) continue;
    const auto field = [&](const char* key, std::int64_t value) { text += key + std::to_string(value); };
    text += is_first ? "\n" : ",\n";
    is_first = false;
    field(R"({"tb":)", row.total_bytes);
    field(R"(,"tbk":)", row.total_blocks);
    field(R"(,"tl":)", row.lifetime_us);
    field(R"(,"mb":)", row.max_bytes);
    field(R"(,"mbk":)", row.max_blocks);
    field(R"(,"gb":)", row.peak_bytes);
    field(R"(,"gbk":)", row.peak_blocks);
    field(R"(,"eb":)", row.end_bytes);
    field(R"(,"ebk":)", row.end_blocks);
    text += R"(,"fs":[)";
    // Frame 0 belongs to the viewer; frame 1 stands for allocations outside every operation.
    if (row.operation == 0) text += '1';
    for (std::uint32_t node = row.operation; node != 0; node = table.operations[node].parent) {
      text += std::to_string(node + 1);
      if (table.operations[node].parent != 0) text += ',';
    }
    text += "]}";
    out.write(text);
    text.clear();
  }
  text += R"x(],"ftbl":["[root]","(no operation)")x";
  for (std::size_t node = 1; node < table.operations.size(); ++node) {
    text += ',';
    detail::append_json_string(text, table.operations[node].name);
  }
  text += "]}\n";
  out.write(text);
}

}  // namespace memprof::inline MEMPROF_ABI
