#include <memprof/config.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pie/session_json.hpp>
#include <memprof/toolkit/format/pie/session_writer.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/requires_grad.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

void put_count(json_object& shown, std::string_view name, std::int64_t count) {
  if (count < 0) return shown.null(name);
  shown.number(name, count);
}

void put_tensors(std::string& out, const std::vector<session_tensor>& tensors) {
  json_array rows{out};
  for (const session_tensor& tensor : tensors) {
    json_object row{rows.element()};
    row.megabytes("size_mb", tensor.bytes);
    row.number("size_bytes", tensor.bytes);
    append_shape(row.key("shape"), tensor.shape);
    if (tensor.dtype.empty()) {
      row.null("dtype");
    } else {
      row.text("dtype", torch_dtype(tensor.dtype));
    }
    row.text("device", tensor.device);
    if (tensor.requires_grad == requires_grad::unknown) {
      row.null("requires_grad");
    } else {
      row.boolean("requires_grad", tensor.requires_grad == requires_grad::yes);
    }
    if (tensor.operation.empty()) {
      row.null("operation");
    } else {
      row.text("operation", tensor.operation);
    }
    row.text("purpose", to_string(tensor.category));
  }
}

void put_call(std::string& out, const session_call& call) {
  json_object row{out};
  row.megabytes("memory_delta_mb", call.delta);
  if (call.before < 0) {
    for (const char* unknown : {"tensor_delta", "pre_total_mb", "post_total_mb"}) row.null(unknown);
  } else {
    row.number("tensor_delta", call.block_delta);
    row.number("tensors_allocated", call.allocated);
    row.number("tensors_deallocated", call.freed);
    row.megabytes("pre_total_mb", call.before);
    row.megabytes("post_total_mb", call.before + call.delta);
  }
  row.text("timestamp", iso_time(call.unix_ns));
  if (call.thread >= 0) {
    row.text("begin_timestamp", iso_time(call.begin_unix_ns));
    row.number("thread", call.thread);
  }
}

void put_pytorch_operations(std::string& out, const profile& run) {
  json_array rows{out};
  for (const pytorch_operation& called : rows_of<pytorch_operation>(run.facts)) {
    rows.element() += '\n';
    json_object row{out};
    row.text("op_name", called.name);
    row.number("count", called.count);
    row.number("cpu_time_us", static_cast<double>(called.cpu_time_ns) / 1000);
    row.number("cuda_time_us", static_cast<double>(called.device_time_ns) / 1000);
    row.megabytes("cpu_memory_mb", called.cpu_memory);
    row.megabytes("cuda_memory_mb", called.device_memory);
    append_shapes(row.key("input_shapes"), called.input_shapes);
  }
}

}  // namespace

void keep_if_larger(std::vector<session_tensor>& largest, const session_tensor& offered) {
  const auto place =
      std::upper_bound(largest.begin(), largest.end(), offered,
                       [](const session_tensor& left, const session_tensor& right) { return left.bytes > right.bytes; });
  if (static_cast<std::size_t>(place - largest.begin()) == session_largest_blocks) return;
  largest.insert(place, offered);
  if (largest.size() > session_largest_blocks) largest.pop_back();
}

void session_operation::add(const session_call& call) {
  max_delta = invocations++ == 0 ? call.delta : std::max(max_delta, call.delta);
  total_delta += call.delta;
  allocated = std::max<std::int64_t>(allocated, 0) + call.allocated;
  calls.push_back(call);
}

void session_writer::begin(const profile& run, std::uint64_t snapshots, bool has_operations,
                           const std::vector<std::string>& missing) {
  text_ = "{\n\"metadata\": ";
  {
    json_object metadata{text_};
    metadata.text("generated_at", iso_time(run.begin_unix_ns + run.duration_ns));
    metadata.number("num_snapshots", snapshots);
    metadata.boolean("operation_tracking_enabled", has_operations);
    metadata.boolean("pytorch_ops_tracking_enabled", !rows_of<pytorch_operation>(run.facts).empty());
    metadata.boolean("tensor_lifecycle_tracking_enabled", false);
    metadata.text("generated_by", "memprof " + run.library_version);
    metadata.boolean("exact", run.exact);
    json_array sentences{metadata.key("missing")};
    for (const std::string& sentence : missing) append_json_string(sentences.element(), sentence);
  }
  text_ += ",\n\"snapshots\": [";
  flush();
}

