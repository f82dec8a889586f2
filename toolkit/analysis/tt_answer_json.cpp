#include <memprof/config.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/json_or_null.hpp>
#include <memprof/toolkit/analysis/tt_answer_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

nlohmann::ordered_json tt_memory_value(const tt_memory_fact& of) {
  return {{"space", of.space},
          {"banks", of.banks},
          {"bank_bytes", of.bank_bytes},
          {"peak_bank_bytes", of.peak_bytes},
          {"peak_bytes", of.peak_bytes * of.banks},
          {"peak_before", of.peak_before},
          {"peak_line", of.peak_line},
          {"peak_fragmentation", of.peak_fragmentation},
          {"greatest_fragmentation", of.greatest_fragmentation},
          {"greatest_fragmentation_before", of.greatest_before},
          {"greatest_fragmentation_line", of.greatest_line}};
}

nlohmann::ordered_json tt_rank_value(const tt_rank_summary& of) {
  constexpr std::size_t most_const_evals = 16;
  nlohmann::ordered_json const_evals = nlohmann::ordered_json::array();
  for (const auto& [name, operations] : of.const_evals) {
    if (const_evals.size() == most_const_evals) break;
    const_evals.push_back({{"name", name}, {"operations", operations}, {"cached", !of.cache_misses.at(name)}});
  }
  return {{"rank", text_or_null(of.rank.number)},
          {"operations", of.operations},
          {"deallocate_operations", of.deallocations},
          {"get_device_operations", of.get_devices},
          {"operations_without_state", of.without_state},
          {"const_eval_count", of.const_evals.size()},
          {"const_evals", const_evals}};
}

double filled_share(const tt_memory_fact& of) {
  return of.bank_bytes > 0 ? static_cast<double>(of.peak_bytes) / static_cast<double>(of.bank_bytes) : 0;
}

}  // namespace
}  // namespace detail

std::string tt_sentence(const std::vector<tt_memory_fact>& memories) {
  const auto fullest =
      std::max_element(memories.begin(), memories.end(), [](const tt_memory_fact& left, const tt_memory_fact& right) {
        return detail::filled_share(left) < detail::filled_share(right);
      });
  if (fullest == memories.end()) return "no state of a memory was found";
  return "fullest: " + detail::on_one_line(fullest->space) + ", peak " + detail::short_and_exact_bytes(fullest->peak_bytes) +
         " a bank of " + detail::short_bytes(fullest->bank_bytes) + " (" +
         detail::short_percent(fullest->peak_bytes, fullest->bank_bytes) + ") before " +
         detail::on_one_line(fullest->peak_before) + ", line " + std::to_string(fullest->peak_line);
}

nlohmann::ordered_json to_json(const tt_analysis& of) {
  constexpr std::size_t most_ranks = 16;
  constexpr std::size_t most_memories = 32;
  std::vector<std::string> caveats{"levels are the log's, per bank, rounded to a thousandth of a MiB"};
  caveats.insert(caveats.end(), of.remarks.begin(), of.remarks.end());
  nlohmann::ordered_json memories = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < std::min(of.memories.size(), most_memories); ++index)
    memories.push_back(detail::tt_memory_value(of.memories[index]));
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < std::min(of.ranks.size(), most_ranks); ++index)
    ranks.push_back(detail::tt_rank_value(of.ranks[index]));
  return {{"format", tt_mlir_json_format},
          {"version", tt_mlir_json_version},
          {"verdict", tt_sentence(of.memories)},
          {"caveats", caveats},
          {"file", of.log},
          {"memory_count", of.memories.size()},
          {"memories", memories},
          {"rank_count", of.ranks.size()},
          {"ranks", ranks},
          {"argument_count", of.inputs},
          {"written", of.files}};
}

}  // namespace memprof::inline MEMPROF_ABI
