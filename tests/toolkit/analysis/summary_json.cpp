#include <memprof/toolkit/analysis/summary_json.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/json.hpp>

#include <toolkit/analysis/schema_keys.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memprof_tests::analysis_summary_json {

namespace {

using buffer = std::vector<char, memprof::allocator<char>>;

/// Ten steps, each of which leaves 256 bytes of log_loss behind; 12 layers of 100 bytes and 500 of forward at the peak.
memprof::profile training() {
  auto capture = memprof::begin_capture();
  std::deque<buffer> kept;
  for (int layer = 0; layer < 12; ++layer) {
    const auto scope = memprof::track_operation("h." + std::to_string(layer));
    kept.emplace_back(100);
  }
  for (int step = 0; step < 10; ++step) {
    {
      const auto scope = memprof::track_operation<"log_loss">();
      kept.emplace_back(256);
    }
    {
      const auto scope = memprof::track_operation<"forward">();
      const buffer activations(500);
    }
    memprof::snapshot("STEP");
  }
  capture.end();
  return capture.profile();
}

}  // namespace

TEST_CASE("summary: its JSON has the verdict and numbers that add up, with the keys of its schema") {
  const memprof::profile of = training();
  const nlohmann::json schema = read_schema("summary.schema.json");
  const nlohmann::ordered_json document = memprof::summary_json(of);
  check_keys(document, schema);
  const nlohmann::ordered_json& cpu = document.at("spaces").at(0);
  check_keys(cpu, schema.at("definitions").at("space"));
  check_keys(cpu.at("owners").at(0), schema.at("definitions").at("owner"));
  check_keys(cpu.at("categories").at(0), schema.at("definitions").at("category"));
  check_keys(cpu.at("growth"), schema.at("definitions").at("growth"));
  const std::int64_t peak = 12 * 100 + 10 * 256 + 500;
  CHECK(document.at("verdict") ==
        "peak 4.16 KiB (4,260 B) of cpu in STEP, operation forward; log_loss held 60.1 %; grows by 256 B per step");
  CHECK(cpu.at("peak_bytes") == peak);
  CHECK(cpu.at("step") == 9);
  CHECK(cpu.at("capacity_bytes").is_null());
  CHECK(cpu.at("owners").at(0).at("operation") == "log_loss");
  CHECK(cpu.at("owners").at(1).at("operation") == "h.*");
  CHECK(cpu.at("owners").at(1).at("operations") == 12);
  CHECK(cpu.at("owners").at(1).at("bytes") == 1200);
  std::int64_t sum = cpu.at("other_owner_bytes").get<std::int64_t>();
  for (const auto& owner : cpu.at("owners")) sum += owner.at("bytes").get<std::int64_t>();
  CHECK(sum == peak);
  CHECK(cpu.at("growth").at("clear") == true);
  CHECK(cpu.at("growth").at("bytes_per_step") == 256);
  CHECK(document.at("caveats").empty());
  CHECK(memprof::detail::dump(document).size() < 4096);
}

TEST_CASE("summary: its JSON says by how much sizes may be off that a simulated run assumed") {
  memprof::profile of = training();
  CHECK(memprof::summary_json(of).at("assumed_sizes").is_null());
  of.exact = false;
  // 1 of 4 results in 1,000 bytes: three more are 3,000. All of 50 results: none too few.
  const memprof::assumed_size nonzero{"aten::nonzero", "routing", "a mask", 2, 1000, 4000, 1000};
  const memprof::assumed_size unique{"aten::_unique2", "", "distinct", 1, 50, 50, 400};
  of.facts = {memprof::extend::to_table<memprof::assumed_size>({nonzero, unique})};
  const nlohmann::ordered_json found = memprof::summary_json(of).at("assumed_sizes");
  check_keys(found, read_schema("summary.schema.json").at("properties").at("assumed_sizes"));
  CHECK(found == nlohmann::ordered_json{{"calls", 3},
                                        {"bytes_too_many", 1400},
                                        {"bytes_too_few", 3000},
                                        {"operator", "aten::nonzero"},
                                        {"operation", "routing"}});
  // Nobody knows how many rows there may be at most.
  of.facts = {memprof::extend::to_table<memprof::assumed_size>({unique, {"aten::unique_dim", "", "distinct", 1, 5, 0, 600}})};
  const nlohmann::ordered_json unbounded = memprof::summary_json(of).at("assumed_sizes");
  CHECK(unbounded.at("bytes_too_many") == 1000);
  CHECK(unbounded.at("bytes_too_few").is_null());
  CHECK(unbounded.at("operation").is_null());
}

TEST_CASE("summary: its JSON says whether the run fits, and what makes it inexact") {
  memprof::profile of = training();
  of.spaces[0].capacity = 4000;
  CHECK(memprof::summary_sentence(of).find("; does not fit: 260 B over 3.91 KiB; ") != std::string::npos);
  of.spaces[0].capacity = 5000;
  CHECK(memprof::summary_sentence(of).find("; fits 4.88 KiB with 740 B left; ") != std::string::npos);
  of.exact = false;
  CHECK(memprof::summary_sentence(of).ends_with(" (not exact)"));
  CHECK(memprof::summary_json(of).at("caveats").size() == 1);
  CHECK(memprof::summary_sentence(memprof::profile{}) == "nothing was recorded");
}

}  // namespace memprof_tests::analysis_summary_json
