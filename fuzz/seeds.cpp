// seeds FOLDER: writes the seeds for fuzzing: payloads of short traces with everything in them to FOLDER, short logs of tt-mlir's
// runtime to FOLDER_tt_log, heaptrack recordings in each version of their format to FOLDER_heaptrack, and those of PyTorch, ttnn
// and pie to FOLDER_torch_snapshot, FOLDER_ttnn_graph and FOLDER_session.
#include <memprof/memprof.hpp>

#include <memprof/profile/folded_head.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/pytorch/snapshot.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/trace_file.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using memprof::extend::event_kind;

/// A step with each kind of event, in three spaces, on two threads.
void put_step(memprof::extend::trace_writer& writer, std::uint64_t step) {
  const memprof::extend::space_id cpu = writer.space("cpu");
  const memprof::extend::space_id gpu = writer.space("cuda:0", 4000, false, "device");
  const memprof::extend::space_id l1 = writer.space("l1", 500, true, "device");
  writer.at(static_cast<std::int64_t>(1000 * step));
  writer.on_thread(1 + static_cast<std::uint32_t>(step % 2), "worker");
  const auto outer = writer.begin_operation("step");
  const auto inner = writer.begin_operation("layer", memprof::category::activation);
  writer.allocate(cpu, 4096 + 64 * step, 100 * step);
  writer.annotate(4096 + 64 * step, {.name = "weight", .category = memprof::category::parameter});
  const memprof::extend::label stream = writer.label_of("default\x1f");
  writer.put_event({0, 0x10000, 8192, stream, event_kind::reserve, gpu.value, 0});
  writer.put_event({0, 0x10000 + 512 * step, 512, stream, event_kind::allocate_on_stream, gpu.value, 0});
  if (step > 2) writer.put_event({0, 0x10000 + 512 * (step - 2), 512, stream, event_kind::deallocate_on_stream, gpu.value, 1});
  if (step > 3) writer.put_event({0, 0x10000 + 512 * (step - 3), 512, 0, event_kind::complete_deallocation, gpu.value, 0});
  writer.put_event({0, 4096 + 64 * step, 0, 0, event_kind::use, memprof::extend::any_space, static_cast<std::uint16_t>(step % 2)});
  writer.end_operation(inner);
  const memprof::extend::core_range cores{0, 0, 3, 1};
  const std::uint64_t on_cores = memprof::extend::address_on_cores(64 * step, cores);
  writer.put_event(
      {0, on_cores, 200, cores.packed(), event_kind::allocate_on_cores, l1.value, static_cast<std::uint16_t>(256 * (step % 2))});
  if (step % 3 == 0) writer.put_event({0, on_cores, 0, cores.packed(), event_kind::deallocate_on_cores, l1.value, 0});
  if (step % 4 == 3) writer.put_event({0, 0, 0, cores.packed(), event_kind::deallocate_circular_buffers, l1.value, 0});
  if (step % 5 == 4) writer.put_event({0, 100, 1 << 20, 0, event_kind::out_of_memory, gpu.value, 0});
  writer.put_event({0, 0x11000, 4096, stream, event_kind::release, gpu.value, 0});
  if (step > 1) writer.deallocate(cpu, 4096 + 64 * (step - 1), 1);
  writer.end_operation(outer);
  writer.add_facts({"facts", {"name", "value", "share"}, {{"a", static_cast<std::int64_t>(step), 0.5}}});
  writer.end_segment("STEP");
}

void write_seeds(const std::filesystem::path& folder, const std::string& name, const memprof::trace& source) {
  std::string payload;
  source.for_each_chunk(
      [&](const unsigned char* bytes, std::size_t size) { payload.append(reinterpret_cast<const char*>(bytes), size); });
  std::ofstream{folder / (name + ".payload"), std::ios::binary} << payload << '\1';
  memprof::write_trace(source, folder / (name + ".memtrace"));
  std::ofstream{folder / (name + ".memtrace"), std::ios::binary | std::ios::app} << '\2';
}

