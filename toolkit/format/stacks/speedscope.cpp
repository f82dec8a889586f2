#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/stacks/speedscope.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

void write_speedscope(const stack_table& table, std::string_view name, byte_sink_view out) {
  std::string text = R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"memprof@)";
  text += version_string;
  text += R"(","name":)";
  detail::append_json_string(text, name);
  text += R"(,"activeProfileIndex":0,"shared":{"frames":[)";
  for (std::size_t node = 1; node < table.operations.size(); ++node) {
    if (node != 1) text += ',';
    text += R"({"name":)";
    detail::append_json_string(text, table.operations[node].name);
    text += '}';
  }
  text += R"(]},"profiles":[)";
  constexpr std::string_view titles[] = {" live at peak", " live at end", " allocated"};
  bool is_first = true;
  for (std::uint32_t space = 0; space < table.spaces.size(); ++space) {
    for (const stack_value value : {stack_value::peak, stack_value::end, stack_value::all}) {
      std::string samples;
      std::string weights;
      std::int64_t sum = 0;
      for (const stack_row& row : table.rows) {
        const std::int64_t bytes = bytes_of(row, value);
        if (row.space != space || bytes <= 0) continue;
        sum += bytes;
        samples += samples.empty() ? "[" : ",[";
        bool is_outermost = true;
        for (const std::uint32_t node : table.path(row.operation)) {
          if (!is_outermost) samples += ',';
          samples += std::to_string(node - 1);
          is_outermost = false;
        }
        samples += ']';
        if (!weights.empty()) weights += ',';
        weights += std::to_string(bytes);
      }
      text += is_first ? R"({"type":"sampled","name":)" : R"(,{"type":"sampled","name":)";
      is_first = false;
      detail::append_json_string(text, table.spaces[space].name + std::string{titles[static_cast<std::size_t>(value)]});
      text.append(R"(,"unit":"bytes","startValue":0,"endValue":)").append(std::to_string(sum));
      text.append(R"(,"samples":[)").append(samples).append(R"(],"weights":[)").append(weights).append("]}");
      out.write(text);
      text.clear();
    }
  }
  text += "]}\n";
  out.write(text);
}

}  // namespace memprof::inline MEMPROF_ABI
