#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/pie/session_json.hpp>
#include <memprof/toolkit/format/pie/session_profile.hpp>
#include <memprof/toolkit/format/pie/session_trace.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_session {

using memprof::category;
using nlohmann::json;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::size_t mib = 1 << 20;

[[nodiscard]] std::string shape_text(std::string_view shape) {
  std::string text;
  memprof::detail::append_shape(text, shape);
  return text;
}
[[nodiscard]] std::string shapes_text(std::string_view shapes) {
  std::string text;
  memprof::detail::append_shapes(text, shapes);
  return text;
}

/// Two snapshots; `step` runs on thread 1 while thread 2 allocates, and `inner` within it.
[[nodiscard]] memprof::trace small_trace() {
  memprof::trace made;
  memprof::extend::capture_info info;
  info.library_version = "1.2.3";
  info.begin_unix_ns = 1'736'764'200'000'000'000;  // 2025-01-13T10:30:00Z
  memprof::extend::trace_writer writer{made, info};
  const memprof::extend::space_id cpu = writer.space("cpu");
  const memprof::extend::space_id device = writer.space("cuda:0");
  writer.on_thread(1);
  writer.at(1 * ms);
  writer.allocate(cpu, {100}, 2 * mib, category::parameter);
  writer.annotate({100}, {"wte", "[512, 1024]", "float32", category::parameter, memprof::requires_grad::yes});
  writer.end_segment("LOAD");
  writer.at(2 * ms);
  const auto step = writer.begin_operation("step");
  const auto inner = writer.begin_operation("inner");
  writer.allocate(device, {200}, 4 * mib, category::activation);
  writer.on_thread(2);
  writer.allocate(cpu, {300}, 1 * mib);
  writer.on_thread(1);
  writer.at(3 * ms);
  writer.end_operation(inner);
  writer.deallocate(cpu, {300});
  writer.deallocate(cpu, {100});
  writer.at(4 * ms);
  writer.end_operation(step);
  (void)writer.begin_operation("unfinished");
  writer.add_facts(
      memprof::extend::to_table<memprof::pytorch_operation>({{"aten::addmm", "[512], [4, 768]", 16, 1500, 0, mib, 0}}));
  writer.at(5 * ms);
  writer.finish("END");
  return made;
}

}  // namespace