void session_writer::snapshot(std::int64_t unix_ns, std::string_view name, const std::vector<session_device>& devices) {
  text_ += is_first_ ? "\n" : ",\n";
  is_first_ = false;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::vector<session_tensor> largest;
  for (const session_device& device : devices) {
    bytes += device.bytes;
    blocks = blocks < 0 || device.blocks < 0 ? -1 : blocks + device.blocks;
    largest.insert(largest.end(), device.largest.begin(), device.largest.end());
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const session_tensor& left, const session_tensor& right) { return left.bytes > right.bytes; });
  if (largest.size() > session_largest_blocks) largest.resize(session_largest_blocks);
  {
    json_object shown{text_};
    shown.text("timestamp", iso_time(unix_ns));
    shown.text("checkpoint_name", name);
    shown.megabytes("total_mb", bytes);
    shown.number("total_bytes", bytes);
    put_count(shown, "tensor_count", blocks);
    {
      json_object by_device{shown.key("device_breakdown")};
      for (const session_device& device : devices) {
        (void)by_device.key(device.name);
        json_object part{text_};
        part.megabytes("total_mb", device.bytes);
        part.number("total_bytes", device.bytes);
        put_count(part, "count", device.blocks);
        put_tensors(part.key("tensors"), device.largest);
      }
    }
    put_tensors(shown.key("top_allocations"), largest);
  }
  flush();
}

template <class Put>
void session_writer::put_operations(const session_operations& operations, Put&& put) {
  bool is_first = true;
  for (const auto& [name, operation] : operations) {
    text_ += is_first ? "\n" : ",\n";
    is_first = false;
    append_json_string(text_, name);
    text_ += ": ";
    put(operation);
    flush();
  }
}

void session_writer::finish(const session_operations& operations, const profile& run) {
  text_ += "\n],\n\"operation_allocations\": {";
  put_operations(operations, [this](const session_operation& operation) {
    json_array calls{text_};
    for (const session_call& call : operation.calls) {
      calls.element() += "\n  ";
      put_call(text_, call);
    }
  });
  text_ += "},\n\"operation_summary\": {";
  put_operations(operations, [this](const session_operation& operation) {
    json_object summary{text_};
    summary.number("invocation_count", operation.invocations);
    summary.megabytes("total_memory_delta_mb", operation.total_delta);
    const auto count = static_cast<double>(std::max<std::int64_t>(operation.invocations, 1));
    summary.number("avg_memory_delta_mb", static_cast<double>(operation.total_delta) / (1 << 20) / count);
    if (operation.has_max) {
      summary.megabytes("max_memory_delta_mb", operation.max_delta);
    } else {
      summary.null("max_memory_delta_mb");
    }
  });
  text_ += "},\n\"operation_graph\": {";
  put_operations(operations, [this](const session_operation& operation) {
    json_object node{text_};
    node.number("invocations", operation.invocations);
    node.megabytes("total_memory_delta_mb", operation.total_delta);
    put_count(node, "tensors_allocated", operation.allocated);
    {
      json_array children{node.key("child_operations")};
      for (const std::string& child : operation.children) append_json_string(children.element(), child);
    }
    if (operation.allocated >= 0) put_tensors(node.key("tensor_details"), operation.largest);
  });
  text_ += "},\n\"pytorch_operations\": ";
  put_pytorch_operations(text_, run);
  text_ += "\n}\n";
  flush();
}

void session_writer::flush() {
  out_.write(text_);
  text_.clear();
}

std::string checkpoint_name(std::string_view name, std::uint64_t number) {
  if (!name.empty()) return std::string{name};
  const std::string digits = std::to_string(number + 1);
  constexpr std::size_t width = 4;
  return "snapshot_" + std::string(width - std::min(width, digits.size()), '0') + digits;
}

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
