#include "import_xplane.hpp"

#include "class_rules.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tool {

std::vector<std::string> read_xplane(std::FILE* file, const std::string& path, const std::string& program,
                                     const std::string& rules, memprof::trace& trace, std::uint32_t operations) {
  const memprof::hlo_class_rules classes = read_class_rules(rules);
  const memprof::xplane_file profile{file, path};
  memprof::xplane_trace_options options;
  options.program = program;
  memprof::xplane_trace source{profile, options};
  memprof::extend::capture_info info = source.info();
  info.operations = operations;
  memprof::extend::trace_writer writer{trace, info};
  source.write_to(
      writer, [&](memprof::hlo_group group, std::string_view op_name) { return memprof::category_of(classes, group, op_name); });
  writer.finish("");
  // Many programs may have the same fault; the first few are enough.
  constexpr std::size_t max_remarks = 4;
  std::vector<std::string> remarks = source.remarks();
  if (remarks.size() > max_remarks) {
    const std::size_t left_out = remarks.size() - max_remarks;
    remarks.resize(max_remarks);
    remarks.push_back("and " + std::to_string(left_out) + " more");
  }
  if (!profile.damage().empty()) remarks.push_back(profile.damage());
  if (source.written() != 0) return remarks;
  if (!remarks.empty()) memprof::detail::raise("nothing could be read from '" + path + "': " + remarks[0]);
  memprof::detail::raise_about_file("read", path,
                                    profile.programs().empty() ? "it contains no XLA program (no HLO proto in /host:metadata)"
                                                               : "it has no program '" + program + "'");
}

}  // namespace memprof_tool
