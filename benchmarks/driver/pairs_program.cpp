#include "pairs_program.hpp"

#include <nlohmann/json.hpp>

namespace bench {

pairs_run run_pairs(const pairs_variant& variant, const pairs_setup& setup) {
  command line = variant.launcher;
  line.push_back(std::string{BENCH_PROGRAMS} + "/" + variant.program);
  line.push_back("--threads=" + std::to_string(setup.threads));
  line.push_back("--pairs=" + std::to_string(setup.pairs));
  if (setup.hand_over) line.push_back("--hand-over");
  line.insert(line.end(), variant.arguments.begin(), variant.arguments.end());

  const std::string output = run_or_throw(line, variant.variables).output;
  // Launchers may print something before and after it.
  const std::size_t begin = output.find('{');
  const std::size_t end = output.find('}', begin == std::string::npos ? 0 : begin);
  if (end == std::string::npos) throw std::runtime_error{variant.program + " printed no result"};
  const auto printed = nlohmann::json::parse(output.substr(begin, end - begin + 1));
  pairs_run result;
  result.ns_per_event = printed.at("cpu_ns").get<double>() / printed.at("events").get<double>();
  result.recorded = printed.value("recorded", std::uint64_t{0});
  result.memory_bytes = printed.value("memory_bytes", 0.0);
  result.memory_bytes_at_million = printed.value("memory_bytes_at_million", 0.0);
  return result;
}

std::vector<samples> run_pairs_in_turn(const std::vector<pairs_variant>& variants, const pairs_setup& setup, std::size_t rounds) {
  std::vector<samples> result(variants.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t index = 0; index < variants.size(); ++index) {
      result[index].push_back(run_pairs(variants[index], setup).ns_per_event);
    }
  }
  return result;
}

}  // namespace bench
