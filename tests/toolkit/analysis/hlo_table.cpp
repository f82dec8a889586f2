#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/analysis/hlo_table.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/trace/category.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

namespace memprof_tests::analysis_hlo_table {

using Catch::Matchers::ContainsSubstring;
using memprof::hlo_class_rules;
using memprof::hlo_group;
using memprof::hlo_worker;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t gib = std::int64_t{1} << 30;

/// Two classes, of which only the first has a column in the table of scripts.
hlo_class_rules two_classes() {
  return {{{"kv_cache", hlo_group::parameter, std::regex{"kv"}, memprof::category::kv_cache, true},
           {"scratch", {}, std::regex{"tmp"}, memprof::category::temporary, false}},
          std::regex{"grad"}};
}

hlo_worker worker(const std::string& host, std::int64_t peak, std::int64_t markers) {
  hlo_worker made;
  made.host = host;
  made.program = "jit_step";
  made.found.simulation.peak = peak;
  made.found.simulation.parameters = 3 * gib / 2;
  made.found.simulation.thread_local_bytes = 2048;
  made.found.classes = {gib / 4, gib / 8};
  made.found.groups[static_cast<std::size_t>(hlo_group::temporary)] = gib;
  made.found.markers = markers;
  return made;
}

}  // namespace

TEST_CASE("hlo_table: scripts get GiB between tabulators, and the least, mean and greatest of each column") {
  const std::vector<hlo_worker> workers{worker("one", 2 * gib, 0), worker("two", 3 * gib, 5)};
  const std::string text = memprof::hlo_table_tsv(workers, memprof::hlo_columns(workers, two_classes(), false));
  CHECK(text ==
        "workers analyzed: 2\n\n"
        "host\tpeak_GiB\tentry_params_GiB\tkv_cache_GiB\ttemporary_GiB\toutput_GiB\tgradient_hits\n"
        "one\t2.000\t1.500\t0.250\t1.000\t0.000\t0\n"
        "two\t3.000\t1.500\t0.250\t1.000\t0.000\t5\n"
        "\nAggregate min/avg/max (GiB):\n"
        "peak_mib: 2.000/2.500/3.000\n"
        "entry_params_mib: 1.500/1.500/1.500\n"
        "kv_cache_mib: 0.250/0.250/0.250\n"
        "group_temporary_mib: 1.000/1.000/1.000\n"
        "group_output_mib: 0.000/0.000/0.000\n"
        "gradient_marker_hits: 0 / 5\n");
}

TEST_CASE("hlo_table: people get all classes, MB in columns, and the blocks of the worker with the greatest peak") {
  std::vector<hlo_worker> workers{worker("one", 2 * gib, 0), worker("two", 3 * gib, 5)};
  for (int index = 0; index < 3; ++index) {
    memprof::hlo_block block;
    block.instruction = "fusion." + std::to_string(index);
    block.op_name = "step/tmp";
    block.shape = "f32[64]";
    block.source_file = "model.py";
    block.source_line = 7;
    block.bytes = (3 - index) * mib;
    block.unpadded_bytes = mib / 2;
    block.group = hlo_group::temporary;
    workers[1].found.rows.push_back({block, index == 0 ? std::size_t{1} : std::size_t{2}});  // of class "scratch", and of none
  }
  workers[1].found.small = mib / 4;
  const hlo_class_rules rules = two_classes();
  const std::string text = memprof::hlo_table_text(workers, memprof::hlo_columns(workers, rules, true), rules, 2, "ask for more");
  CHECK_THAT(text, ContainsSubstring(
                       "MB          peak  entry_params  kv_cache  scratch  temporary  output  thread_local  gradient hits\n"
                       "one      2048.00       1536.00    256.00   128.00    1024.00    0.00      2.00 KiB              0\n"));
  CHECK_THAT(text, ContainsSubstring("minimum  2048.00") && ContainsSubstring("average  2560.00") && ContainsSubstring("2.5\n") &&
                       ContainsSubstring("maximum  3072.00"));
  CHECK_THAT(text, ContainsSubstring("Live at the peak of jit_step on two, "));
  CHECK_THAT(text, ContainsSubstring("\n  3.00  0.50  scratch  fusion.0  f32[64]  step/tmp  model.py:7\n"
                                     "  2.00  0.50  Temporary  fusion.1  f32[64]  step/tmp  model.py:7\n"
                                     "  and 1 more (ask for more)\n"
                                     "  0.25  in blocks of less than 16384 bytes\n"));
}

TEST_CASE("hlo_table: one worker has no extremes, and no remedy is named without one") {
  std::vector<hlo_worker> workers{worker("only", gib, 1)};
  workers[0].found.rows.resize(2);
  const hlo_class_rules rules = two_classes();
  const std::string text = memprof::hlo_table_text(workers, memprof::hlo_columns(workers, rules, true), rules, 0);
  CHECK(text.find("minimum") == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("  and 2 more\n"));
}

TEST_CASE("hlo_table: programs are rows, in bytes for scripts and in MB for people") {
  memprof::hlo_listed_program program{"jit_step", 2, 10, {}};
  program.greatest.peak = 3 * mib;
  program.greatest.parameters = mib;
  program.greatest.outputs = mib / 2;
  program.greatest.indefinite = mib;
  program.greatest.all_allocations = 4 * mib;
  program.greatest.thread_local_bytes = 512;
  CHECK(memprof::hlo_programs_text({program}, true) ==
        "module\tworkers\truns\tpeak\tentry_params\toutput\tsimulated\ttaken\tthread_local\n"
        "jit_step\t2\t10\t3145728\t1048576\t524288\t2097152\t4194304\t512\n");
  CHECK_THAT(memprof::hlo_programs_text({program}, false), ContainsSubstring("jit_step") && ContainsSubstring("3.00") &&
                                                               ContainsSubstring("0.50") && ContainsSubstring("512 B"));
}

}  // namespace memprof_tests::analysis_hlo_table
