#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/stacks/collapsed.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// A frame as collapsed stacks can hold it: on one line, in UTF-8.
void append_collapsed_frame(std::string& line, std::string_view name) {
  std::string sound;
  detail::append_utf8(sound, name.empty() ? "(unnamed)" : name);
  for (const char character : sound) {
    const bool is_control = static_cast<unsigned char>(character) < 0x20 || character == 0x7F;
    line += is_control ? ' ' : character == ';' ? ':' : character;
  }
}

}  // namespace

void write_collapsed(const stack_table& table, stack_value value, byte_sink_view out) {
  std::string line;
  for (const stack_row& row : table.rows) {
    const std::int64_t bytes = bytes_of(row, value);
    if (bytes <= 0) continue;
    line.clear();
    append_collapsed_frame(line, table.spaces[row.space].name);
    for (const std::uint32_t node : table.path(row.operation)) {
      line += ';';
      append_collapsed_frame(line, table.operations[node].name);
    }
    line += ' ' + std::to_string(bytes) + '\n';
    out.write(line);
  }
}

}  // namespace memprof::inline MEMPROF_ABI
