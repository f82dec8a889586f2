#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/report/text.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>
#include <unit/trace/trace_records.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_session_reader {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::category;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::size_t mib = 1 << 20;

/// What pie writes: two snapshots of a device `mps`, of which the second has more on a device `cpu` than it lists.
constexpr std::string_view pies = R"({
  "metadata": {"generated_at": "2025-01-13T10:30:00", "num_snapshots": 2, "operation_tracking_enabled": true},
  "snapshots": [
    {"timestamp": "2025-01-13T10:29:45", "checkpoint_name": "loaded", "total_mb": 3.0, "total_bytes": 3145728,
     "device_breakdown": {"mps": {"total_mb": 3.0, "count": 2, "tensors": [
       {"tensor_id": 1, "size_mb": 2.0, "shape": [512, 1024], "dtype": "torch.float32", "device": "mps", "requires_grad": true,
        "allocated_by": "unknown", "purpose": "weight"},
       {"tensor_id": 2, "size_bytes": 1048576, "size_mb": 7.5, "shape": [4], "dtype": "torch.float16", "device": "mps",
        "requires_grad": false, "allocated_by": "model_forward", "purpose": "buffer"}]}},
     "tensor_count": 2},
    {"timestamp": "2025-01-13T10:29:50.500000", "checkpoint_name": "snapshot_0001", "total_bytes": 6815744,
     "device_breakdown": {
       "mps": {"total_bytes": 6291456, "count": 2, "tensors": [
         {"tensor_id": 1, "size_mb": 2.0, "shape": [512, 1024], "dtype": "torch.float32", "device": "mps", "requires_grad": true,
          "allocated_by": "unknown", "purpose": "weight"},
         {"tensor_id": 3, "size_mb": 4.0, "shape": [1048576], "dtype": "torch.float32", "allocated_by": "model_forward"}]},
       "cpu": {"total_bytes": 524288, "count": 3, "tensors": []}},
     "tensor_count": 5}
  ],
  "operation_allocations": {"model_forward": [
    {"memory_delta_mb": 1.0, "tensor_delta": 1, "pre_total_mb": 2.0, "post_total_mb": 3.0, "timestamp": "2025-01-13T10:29:44"}]},
  "operation_summary": {"model_forward": {"invocation_count": 20, "total_memory_delta_mb": 6410.0, "avg_memory_delta_mb": 320.5,
    "max_memory_delta_mb": 325.25}},
  "operation_graph": {"model_forward": {"invocations": 20, "child_operations": [], "tensor_details": {"read": ["weight"]}}},
  "tensor_lifecycle": {"1": {"purpose": "weight", "events": [{"event_type": "allocated", "timestamp": "1999-01-01T00:00:00"}]}},
  "pytorch_operations": [{"op_name": "aten::addmm", "count": 16, "cpu_time_us": 85000.5, "cuda_time_us": 0, "cpu_memory_mb": 0.5,
    "input_shapes": [[1, 512], [512, 2048], [2048]]}],
  "operation_log": [
    {"operation_id": 1, "timestamp": "2025-01-13T10:29:46", "name": "Linear.0", "input_shapes": [[8, 512]]},
    {"operation_id": 2, "timestamp": "2025-01-13T10:29:47.500000", "name": "SiLU.1", "input_shapes": [[8, 2048]]}]
})";

struct session_reading {
  std::string damage;
  memprof::profile profile;
  std::vector<std::int64_t> begins;  ///< of operations
  std::vector<std::int64_t> ends;
};

[[nodiscard]] session_reading read(std::string_view text) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("session.json");
  std::ofstream{path, std::ios::binary} << text;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  memprof::session_source source{file.get(), path};
  memprof::trace made;
  memprof::extend::trace_writer writer{made, source.info()};
  source.write_to(writer);
  writer.finish();
  session_reading result{source.damage(), memprof::profile_of(made), {}, {}};
  memprof_tests::trace_records records;
  made.visit(records);
  for (const auto& [ring, event] : records.all) {
    const auto at_ns = static_cast<std::int64_t>(event.stamp) - 1;
    if (event.kind == memprof::extend::event_kind::scope_begin) result.begins.push_back(at_ns);
    if (event.kind == memprof::extend::event_kind::scope_end) result.ends.push_back(at_ns);
  }
  return result;
}

[[nodiscard]] bool is_recognised(std::string_view text) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("session.json");
  std::ofstream{path, std::ios::binary} << text;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  const bool is = memprof::is_session(file.get());
  CHECK(std::ftell(file.get()) == 0);
  return is;
}

}  // namespace