/// A program with each kind of line, repeated the given number of times.
std::string tt_log_of(std::uint64_t steps) {
  std::string text =
      "Always | INFO | MLIR Module shlo_frontend:\nfunc.func @main(%arg0: tensor<4x4xbf16> {ttcore.argument_type = "
      "#ttcore.argument_type<parameter>, ttir.name = \"w\"}) -> (tensor<1xf32>) {\nEND OF MLIR MODULE\n";
  const auto say = [&](const std::string& line) { text += "[1,0]<stdout>:\x1b[32m RuntimeTTNN\x1b[0m | " + line + '\n'; };
  const auto operation = [&](const std::string& mlir, std::uint64_t allocated) {
    say("Executing operation: " + mlir);
    say("Device memory state before operation AnOp");
    for (const char* memory : {"DRAM", "L1", "L1 SMALL", "TRACE"}) {
      say(std::string{"Device "} + memory +
          " memory state: MemoryView{numBanks: 2, totalBytesPerBank: 9.000 MB, totalBytesAllocatedPerBank: " +
          std::to_string(allocated) + ".125 MB, totalBytesFreePerBank: 2.000 MB, largestContiguousBytesFreePerBank: 1.500 MB}");
    }
  };
  for (std::uint64_t step = 0; step < steps; ++step) {
    say("Starting execution of program: main");
    say("Cache miss or invalid cache for function: main_const_eval_0");
    operation("%1 = ttcore.load_cached(@main_const_eval_0, [%arg0]) : (tensor<4x4xbf16>) -> tensor<4x4xbf16> loc(unknown)", 1);
    say("Starting execution of program: main_const_eval_0");
    operation("%2 = \"ttnn.add\"(%1, %1) <{a = 1}> : (tensor<4x4xbf16>, tensor<f32>) -> tensor<4x4xbf16> loc(\"a\"(\"b\"))", 3);
    say("Finished execution of program: main_const_eval_0");
    operation("\"ttnn.deallocate\"(%2) : (tensor<4x4xbf16>) -> () loc(\"f\":1:2)", 7);
    say("Not enough space to allocate 64 B DRAM buffer across 2 banks, where each bank needs to store 32 B, but bank size is 99 "
        "B "
        "(allocated: 90 B, free: 9 B, largest free block: 5 B)");
    operation("\"ttnn.mean\"() : () -> ()", 2);
    say("Finished execution of program: main");
    say("Device memory state after submit");
  }
  return text;
}

/// A recording with each kind of line, in a version of the format.
std::string heaptrack_of(int version) {
  std::string text = "v 10400 " + std::to_string(version) + "\nX ./app\nI 1000 4000\nA\nS leak:f\n";
  for (const char* string : {"/bin/app", "main", "/src/app.cpp", "void* f<int>(unsigned long)", "operator new(unsigned long)"}) {
    constexpr const char* digits = "0123456789abcdef";
    const std::size_t size = std::string{string}.size();
    const std::string length = version < 3 ? "" : std::string{digits[size / 16], digits[size % 16], ' '};
    text += "s " + length + string + '\n';
  }
  text += "i 11 1 4 3 a 2 3 f\ni 12 1 5\ni 13 1\nt 1 0\nt 2 1\nt 3 2\nt 0 3\na 64 2\na 10 4\n+ 0\n+ 1\nc a\nR 5\n- 0\n+ 0\n+ 0\n";
  return text + "c 14\n- 0\n- 1\n# strings: 5\n# ips: 3\n";
}

// clang-format off
/// A snapshot with every key that is read.
constexpr const char* torch_json = R"json({"segments": [{"device": 0, "address": 1048576, "total_size": 2097152, "allocated_size": 512,
"active_size": 512, "requested_size": 100, "stream": 3, "segment_type": "small", "segment_pool_id": [0, 1], "is_expandable": false,
"frames": [], "blocks": [{"address": 1048576, "size": 512, "requested_size": 100, "state": "active_allocated", "frames":
[{"name": "f", "filename": "a/f.py", "line": 1}]}, {"size": 512, "state": "active_pending_free"}, {"size": 9, "state": "inactive"}]}],
"device_traces": [[{"action": "segment_alloc", "addr": 4194304, "size": 2097152, "stream": 0, "time_us": 9, "frames": []},
{"action": "alloc", "addr": 4194304, "size": 64, "stream": 0, "time_us": 10, "category": "gradient", "user_metadata": "m", "pool_id":
[1, 0], "frames": [{"name": "at::add(int)", "filename": "add.cpp", "line": 7}, {"name": "f", "filename": "a/f.py", "line": 1}]},
{"action": "free_requested", "addr": 4194304, "size": 64, "time_us": 12}, {"action": "free_completed", "addr": 4194304, "size": 64,
"time_us": 15}, {"action": "oom", "device_free": 5, "size": 99, "time_us": 20}, {"action": "segment_free", "addr": 4194304, "size":
2097152}], [{"action": "alloc", "addr": 512, "size": 1, "time_us": 11}]], "allocator_settings": {"a": -1, "b": {"c": [1, 0.5, null]}},
"external_annotations": [{"name": "step", "stage": "START", "time_us": 9}, {"name": "step", "stage": "END", "time_us": 19}]} )json";

