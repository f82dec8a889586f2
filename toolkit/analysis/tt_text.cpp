#include <memprof/config.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/tt_text.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::string to_text(const tt_rank_summary& rank) {
  std::string text = rank.rank.number.empty() ? "" : "rank " + rank.rank.number + ":\n";
  text += "operations " + std::to_string(rank.operations) + "; left out: " + std::to_string(rank.deallocations) +
          " deallocate, " + std::to_string(rank.get_devices) + " get_device, " + std::to_string(rank.without_state) +
          " without a state\n";
  for (const auto& [name, operations] : rank.const_evals) {
    text += "const-eval " + detail::on_one_line(name) + ": " + std::to_string(operations) + " operations, " +
            (rank.cache_misses.at(name) ? "cache miss" : "cached") + "\n";
  }
  return text;
}

std::string to_text(const std::vector<tt_memory_fact>& memories) {
  using detail::decimal;
  const auto in_megabytes = [](std::int64_t bytes) { return decimal(static_cast<double>(bytes) / 0x1p20, 3) + " MB"; };
  std::string text;
  for (const tt_memory_fact& each : memories) {
    text += detail::on_one_line(each.space) + ": peak " + in_megabytes(each.peak_bytes) + " a bank, " +
            in_megabytes(each.peak_bytes * each.banks) + " in " + std::to_string(each.banks) + " banks, before " +
            detail::on_one_line(each.peak_before) + " (line " + std::to_string(each.peak_line) + "), fragmentation " +
            decimal(each.peak_fragmentation, 3) + " there; at most " + decimal(each.greatest_fragmentation, 3) + "\n";
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
