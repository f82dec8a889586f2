#include <memprof/config.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/hlo_answer_json.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

struct named_class {
  std::string name;
  std::int64_t bytes;
};

/// The classes of the rules, and of what has none its group; those that hold something, greatest first.
std::vector<named_class> classes_at_peak(const hlo_attribution& of, const hlo_class_rules& rules) {
  std::vector<named_class> classes;
  for (std::size_t index = 0; index < rules.classes.size(); ++index)
    classes.push_back({rules.classes[index].name, of.classes[index]});
  const std::size_t first_group = classes.size();
  for (std::size_t group = 0; group < of.groups.size(); ++group)
    classes.push_back({std::string{to_string(static_cast<hlo_group>(group))}, 0});
  for (const hlo_attributed_block& row : of.rows) {
    if (row.of_class >= rules.classes.size())
      classes[first_group + static_cast<std::size_t>(row.block.group)].bytes += row.block.bytes;
  }
  std::erase_if(classes, [](const named_class& each) { return each.bytes == 0; });
  std::stable_sort(classes.begin(), classes.end(),
                   [](const named_class& left, const named_class& right) { return left.bytes > right.bytes; });
  return classes;
}

nlohmann::ordered_json simulation_values(nlohmann::ordered_json of, const heap_simulation& simulated) {
  of.emplace("peak_bytes", simulated.peak);
  of.emplace("unpadded_peak_bytes", simulated.unpadded_peak);
  of.emplace("parameter_bytes", simulated.parameters);
  of.emplace("output_bytes", simulated.outputs);
  of.emplace("indefinite_bytes", simulated.indefinite);
  of.emplace("taken_bytes", simulated.all_allocations);
  of.emplace("thread_local_bytes", simulated.thread_local_bytes);
  return of;
}

nlohmann::ordered_json worker_value(const hlo_worker& worker, const hlo_class_rules& rules) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const named_class& each : classes_at_peak(worker.found, rules))
    classes.push_back({{"class", each.name}, {"bytes", each.bytes}});
  nlohmann::ordered_json value = simulation_values({{"host", worker.host}, {"program", worker.program}}, worker.found.simulation);
  value.emplace("classes", std::move(classes));
  value.emplace("small_bytes", worker.found.small);
  value.emplace("gradient_hits", worker.found.markers);
  return value;
}

nlohmann::ordered_json block_value(const hlo_attributed_block& row, const hlo_class_rules& rules) {
  const hlo_block& block = row.block;
  const std::string source =
      block.source_file.empty() ? std::string{} : block.source_file + ':' + std::to_string(block.source_line);
  return {{"instruction", block.instruction},
          {"operation", text_or_null(block.op_name)},
          {"class", row.of_class < rules.classes.size() ? rules.classes[row.of_class].name : std::string{to_string(block.group)}},
          {"shape", block.shape.substr(0, 128)},
          {"source", text_or_null(source)},
          {"bytes", block.bytes},
          {"unpadded_bytes", block.unpadded_bytes}};
}

std::vector<std::string> with_origin(std::vector<std::string> caveats) {
  caveats.insert(caveats.begin(), "planned by the compiler, not measured");
  constexpr std::size_t most_caveats = 16;
  if (caveats.size() > most_caveats) {
    const std::size_t more = caveats.size() - (most_caveats - 1);
    caveats.resize(most_caveats - 1);
    caveats.push_back("and " + std::to_string(more) + " more remarks, on stderr");
  }
  return caveats;
}

std::string of_memory_space(std::int64_t space) { return " of memory space " + std::to_string(space); }

}  // namespace
}  // namespace detail

nlohmann::ordered_json xplane_json(const std::vector<hlo_listed_program>& programs, std::int64_t space,
                                   std::vector<std::string> caveats) {
  constexpr std::size_t most_programs = 32;
  nlohmann::ordered_json shown = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < std::min(programs.size(), most_programs); ++index) {
    const hlo_listed_program& each = programs[index];
    shown.push_back(
        detail::simulation_values({{"program", each.name}, {"workers", each.workers}, {"runs", each.runs}}, each.greatest));
  }
  std::string verdict = "no program";
  if (!programs.empty()) {
    verdict = detail::on_one_line(programs.front().name) + " needs " +
              detail::short_and_exact_bytes(programs.front().greatest.peak) + detail::of_memory_space(space) +
              (programs.size() == 1 ? std::string{} : ", the most of " + std::to_string(programs.size()) + " programs");
  }
  return {{"format", xplane_json_format},
          {"version", xplane_json_version},
          {"verdict", verdict},
          {"caveats", detail::with_origin(std::move(caveats))},
          {"space", space},
          {"program_count", programs.size()},
          {"programs", shown},
          {"worker_count", nullptr},
          {"workers", nlohmann::ordered_json::array()},
          {"block_count", nullptr},
          {"blocks", nlohmann::ordered_json::array()}};
}

nlohmann::ordered_json xplane_json(const std::vector<hlo_worker>& workers, const hlo_class_rules& rules, std::int64_t space,
                                   std::size_t most_blocks, std::vector<std::string> caveats) {
  constexpr std::size_t most_workers = 16;
  constexpr std::size_t block_limit = 64;
  std::vector<const hlo_worker*> sorted;
  sorted.reserve(workers.size());
  for (const hlo_worker& each : workers) sorted.push_back(&each);
  std::stable_sort(sorted.begin(), sorted.end(), [](const hlo_worker* left, const hlo_worker* right) {
    return left->found.simulation.peak > right->found.simulation.peak;
  });
  const hlo_worker& greatest = *sorted.front();
  nlohmann::ordered_json shown = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < std::min(sorted.size(), most_workers); ++index)
    shown.push_back(detail::worker_value(*sorted[index], rules));
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < std::min({greatest.found.rows.size(), most_blocks, block_limit}); ++index)
    blocks.push_back(detail::block_value(greatest.found.rows[index], rules));
  const std::vector<detail::named_class> classes = detail::classes_at_peak(greatest.found, rules);
  const std::int64_t peak = greatest.found.simulation.peak;
  std::string verdict = detail::on_one_line(greatest.program) + " needs " + detail::short_and_exact_bytes(peak) +
                        detail::of_memory_space(space) + " on " + detail::on_one_line(greatest.host);
  if (sorted.size() > 1) verdict += ", the most of " + std::to_string(sorted.size()) + " workers";
  if (!classes.empty() && peak > 0)
    verdict += "; " + classes.front().name + " has " + detail::short_percent(classes.front().bytes, peak);
  return {{"format", xplane_json_format},
          {"version", xplane_json_version},
          {"verdict", verdict},
          {"caveats", detail::with_origin(std::move(caveats))},
          {"space", space},
          {"program_count", nullptr},
          {"programs", nlohmann::ordered_json::array()},
          {"worker_count", workers.size()},
          {"workers", shown},
          {"block_count", greatest.found.rows.size()},
          {"blocks", blocks}};
}

}  // namespace memprof::inline MEMPROF_ABI
