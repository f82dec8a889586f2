#include <memprof/toolkit/analysis/tt_text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace memprof_tests::analysis_tt_text {

TEST_CASE("tt_text: a rank has its operations, what its files leave out, and its const-evals") {
  memprof::tt_rank_summary rank;
  rank.operations = 12;
  rank.deallocations = 3;
  rank.get_devices = 2;
  rank.without_state = 1;
  rank.const_evals = {{"main_const_eval_0", 5}, {"main_const_eval_1", 6}};
  rank.cache_misses = {{"main_const_eval_0", true}, {"main_const_eval_1", false}};
  CHECK(memprof::to_text(rank) ==
        "operations 12; left out: 3 deallocate, 2 get_device, 1 without a state\n"
        "const-eval main_const_eval_0: 5 operations, cache miss\n"
        "const-eval main_const_eval_1: 6 operations, cached\n");
}

TEST_CASE("tt_text: a numbered rank says its number, and no name breaks the line") {
  memprof::tt_rank_summary rank;
  rank.rank.number = "1";
  rank.const_evals = {{"a\nb", 1}};
  rank.cache_misses = {{"a\nb", false}};
  const std::string text = memprof::to_text(rank);
  CHECK(text.starts_with("rank 1:\noperations 0; "));
  CHECK(text.find("a\nb") == std::string::npos);
}

TEST_CASE("tt_text: a kind of memory has its peak of a bank and of all banks, in MB of 2^20 bytes") {
  memprof::tt_memory_fact dram;
  dram.space = "dram";
  dram.banks = 12;
  dram.peak_bytes = 3 << 19;
  dram.peak_before = "ttnn.matmul";
  dram.peak_line = 42;
  dram.peak_fragmentation = 0.25;
  dram.greatest_fragmentation = 0.5;
  CHECK(memprof::to_text(std::vector<memprof::tt_memory_fact>{dram}) ==
        "dram: peak 1.500 MB a bank, 18.000 MB in 12 banks, before ttnn.matmul (line 42), fragmentation 0.250 there; at most "
        "0.500\n");
  CHECK(memprof::to_text(std::vector<memprof::tt_memory_fact>{}).empty());
}

}  // namespace memprof_tests::analysis_tt_text