TEST_CASE("session: times are ISO 8601 in UTC, as Python writes them") {
  // `datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds")`
  CHECK(memprof::detail::iso_time(0) == "1970-01-01T00:00:00.000000+00:00");
  CHECK(memprof::detail::iso_time(951'782'400'000'000'000) == "2000-02-29T00:00:00.000000+00:00");
  CHECK(memprof::detail::iso_time(1'736'764'200'123'456'789) == "2025-01-13T10:30:00.123456+00:00");
  CHECK(memprof::detail::iso_time(4'107'542'399'999'999'999) == "2100-02-28T23:59:59.999999+00:00");
  CHECK(memprof::detail::iso_time(-1) == "1969-12-31T23:59:59.999999+00:00");
}

TEST_CASE("session: shapes are arrays where they are, and text where they are something else") {
  CHECK(shape_text("[65, 128]") == "[65, 128]");
  CHECK(shape_text("[]") == "[]");
  CHECK(shape_text("") == "null");
  for (const char* other : {"65 x 128", "[65, 128", "[65,, 1]", "[01]", "[a]", "[1] [2]", "[-1]", "["})
    CHECK(shape_text(other) == json(other).dump());
  CHECK(shapes_text("[512], [4, 768], []") == "[[512], [4, 768], []]");
  CHECK(shapes_text("[[1, 2], [3]], [4]") == "[[[1, 2], [3]], [4]]");
  CHECK(shapes_text("") == "[]");
  CHECK(shapes_text("[1], ?") == "\"[1], ?\"");
  CHECK(shape_text(std::string(100, '[')) == '"' + std::string(100, '[') + '"');
}

TEST_CASE("session: a trace gives each snapshot as it was, and each call with all devices before and after") {
  const memprof::trace made = small_trace();
  const memprof::profile run = memprof::profile_of(made);
  memprof::text_sink sink;
  const std::vector<std::string> missing = memprof::write_session(made, run, sink);
  CHECK(missing == std::vector<std::string>{"1 calls of operations still open at the end of the trace"});
  const json session = json::parse(sink.text);
  const json& metadata = session.at("metadata");
  CHECK(metadata.at("generated_at") == "2025-01-13T10:30:00.005000+00:00");
  CHECK(metadata.at("num_snapshots") == 2);
  CHECK(metadata.at("operation_tracking_enabled") == true);
  const json wte = {{"size_mb", 2.0},  {"size_bytes", 2 * mib}, {"shape", {512, 1024}}, {"dtype", "torch.float32"},
                    {"device", "cpu"}, {"requires_grad", true}, {"operation", nullptr}, {"purpose", "parameter"}};
  const json loaded = {{"timestamp", "2025-01-13T10:30:00.001000+00:00"},
                       {"checkpoint_name", "LOAD"},
                       {"total_mb", 2.0},
                       {"total_bytes", 2 * mib},
                       {"tensor_count", 1},
                       {"device_breakdown",
                        {{"cpu", {{"total_mb", 2.0}, {"total_bytes", 2 * mib}, {"count", 1}, {"tensors", json::array({wte})}}}}},
                       {"top_allocations", json::array({wte})}};
  CHECK(session.at("snapshots").at(0) == loaded);
  const json& last = session.at("snapshots").at(1);
  CHECK(last.at("checkpoint_name") == "END");
  CHECK(last.at("total_bytes") == 4 * mib);  // cuda:0 once
  CHECK(last.at("device_breakdown").size() == 2);
  CHECK(last.at("device_breakdown").at("cpu").at("count") == 0);
  const json activation = {{"size_mb", 4.0},     {"size_bytes", 4 * mib},    {"shape", nullptr},     {"dtype", nullptr},
                           {"device", "cuda:0"}, {"requires_grad", nullptr}, {"operation", "inner"}, {"purpose", "activation"}};
  CHECK(last.at("top_allocations") == json::array({activation}));
  const json of_step = {{"memory_delta_mb", 2.0},
                        {"tensor_delta", 0},
                        {"tensors_allocated", 2},
                        {"tensors_deallocated", 2},
                        {"pre_total_mb", 2.0},
                        {"post_total_mb", 4.0},
                        {"timestamp", "2025-01-13T10:30:00.004000+00:00"},
                        {"begin_timestamp", "2025-01-13T10:30:00.002000+00:00"},
                        {"thread", 1}};
  const json of_inner = {{"memory_delta_mb", 5.0},
                         {"tensor_delta", 2},
                         {"tensors_allocated", 2},
                         {"tensors_deallocated", 0},
                         {"pre_total_mb", 2.0},
                         {"post_total_mb", 7.0},
                         {"timestamp", "2025-01-13T10:30:00.003000+00:00"},
                         {"begin_timestamp", "2025-01-13T10:30:00.002000+00:00"},
                         {"thread", 1}};
  CHECK(session.at("operation_allocations") == json{{"step", json::array({of_step})}, {"inner", json::array({of_inner})}});
  CHECK(
      session.at("operation_summary").at("inner") ==
      json{{"invocation_count", 1}, {"total_memory_delta_mb", 5.0}, {"avg_memory_delta_mb", 5.0}, {"max_memory_delta_mb", 5.0}});
  CHECK(session.at("operation_graph").at("step").at("child_operations") == json::array({"inner"}));
  CHECK(session.at("operation_graph").at("step").at("tensors_allocated") == 2);
  CHECK(session.at("operation_graph").at("step").at("tensor_details").empty());  // all within `inner` or on another thread
  CHECK(session.at("operation_graph").at("inner").at("tensor_details") == json::array({activation}));
  const json addmm = {{"op_name", "aten::addmm"},
                      {"count", 16},
                      {"cpu_time_us", 1.5},
                      {"cuda_time_us", 0.0},
                      {"cpu_memory_mb", 1.0},
                      {"cuda_memory_mb", 0.0},
                      {"input_shapes", {{512}, {4, 768}}}};
  CHECK(session.at("pytorch_operations") == json::array({addmm}));
}

TEST_CASE("session: an arena that is reset at once leaves nothing in the next snapshot") {
  memprof::trace made;
  memprof::extend::trace_writer writer{made};
  const memprof::extend::space_id cpu = writer.space("cpu");
  for (std::uint64_t address = 100; address < 200; address += 10) writer.allocate(cpu, {address}, 5);
  writer.put_event({0, 100, 50, 0, memprof::extend::event_kind::deallocate_range, cpu.value, 0});
  writer.finish("END");
  memprof::text_sink sink;
  CHECK(memprof::write_session(made, memprof::profile_of(made), sink).empty());
  const json session = json::parse(sink.text);
  CHECK(session.at("snapshots").at(0).at("tensor_count") == 5);
  CHECK(session.at("snapshots").at(0).at("total_bytes") == 25);
}

namespace {

/// Two checkpoints and the end of a segment between them.
[[nodiscard]] memprof::trace trace_with_checkpoints() {
  memprof::trace made;
  memprof::extend::capture_info info;
  info.begin_unix_ns = 1'736'764'200'000'000'000;
  memprof::extend::trace_writer writer{made, info};
  const memprof::extend::space_id cpu = writer.space("cpu");
  writer.at(1 * ms);
  const auto load = writer.begin_operation("load");
  for (std::uint64_t block = 1; block <= 12; ++block) writer.allocate(cpu, {block * 100}, block * mib);
  writer.annotate({1200}, {"wte", "[3, 1048576]", "float32", category::parameter, memprof::requires_grad::yes});
  writer.end_operation(load);
  writer.checkpoint("loaded");
  writer.at(2 * ms);
  writer.deallocate(cpu, {1200});
  writer.end_segment("LOAD");
  writer.at(3 * ms);
  writer.deallocate(cpu, {1100});
  writer.checkpoint("");
  writer.finish("END");
  return made;
}

}  // namespace

TEST_CASE("session: checkpoints are snapshots, with the ten largest blocks as they were, from a trace and from a profile") {
  const memprof::trace made = trace_with_checkpoints();
  const memprof::profile run = memprof::profile_of(made);
  memprof::text_sink of_trace;
  CHECK(memprof::write_session(made, run, of_trace).empty());
  memprof::text_sink of_profile;
  (void)memprof::write_session(run, of_profile);
  for (const json& session : {json::parse(of_trace.text), json::parse(of_profile.text)}) {
    CHECK(session.at("metadata").at("num_snapshots") == 4);
    const json& snapshots = session.at("snapshots");
    REQUIRE(snapshots.size() == 4);
    const auto field = [&](const char* name) {
      json values = json::array();
      for (const json& snapshot : snapshots) values.push_back(snapshot.at(name));
      return values;
    };
    CHECK(field("checkpoint_name") == json{"loaded", "LOAD", "snapshot_0002", "END"});
    CHECK(field("total_mb") == json{78.0, 66.0, 55.0, 55.0});  // 1 + ... + 12, and so on
    CHECK(field("tensor_count") == json{12, 11, 10, 10});
    CHECK(snapshots.at(2).at("timestamp") == "2025-01-13T10:30:00.003000+00:00");
    const json& largest = snapshots.at(0).at("top_allocations");
    REQUIRE(largest.size() == 10);
    const json wte = {{"size_mb", 12.0}, {"size_bytes", 12 * mib}, {"shape", {3, 1048576}}, {"dtype", "torch.float32"},
                      {"device", "cpu"}, {"requires_grad", true},  {"operation", "load"},   {"purpose", "parameter"}};
    CHECK(largest.at(0) == wte);
    CHECK(largest.at(9).at("size_mb") == 3.0);
    CHECK(snapshots.at(0).at("device_breakdown").at("cpu").at("tensors") == largest);
    CHECK(snapshots.at(2).at("top_allocations").at(0).at("size_mb") == 10.0);
  }
}

TEST_CASE("session: of an operation's own blocks the ten largest are listed, as they were described at their end") {
  const memprof::trace made = trace_with_checkpoints();
  memprof::text_sink sink;
  (void)memprof::write_session(made, memprof::profile_of(made), sink);
  const json details = json::parse(sink.text).at("operation_graph").at("load").at("tensor_details");
  REQUIRE(details.size() == 10);
  CHECK(details.at(0).at("shape") == json{3, 1048576});
  CHECK(details.at(9).at("size_mb") == 3.0);
}

TEST_CASE("session: a profile gives what it has, null for the rest, and says so") {
  const memprof::profile run = memprof::profile_of(small_trace());
  memprof::text_sink sink;
  const std::vector<std::string> missing = memprof::write_session(run, sink);
  CHECK(missing.size() == 2);
  const json session = json::parse(sink.text);
  CHECK(session.at("metadata").at("missing") == json(missing));
  REQUIRE(session.at("snapshots").size() == 2);
  CHECK(session.at("snapshots").at(0).at("total_bytes") == 2 * mib);
  CHECK(session.at("snapshots").at(1).at("total_bytes") == 4 * mib);
  CHECK(session.at("snapshots").at(1).at("tensor_count") == 1);
  CHECK(session.at("snapshots").at(1).at("top_allocations").empty());
  const json& inner = session.at("operation_allocations").at("inner").at(0);
  CHECK(inner.at("memory_delta_mb") == 4.0);  // of its own thread
  CHECK(inner.at("pre_total_mb").is_null());
  CHECK(session.at("operation_summary").at("unfinished").at("invocation_count") == 1);
  memprof::profile folded = run;
  folded.segment_count = 100;
  folded.checkpoint_count = 200;
  memprof::text_sink other;
  CHECK(memprof::write_session(folded, other).size() == 4);
  CHECK(json::parse(other.text).at("snapshots").at(1).at("tensor_count").is_null());
}

}  // namespace memprof_tests::format_session