TEST_CASE("session reader: each snapshot of pie's is a checkpoint with the bytes and tensors that it lists") {
  const session_reading got = read(pies);
  CHECK(got.damage.empty());
  const memprof::profile& run = got.profile;
  CHECK(run.begin_unix_ns == 1'736'764'184'000'000'000);  // the call, at 10:29:44
  REQUIRE(run.checkpoints.size() == 2);
  const memprof::checkpoint& loaded = run.checkpoints[0];
  CHECK(loaded.name == "loaded");
  CHECK(loaded.time_ns == 1000 * ms);
  CHECK(loaded.live_bytes == 3 * std::int64_t{mib});
  CHECK(loaded.live_blocks == 2);
  REQUIRE(loaded.spaces.size() == 1);
  const memprof::live_block& weight = loaded.spaces[0].largest_blocks.at(0);
  CHECK(weight.shape == "[512, 1024]");
  CHECK(weight.dtype == "float32");
  CHECK(weight.category == category::parameter);
  CHECK(weight.requires_grad == memprof::requires_grad::yes);
  CHECK(weight.operation.empty());
  CHECK(loaded.spaces[0].largest_blocks.at(1).operation == "model_forward");
  const memprof::checkpoint& last = run.checkpoints[1];
  CHECK(last.time_ns == 6500 * ms);
  CHECK(last.live_bytes == 6'815'744);
  CHECK(run.space("mps").cumulative_peak == 6 * std::int64_t{mib});
  CHECK(run.space("mps").allocation_count == 3);  // the weight once
  CHECK(run.space("mps").deallocation_count == 1);
  CHECK(run.space("cpu").cumulative_peak == 524'288);
  CHECK(run.space("cpu").allocation_count == 1);  // what is not listed
}

TEST_CASE("session reader: entries of the operation log end when they ended, and begin at the end of the one before") {
  const session_reading got = read(pies);
  for (const char* name : {"Linear.0", "SiLU.1", "model_forward"}) CHECK(got.profile.find_operation(name) != nullptr);
  // Stamps count nanoseconds from 1. Linear.0 has no begin; both tensors of model_forward were first seen in a snapshot.
  CHECK(got.begins == std::vector<std::int64_t>{1000 * ms, 2000 * ms, 2000 * ms, 6500 * ms});
  CHECK(got.ends == std::vector<std::int64_t>{1000 * ms, 2000 * ms, 3500 * ms, 6500 * ms});
}

TEST_CASE("session reader: sums, calls and operators without a place in time are facts") {
  const memprof::profile run = read(pies).profile;
  const auto sums = memprof::rows_of<memprof::session_operation_sum>(run.facts);
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].operation == "model_forward");
  CHECK(sums[0].invocations == 20);
  CHECK(sums[0].total_delta_bytes == 6410 * std::int64_t{mib});
  CHECK(sums[0].max_delta_bytes == 325 * std::int64_t{mib} + 262'144);
  const auto calls = memprof::rows_of<memprof::session_operation_call>(run.facts);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].end_ns == 0);
  CHECK(calls[0].delta_bytes == std::int64_t{mib});
  CHECK(calls[0].before_bytes == 2 * std::int64_t{mib});
  const auto operators = memprof::rows_of<memprof::pytorch_operation>(run.facts);
  REQUIRE(operators.size() == 1);
  CHECK(operators[0] ==
        memprof::pytorch_operation{"aten::addmm", "[1, 512], [512, 2048], [2048]", 16, 85'000'500, 0, 524'288, 0});
  CHECK(run.provenance.remarks.size() == 3);  // not listed, begins, tensors
}

TEST_CASE("session reader: what came and went between two snapshots is missing, so nothing is called exact") {
  const memprof::profile run = read(pies).profile;
  const auto missing = memprof::rows_of<memprof::missing_source>(run.facts);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].source == "what came and went between two snapshots");
  CHECK_THAT(memprof::to_text(run), ContainsSubstring("Accuracy  incomplete"));
}

TEST_CASE("session reader: of a file that is cut off, the whole snapshots are read") {
  const std::string_view cut = pies.substr(0, pies.find("\"timestamp\": \"2025-01-13T10:29:50"));
  const session_reading got = read(cut);
  CHECK(got.damage == "it is cut off after " + std::to_string(cut.size()) + " bytes");
  REQUIRE(got.profile.checkpoints.size() == 1);
  CHECK(got.profile.checkpoints[0].live_bytes == 3 * std::int64_t{mib});
}

TEST_CASE("session reader: calls whose begin the file has are operations, nested on their threads") {
  const auto call = [](const char* begin, const char* end, int thread) {
    return std::string{R"({"memory_delta_mb": 0, "timestamp": "2025-01-13T10:00:)"} + end +
           R"(", "begin_timestamp": "2025-01-13T10:00:)" + begin + R"(", "thread": )" + std::to_string(thread) + "}";
  };
  const session_reading got =
      read(R"({"metadata": {"num_snapshots": 1}, "snapshots": [{"timestamp": "2025-01-13T10:00:05", "device_breakdown": {}}],
  "operation_allocations": {"inner": [)" +
           call("01", "02", 1) + "," + call("02", "04", 1) + R"(], "outer": [)" + call("01", "04", 1) + R"(], "other": [)" +
           call("03", "06", 2) + "]}}");
  const memprof::operation_profile* const inner = got.profile.find_operation("outer/inner");
  REQUIRE(inner != nullptr);
  CHECK(inner->invocations == 2);
  CHECK(got.profile.find_operation("other") != nullptr);
  CHECK(got.profile.anomalies.unbalanced_scopes == 0);
  constexpr std::int64_t s = 1000 * ms;
  CHECK(got.begins == std::vector<std::int64_t>{0, 0, 1 * s, 2 * s});  // outer, inner, inner, other
  CHECK(got.ends == std::vector<std::int64_t>{1 * s, 3 * s, 3 * s, 5 * s});
}

