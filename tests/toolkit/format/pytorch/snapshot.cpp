#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_reader.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace memprof_tests::format_torch_snapshot {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::MessageMatches;

namespace {

struct reading {
  std::string damage;
  std::vector<std::string> remarks;
  memprof::profile profile;

  [[nodiscard]] const memprof::space_profile& space(const char* name = "cuda:0") const { return profile.space(name); }
};

reading read(const std::string& content) {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("snapshot");
  std::ofstream{path, std::ios::binary} << content;
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  memprof::torch_snapshot_source source{file.get(), "snapshot"};
  memprof::trace made;
  memprof::extend::trace_writer writer{made, source.info()};
  source.write_to(writer);
  writer.finish();
  return {source.damage(), source.remarks(), memprof::profile_of(made)};
}

std::string with_events(const std::string& events, const std::string& segments = {}) {
  return R"({"segments": [)" + segments + R"(], "device_traces": [[)" + events + "]]}";
}
std::string event(const char* action, int address, int size, int time) {
  return std::string{R"({"action": ")"} + action + R"(", "addr": )" + std::to_string(address) + R"(, "size": )" +
         std::to_string(size) + R"(, "stream": 0, "time_us": )" + std::to_string(time) + "}";
}
/// A segment of 4096 bytes at 4096 with one block.
std::string segment_with(int address, int size, const char* state) {
  return R"({"device": 0, "address": 4096, "total_size": 4096, "blocks": [{"address": )" + std::to_string(address) +
         R"(, "size": 512, "requested_size": )" + std::to_string(size) + R"(, "state": ")" + state + R"("}]})";
}

TEST_CASE("torch snapshot: frames that PyTorch's viewer hides are left out, and stacks are kept once", "[format]") {
  memprof::detail::torch_stacks stacks;
  CHECK(stacks.frame("torch::unwind::unwind()", "??", 0) == 0);
  CHECK(stacks.frame("PyEval_EvalFrame", "", 0) == 0);
  CHECK(stacks.frame("call", "/build/aten/src/ATen/core/boxing/impl.h", 3) == 0);
  CHECK(stacks.frame("std::function<void ()>::operator()() const", "", 0) == 0);
  CHECK(stacks.frame("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(void**, int)", "", 0) == 0);
  CHECK(memprof::detail::torch_stacks{memprof::stack_frames::all}.frame("std::sort", "", 0) != 0);
  const memprof::extend::label forward = stacks.frame("forward", R"(D:\model\net.py)", 54);
  CHECK(stacks.name(forward) == "forward (net.py:54)");
  CHECK(stacks.name(stacks.frame("at::add(at::Tensor)", "??", 0)) == "at::add");
  const std::uint32_t outer = stacks.within(0, forward);
  CHECK(stacks.within(outer, forward) != outer);
  CHECK(stacks.within(outer, forward) == stacks.within(outer, forward));
  CHECK(stacks.within(outer, 0) == outer);
}

TEST_CASE("torch snapshot: what a full ring buffer has lost was live before, and contradicts nothing", "[format]") {
  // Of two blocks the allocations are gone, of a third the begin of its free, too.
  const std::string history = event("free_completed", 4096, 100, 10) + "," + event("free_requested", 4608, 200, 20) + "," +
                              event("free_completed", 4608, 200, 21) + "," + event("alloc", 4608, 50, 30);
  const reading got = read(R"({"segments": [{"device": 0, "address": 4096, "total_size": 4096, "blocks": [)"
                           R"({"address": 4608, "size": 512, "requested_size": 50, "state": "active_allocated"},)"
                           R"({"address": 5120, "size": 512, "requested_size": 300, "state": "active_allocated"}]}],)"
                           R"("device_traces": [[)" +
                           history + R"(]], "trace_alloc_overflowed": [true]})");
  CHECK(got.space().cumulative_current == 50 + 300);
  CHECK(got.space().cumulative_peak == 200 + 300);
  CHECK(got.space().anomalies == memprof::space_anomalies{});
  CHECK(got.space().active.missing_completions.count == 0);
  REQUIRE(got.remarks.size() == 1);
  CHECK(got.remarks[0] ==
        "put 2 blocks (500 bytes) from before the history into the segment BEFORE_TRACE; the history's ring buffer was full, and "
        "older events are gone");
  CHECK(memprof::rows_of<memprof::missing_source>(got.profile.facts) ==
        std::vector<memprof::missing_source>{{"older events", "the history's ring buffer was full"}});
}

TEST_CASE("torch snapshot: a free of what the history has freed already is no block from before it", "[format]") {
  const reading got = read(with_events(event("alloc", 4096, 100, 1) + "," + event("free_completed", 4096, 100, 2) + "," +
                                       event("free_completed", 4096, 100, 3)));
  CHECK(got.space().cumulative_current == 0);
  CHECK(got.space().cumulative_peak == 100);
  CHECK(got.space().anomalies.unmatched_frees.count == 1);
  REQUIRE(got.remarks.size() == 1);
  CHECK_THAT(got.remarks[0], EndsWith("event 2 of device 0 frees a free block at address 4096"));
  // The same of a block from before.
  const reading before = read(with_events(event("free_completed", 4096, 100, 2) + "," + event("free_completed", 4096, 100, 3)));
  REQUIRE(before.remarks.size() == 2);
  CHECK_THAT(before.remarks[1], ContainsSubstring("1 contradictory event;") && EndsWith("at address 4096"));
}

TEST_CASE("torch snapshot: events that cannot be are counted, with the first of them", "[format]") {
  const auto last_remark = [](const std::string& content) { return read(content).remarks.back(); };
  CHECK_THAT(last_remark(with_events(event("alloc", 4096, 100, 1) + "," + event("free_requested", 4096, 90, 2) + "," +
                                     event("free_completed", 4096, 90, 3))),
             ContainsSubstring("1 contradictory event;") &&
                 EndsWith("event 1 of device 0 frees 90 bytes of a block of 100 at address 4096"));
  CHECK_THAT(last_remark(with_events(event("alloc", 4096, 100, 1) + "," + event("alloc", 4096, 7, 2))),
             EndsWith("event 1 of device 0 allocates where a block is live, at address 4096"));
  CHECK_THAT(last_remark(with_events(event("alloc", 4096, 100, 1), segment_with(4608, 100, "active_allocated"))),
             ContainsSubstring("history and segments disagree about 1 block:"));
  CHECK_THAT(last_remark(with_events(event("alloc", 4096, 100, 1), segment_with(4096, 90, "active_allocated"))),
             ContainsSubstring("disagree about 1 block:"));
  CHECK_THAT(last_remark(with_events(event("free_completed", 4096, 100, 1), segment_with(4096, 100, "active_allocated"))),
             ContainsSubstring("disagree about 1 block:"));
  CHECK_THAT(last_remark(with_events("", segment_with(7936, 100, "active_allocated"))),
             ContainsSubstring("disagree about 1 block:"));  // it ends beyond its segment
  const reading agreed = read(with_events(event("alloc", 4096, 100, 1), segment_with(4096, 100, "active_allocated")));
  CHECK(agreed.remarks.empty());
  CHECK(agreed.profile.provenance.remarks.empty());
  const reading disagreed = read(with_events(event("alloc", 4096, 100, 1), segment_with(4608, 100, "active_allocated")));
  REQUIRE(disagreed.profile.provenance.remarks.size() == 1);  // in the trace, too
  CHECK_THAT(disagreed.profile.provenance.remarks[0], ContainsSubstring("history and segments disagree about 1 block:"));
}

TEST_CASE("torch snapshot: what contradicts itself is not exact, and keeps why", "[format]") {
  const reading twice = read(
      with_events(event("alloc", 4096, 100, 1) + "," + event("alloc", 4096, 7, 2) + "," + event("free_completed", 4096, 70, 3)));
  CHECK_FALSE(twice.profile.exact);
  CHECK(twice.profile.anomalies.missing_events == 2);  // a free before the second, an allocation or another free before the third
  REQUIRE(twice.profile.provenance.remarks.size() == 1);
  CHECK_THAT(twice.profile.provenance.remarks[0],
             ContainsSubstring("2 contradictory events; numbers from there on may be wrong"));
}

TEST_CASE("torch snapshot: of two pickles in one file the first is read, and that is said", "[format]") {
  const auto text = [](const std::string& word) { return std::string{"\x8c"} + static_cast<char>(word.size()) + word; };
  const std::string one = "\x80\x04}(" + text("segments") + "]" + text("device_traces") + "](](}(" + text("action") +
                          text("alloc") + text("addr") + "K\x01" + text("size") + "K\x05ueeu.";
  const reading alone = read(one);
  CHECK(alone.damage.empty());
  const reading joined = read(one + one);
  CHECK(joined.damage ==
        "it goes on at byte " + std::to_string(one.size()) + ", after the end of the pickle, as joined files do");
  CHECK(joined.space().cumulative_peak == 5);
}

TEST_CASE("torch snapshot: actions of a newer PyTorch are left out, counted and named", "[format]") {
  const reading got = read(with_events(event("alloc", 4096, 100, 1) + R"(,{"action": "compress"}, {"action": "thaw"},)" +
                                       R"({"action": "snapshot"}, {"action": "annotate"})"));
  CHECK(got.space().cumulative_current == 100);
  REQUIRE(got.remarks.size() == 1);
  CHECK(got.remarks[0] == "left out 2 events of unknown kinds, perhaps from a newer PyTorch: 'compress' and others");
  CHECK_FALSE(got.profile.exact);
  CHECK(got.profile.anomalies.missing_events == 2);
  CHECK(memprof::rows_of<memprof::missing_source>(got.profile.facts) ==
        std::vector<memprof::missing_source>{{"events of unknown kinds", "perhaps from a newer PyTorch, the first 'compress'"}});
}

TEST_CASE("torch snapshot: pinned host memory is a space of its own", "[format]") {
  const std::string events = event("segment_alloc", 65536, 8192, 1) + "," + event("alloc", 65536, 1000, 2) + "," +
                             event("alloc", 69632, 500, 3) + "," + event("free_completed", 69632, 500, 4);
  // Its history is one list of events, or a list of such lists. Its segments have no device.
  for (const std::string& history : {"[" + events + "]", "[[" + events + "]]"}) {
    const reading got = read(R"({"segments": [], "device_traces": [[)" + event("alloc", 4096, 300, 1) +
                             R"(]], "host_segments": [{"address": 65536, "total_size": 8192, "blocks": [)"
                             R"({"address": 65536, "size": 4096, "requested_size": 1000, "state": "active_allocated"}]}],)"
                             R"("host_traces": )" +
                             history + "}");
    CHECK(got.space("pinned").cumulative_peak == 1500);
    CHECK(got.space("pinned").cumulative_current == 1000);
    CHECK(got.space("pinned").reserved.current == 8192);
    CHECK(got.space().cumulative_peak == 300);
    CHECK(got.remarks.empty());
    CHECK(got.profile.exact);
  }
}

TEST_CASE("torch snapshot: an unknown key is named, and the profile is not exact", "[format]") {
  const reading got = read(R"({"segments": [], "shared_segments": [{"a": [1]}], "device_traces": [[)" +
                           event("alloc", 4096, 300, 1) + R"(]], "version": 3})");
  REQUIRE(got.remarks.size() == 2);
  CHECK_THAT(got.remarks[0], ContainsSubstring("'shared_segments'"));
  CHECK_THAT(got.remarks[1], ContainsSubstring("'version'"));
  CHECK_FALSE(got.profile.exact);
  CHECK(got.profile.facts.back().name == "not_captured");
}

TEST_CASE("torch snapshot: a failure has the device's free bytes only if the snapshot does", "[format]") {
  const reading got = read(with_events(R"({"action": "oom", "size": 99, "time_us": 1}, {"action": "oom", "size": 98,)"
                                       R"( "device_free": 0, "time_us": 2})"));
  REQUIRE(got.space().out_of_memory.size() == 2);
  CHECK(got.space().out_of_memory[0].device_free == -1);
  CHECK(got.space().out_of_memory[1].device_free == 0);
}

TEST_CASE("torch snapshot: a malformed value is an error with its place and what was expected", "[format]") {
  const auto says = [](const std::string& text) { return MessageMatches(ContainsSubstring("cannot read 'snapshot': " + text)); };
  const auto of_event = [](const std::string& fields) { (void)read(with_events(event("alloc", 1, 1, 1) + ",{" + fields + "}")); };
  const std::string place = "event 1 of device 0: ";
  const std::string natural = " must be a whole number from 0 to 2^63 - 1";
  const std::string bytes = "'size' must be a number of bytes, a whole number from 0 to 2^47";
  CHECK_THROWS_MATCHES(of_event(R"("addr": 1, "size": 1)"), memprof::error, says(place + "expected 'action'"));
  CHECK_THROWS_MATCHES(of_event(R"("action": 5)"), memprof::error, says(place + "'action' must be a string"));
  CHECK_THROWS_MATCHES(of_event(R"("action": "alloc", "size": 1)"), memprof::error, says(place + "expected 'addr'"));
  CHECK_THROWS_MATCHES(of_event(R"("action": "alloc", "addr": 1)"), memprof::error, says(place + "expected 'size'"));
  for (const char* const size : {"true", "-1", "1.0", "-0.5", "1e300", "null", "\"1\"", "[1]", "{}", "140737488355329"})
    CHECK_THROWS_MATCHES(of_event(std::string{R"("action": "alloc", "addr": 1, "size": )"} + size), memprof::error,
                         says(place + bytes));
  CHECK_THROWS_MATCHES(of_event(R"("action": "alloc", "addr": true, "size": 1)"), memprof::error,
                       says(place + "'addr'" + natural));
  CHECK_THROWS_MATCHES(of_event(R"("action": "alloc", "addr": 9223372036854775808)"), memprof::error,
                       says(place + "'addr'" + natural));
  CHECK_THROWS_MATCHES(of_event(R"("time_us": -1)"), memprof::error, says(place + "'time_us' must be a time in microseconds"));
  CHECK_THROWS_MATCHES(of_event(R"("time_us": 9223372036854775)"), memprof::error, says(place + "'time_us' must be a time"));
  CHECK_THROWS_MATCHES(of_event(R"("stream": "0")"), memprof::error, says(place + "'stream' must be a whole number"));
  CHECK_THROWS_MATCHES(of_event(R"("category": 5)"), memprof::error, says(place + "'category' must be a string"));
  CHECK_THROWS_MATCHES(of_event(R"("frames": "f")"), memprof::error, says(place + "'frames' must be a list"));
  CHECK_THROWS_MATCHES(of_event(R"("frames": {})"), memprof::error, says(place + "'frames' must be a list"));
  for (const char* const pool : {"1", "[1]", "[1, 2, 3]", "[1, true]", "[1.0, 2]", "{}"})
    CHECK_THROWS_MATCHES(of_event(std::string{R"("pool_id": )"} + pool), memprof::error, says(place + "'pool_id' must be two"));
  CHECK_THROWS_MATCHES(of_event(R"("action": "oom", "size": 1, "size": 1)"), memprof::error, says(place + "'size' occurs twice"));
  CHECK_THROWS_MATCHES(of_event(R"("frames": [], "frames": [])"), memprof::error, says(place + "'frames' occurs twice"));
  CHECK_THROWS_MATCHES(read(with_events("1")), memprof::error, says("event 0 of device 0: expected an object"));
  CHECK_THROWS_MATCHES(read(with_events("[]")), memprof::error, says("event 0 of device 0: expected an object"));
  CHECK_THROWS_MATCHES(read(R"({"device_traces": [{}]})"), memprof::error, says("device 0: expected a list of events"));
  CHECK_THROWS_MATCHES(read(R"({"device_traces": {}})"), memprof::error, says("'device_traces': must be a list"));

  const auto of_segment = [](const std::string& fields) {
    (void)read(with_events("", R"({"device": 0, "address": 4096, "total_size": 4096, )" + fields + "}"));
  };
  CHECK_THROWS_MATCHES(of_segment(R"("stream": true)"), memprof::error, says("segment 0: 'stream' must be a whole number"));
  CHECK_THROWS_MATCHES(of_segment(R"("address": 1)"), memprof::error, says("segment 0: 'address' occurs twice"));
  CHECK_THROWS_MATCHES(of_segment(R"("is_expandable": 1)"), memprof::error, says("segment 0: 'is_expandable' must be true or"));
  CHECK_THROWS_MATCHES(of_segment(R"("blocks": {})"), memprof::error, says("segment 0: 'blocks' must be a list"));
  CHECK_THROWS_MATCHES(of_segment(R"("blocks": [5])"), memprof::error, says("block 0 of segment 0: expected an object"));
  const std::string block = R"("blocks": [{"size": 1, "state": "inactive"}, )";
  CHECK_THROWS_MATCHES(of_segment(block + "{}]"), memprof::error, says("block 1 of segment 0: expected 'size'"));
  CHECK_THROWS_MATCHES(of_segment(block + R"({"size": 5}])"), memprof::error, says("block 1 of segment 0: expected 'state'"));
  CHECK_THROWS_MATCHES(of_segment(block + R"({"state": "gone"}])"), memprof::error,
                       says("block 1 of segment 0: 'state' must be"));
  CHECK_THROWS_MATCHES(of_segment(block + R"({"size": 1, "size": 2}])"), memprof::error,
                       says("block 1 of segment 0: 'size' occurs"));
  CHECK_THROWS_MATCHES(read(R"({"segments": [], "external_annotations": [{"name": "a", "time_us": 0.5}]})"), memprof::error,
                       says("annotation 0: 'time_us' must be a time in microseconds"));
}

TEST_CASE("torch snapshot: pickles that no program writes are refused", "[format]") {
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto text = [](const std::string& word) { return std::string{"\x8c"} + static_cast<char>(word.size()) + word; };
  const std::string empty_segments = text("segments") + "]";
  const std::string alloc = "}(" + text("action") + text("alloc") + text("addr") + "K\x01" + text("size") + "K\x01u";
  // One list of events for two devices, once from the memo and once on the stack twice.
  const std::string twice = "\x80\x04}(" + empty_segments + text("device_traces") + "](";
  CHECK_THROWS_MATCHES(read(twice + "]\x94(" + alloc + "eh" + std::string(1, '\0') + "eu."), memprof::error,
                       says("device 0 and device 1 share one list of the pickle"));
  CHECK_THROWS_MATCHES(read(twice + "](" + alloc + "e2eu."), memprof::error, says("device 0 and device 1 share one list"));
  CHECK(read(twice + "]2eu.").remarks.empty());  // which is harmless while it is empty
  // An event of one device that is in the list of another one, too.
  CHECK_THROWS_MATCHES(read(twice + "](" + alloc + "\x94" + "e](h" + std::string(1, '\0') + "eeu."), memprof::error,
                       says("event 0 of device 1 (before byte"));
  CHECK_THROWS_MATCHES(read(twice + "](K\x01" + "eeu."), memprof::error, says("event 0 of device 0 (before byte"));
  // Python's dictionaries have each key once, but the machine would take it twice.
  CHECK_THROWS_MATCHES(read(twice + "](}(" + text("size") + "K\x01" + text("size") + "K\x02ueeu."), memprof::error,
                       says("'size' occurs twice"));
  CHECK_THROWS_MATCHES(read("\x80\x04}(" + empty_segments + empty_segments + "u."), memprof::error,
                       says("'segments' occurs twice"));
  CHECK_THROWS_MATCHES(read(twice + "](}(" + text("action") + text("oom") + text("size") + "\x88ueeu."), memprof::error,
                       says("'size' must be a number of bytes"));

  for (const char* const old : {"(dp0\nVsegments\np1\n", "(lp0\n", "}q", "\x80\x01}."})
    CHECK_THROWS_MATCHES(read(old), memprof::error, says("rewrite it with pickle.dump(snapshot, file, protocol=4)"));
  CHECK_THROWS_MATCHES(read("\x80\x04N" + std::string(1000, '\x94')), memprof::error, says("byte 4: memoizes an object twice"));
  CHECK_THROWS_MATCHES(read("\x80\x04" + std::string((std::size_t{1} << 20) + 9, '(')), memprof::error,
                       says("more than 1048576 values"));
  // 48 bytes of memory for each of the file's.
  std::string lists = "\x80\x04}" + text("x") + "]";
  for (int part = 0; part < 1000; ++part) lists += "(" + std::string(1000, ']') + "e";
  CHECK_THROWS_MATCHES(read(lists), memprof::error, says("take more memory than a snapshot of this size"));
}

}  // namespace

}  // namespace memprof_tests::format_torch_snapshot