/// A graph with every kind of node.
constexpr const char* ttnn_json = R"json([{"counter": 0, "node_type": "capture_start", "params": null, "connections": [1]},
{"counter": 1, "node_type": "function_start", "params": {"name": "ttnn::add", "inputs": "2"}, "arguments": [{"a": []}]},
{"counter": 2, "node_type": "buffer", "params": {"size": "64", "type": "DRAM"}, "connections": [3]},
{"counter": 3, "node_type": "tensor", "params": {"shape": "[1]", "dtype": "f", "layout": "TILE", "buffer_type": "L1"}},
{"counter": 4, "node_type": "buffer", "params": {"size": 96, "type": "L1"}, "connections": [3]},
{"counter": 5, "node_type": "buffer_allocate", "params": {"size": 96, "type": "L1", "page_size": 32, "num_cores": 2, "buffer_type": 3,
"max_size_per_bank": 64}, "connections": [4]},
{"counter": 6, "node_type": "circular_buffer_allocate", "params": {"size": 32, "core_range_set": "{[0-0 - 1-1]}", "globally_allocated":
"0"}, "connections": []},
{"counter": 7, "node_type": "dataflow_buffer_allocate", "params": {"size": 8, "core_range_set": "{[(x=0,y=0) - (x=7,y=7)]}",
"borrows_memory": "0"}, "connections": []},
{"counter": 8, "node_type": "circular_buffer_deallocate_all", "params": {}, "connections": []},
{"counter": 9, "node_type": "buffer_deallocate", "params": {"size": 0, "type": "L1"}, "connections": [4]},
{"counter": 10, "node_type": "function_end", "params": {"name": "ttnn::add"}, "connections": []}] )json";

/// A session with every section.
constexpr const char* session_json = R"json({"metadata": {"generated_at": "2025-01-13T10:30:00", "num_snapshots": 2}, "snapshots": [
{"timestamp": "2025-01-13T10:29:45", "checkpoint_name": "loaded", "total_bytes": 300, "device_breakdown": {"mps": {"total_bytes": 300,
"count": 2, "tensors": [{"tensor_id": 1, "size_bytes": 100, "shape": [5, 5], "dtype": "torch.float32", "requires_grad": true,
"allocated_by": "f", "purpose": "weight"}, {"size_mb": 0.0001, "shape": null, "operation": "g", "purpose": "kv_cache"}]}}},
{"timestamp": "2025-01-13T10:29:50.5+01:00", "device_breakdown": {"mps": {"total_mb": 1.5, "tensors": []}, "cpu": {}}}],
"operation_allocations": {"f": [{"memory_delta_mb": 1.0, "pre_total_mb": 2.0, "timestamp": "2025-01-13T10:29:44",
"begin_timestamp": "2025-01-13T10:29:43", "thread": 1}, {"timestamp": "2025-01-13T10:29:43.5"}]}, "operation_summary": {"f":
{"invocation_count": 20, "total_memory_delta_mb": 6410.0, "max_memory_delta_mb": -1}}, "operation_graph": {"f": {"child_operations": []}},
"tensor_lifecycle": {"1": {"events": [{"timestamp": "x"}]}}, "pytorch_operations": [{"op_name": "aten::mm", "count": 1, "cpu_time_us":
8.5, "input_shapes": [[1, 2], [2]]}], "operation_log": [{"timestamp": "2025-01-13T10:29:46", "name": "Linear.0"}]} )json";

// clang-format on
/// PyTorch snapshots and ttnn graphs, whose last byte is not part of the file, and a session.
void write_foreign_seeds(const std::string& prefix, const memprof::trace& source) {
  const std::filesystem::path snapshots = prefix + "_torch_snapshot";
  std::filesystem::create_directories(snapshots);
  memprof::text_sink pickle;
  (void)memprof::write_torch_snapshot(source, pickle);
  std::ofstream{snapshots / "pickle", std::ios::binary} << pickle.text << '\1';
  std::ofstream{snapshots / "json", std::ios::binary} << torch_json;
  const std::filesystem::path graphs = prefix + "_ttnn_graph";
  std::filesystem::create_directories(graphs);
  for (const char model : {'\1', '\2'})
    std::ofstream{graphs / (model == '\1' ? "one_core" : "per_core"), std::ios::binary} << ttnn_json << model;
  const std::filesystem::path sessions = prefix + "_session";
  std::filesystem::create_directories(sessions);
  std::ofstream{sessions / "json", std::ios::binary} << session_json;
}

}  // namespace

int main(int count, char** arguments) {
  const std::filesystem::path folder = count > 1 ? arguments[1] : "seeds";
  std::filesystem::create_directories(folder);
  for (const std::uint64_t steps : {1U, 5U, 40U}) {
    memprof::trace whole;
    memprof::trace limited;
    limited.keep_newest(512, 256, memprof::detail::folded_head::make());
    for (memprof::trace* const target : {&whole, &limited}) {
      memprof::extend::trace_writer writer{*target};
      for (std::uint64_t step = 1; step <= steps; ++step) put_step(writer, step);
      writer.finish();
    }
    write_seeds(folder, "whole-" + std::to_string(steps), whole);
    write_seeds(folder, "limited-" + std::to_string(steps), limited);
    if (steps == 5) write_foreign_seeds(folder.string(), whole);
  }
  const std::filesystem::path logs = folder.string() + "_tt_log";
  std::filesystem::create_directories(logs);
  for (const std::uint64_t steps : {1U, 3U}) std::ofstream{logs / std::to_string(steps), std::ios::binary} << tt_log_of(steps);
  const std::filesystem::path recordings = folder.string() + "_heaptrack";
  std::filesystem::create_directories(recordings);
  for (const int version : {1, 2, 3})
    std::ofstream{recordings / std::to_string(version), std::ios::binary} << heaptrack_of(version);
}