TEST_CASE("session reader: what memprof wrote has its totals again, checkpoint by checkpoint") {
  memprof::trace made;
  memprof::extend::capture_info info;
  info.library_version = "1.2.3";
  info.begin_unix_ns = 1'736'764'200'000'000'000;
  memprof::extend::trace_writer writer{made, info};
  const memprof::extend::space_id cpu = writer.space("cpu");
  for (std::uint64_t block = 1; block <= 30; ++block) {  // more than a snapshot lists
    writer.at(static_cast<std::int64_t>(block) * ms);
    writer.allocate(cpu, {block * mib}, block * 1000, category::activation);
    if (block % 10 == 0) writer.checkpoint("after " + std::to_string(block));
    if (block % 3 == 0) writer.deallocate(cpu, {block * mib});
  }
  writer.finish("END");
  const memprof::profile run = memprof::profile_of(made);
  memprof::text_sink sink;
  (void)memprof::write_session(made, run, sink);
  const session_reading got = read(sink.text);
  CHECK(got.damage.empty());
  REQUIRE(got.profile.checkpoints.size() == 4);  // and the end of the segment
  for (std::size_t index = 0; index < 3; ++index) {
    const memprof::checkpoint& wanted = run.checkpoints[index];
    const memprof::checkpoint& found = got.profile.checkpoints[index];
    CHECK(found.name == wanted.name);
    CHECK(found.live_bytes == wanted.live_bytes);
    CHECK(found.time_ns - got.profile.checkpoints[0].time_ns == wanted.time_ns - run.checkpoints[0].time_ns);
  }
  CHECK(got.profile.checkpoints[3].live_bytes == run.space("cpu").cumulative_current);
}

TEST_CASE("session reader: times may have a zone") {
  const auto begin_of = [](std::string_view time) {
    return read(R"({"metadata": {"num_snapshots": 1}, "snapshots": [{"timestamp": ")" + std::string{time} +
                R"(", "device_breakdown": {}}]})")
        .profile.begin_unix_ns;
  };
  // `datetime.fromisoformat(text).timestamp()`
  CHECK(begin_of("2025-01-13T10:30:00.250000+00:00") == 1'736'764'200'250'000'000);
  CHECK(begin_of("2025-01-13T12:30:00+02:00") == 1'736'764'200'000'000'000);
  CHECK(begin_of("2000-02-29T00:00:00Z") == 951'782'400'000'000'000);
  CHECK(begin_of("2000-13-29T00:00:00") == 0);
  CHECK(begin_of("9025-01-13T10:30:00") == 0);  // beyond 64 bits of nanoseconds
  CHECK(begin_of("yesterday") == 0);
}

TEST_CASE("session reader: a session is told from other JSON") {
  CHECK(is_recognised(pies));
  CHECK(is_recognised("\xEF\xBB\xBF \n{\n\"metadata\": {\"generated_at\": \"\", \"num_snapshots\": 0}}"));
  CHECK_FALSE(is_recognised(R"({"segments": [], "device_traces": []})"));
  CHECK_FALSE(is_recognised(R"([{"metadata": {"num_snapshots": 1}}])"));
  CHECK_FALSE(is_recognised(""));
}

TEST_CASE("session reader: what is no session, or has no snapshot, is an error that names the file") {
  CHECK_THROWS_MATCHES(read("{}"), memprof::error,
                       MessageMatches(ContainsSubstring("session.json") && ContainsSubstring("pie's memory profiler")));
  CHECK_THROWS_MATCHES(read(R"({"metadata": {"num_snapshots": 0}, "snapshots": []})"), memprof::error,
                       MessageMatches(ContainsSubstring("no snapshot")));
  CHECK_THROWS_MATCHES(read(R"({"metadata": {"num_snapshots": 0},, "snapshots": []})"), memprof::error,
                       MessageMatches(ContainsSubstring("byte 34: invalid JSON")));
  std::string devices;
  for (int device = 0; device < 255; ++device)
    devices += (device == 0 ? "\"" : ", \"") + std::to_string(device) + R"(": {"total_bytes": 1})";
  CHECK_THROWS_MATCHES(read(R"({"metadata": {"num_snapshots": 1}, "snapshots": [{"device_breakdown": {)" + devices + "}}]}"),
                       memprof::error, MessageMatches(ContainsSubstring("session.json") && ContainsSubstring("254 devices")));
  CHECK_THROWS_MATCHES(read(R"({"metadata": {"num_snapshots": 0}, "snapshots": )" + std::string(100, '[')), memprof::error,
                       MessageMatches(ContainsSubstring("nested too deeply")));
}

}  // namespace memprof_tests::format_session_reader
