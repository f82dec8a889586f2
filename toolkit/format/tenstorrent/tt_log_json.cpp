#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/indented_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// Counts what the files will contain.
struct tt_json_survey final : tt_log_sink {
  std::map<std::size_t, tt_rank_summary> ranks;

  void operation(const tt_rank& rank, const tt_executed_operation& executed, const tt_memory_state& state) override {
    tt_rank_summary& self = of(rank);
    if (is_deallocation(executed.mlir)) {
      ++self.deallocations;
    } else if (is_get_device(executed.mlir)) {
      ++self.get_devices;
    } else {
      if (self.operations++ == 0) self.first = state;
      if (executed.const_eval.empty()) return;
      ++self.const_evals[executed.const_eval];
      self.cache_misses[executed.const_eval] = executed.is_cache_miss;
    }
  }
  void operation_without_state(const tt_rank& rank, const tt_executed_operation& executed) override {
    tt_rank_summary& self = of(rank);
    if (is_deallocation(executed.mlir)) {
      ++self.deallocations;
    } else {
      ++(is_get_device(executed.mlir) ? self.get_devices : self.without_state);
    }
  }
  void program_state(const tt_rank&, const tt_memory_state&) override {}
  void begin_program(const tt_rank&, std::string_view) override {}
  void end_program(const tt_rank&, std::string_view) override {}
  void out_of_memory(const tt_rank&, const tt_out_of_memory&, std::uint64_t) override {}

 private:
  tt_rank_summary& of(const tt_rank& rank) {
    tt_rank_summary& self = ranks[rank.index];
    self.rank = rank;
    return self;
  }
};

/// Writes the two files of one rank.
class tt_json_writer final : public tt_log_sink {
 public:
  tt_json_writer(byte_sink_view& memory, byte_sink_view& operations, const tt_rank_summary& summary,
                 const std::vector<tt_input>& inputs)
      : rank_(summary.rank.index), memory_(memory), operations_(operations), inputs_(inputs) {
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      // Among several with the same shape the last counts, as in the original.
      if (inputs[index].is_weight() && !inputs[index].shape.empty()) weights_by_shape_[inputs[index].shape] = index;
    }
    memory_.begin('{');
    memory_.key("metadata");
    memory_.begin('{');
    memory_.key("memory_config");
    memory_.begin('{');
    for (std::size_t kind = 0; kind < tt_memory_count; ++kind) {
      if (!summary.first[kind]) continue;
      memory_.key(tt_memory_names[kind]);
      memory_.begin('{');
      memory_.field("num_banks", summary.first[kind]->banks);
      memory_.field("total_bytes_per_bank_MB", summary.first[kind]->total);
      memory_.end('}');
    }
    memory_.end('}');
    memory_.field("total_operations", summary.operations);
    memory_.end('}');
    memory_.key("operations");
    memory_.begin('[');
    operations_.begin('[');
  }

  void operation(const tt_rank& rank, const tt_executed_operation& executed, const tt_memory_state& state) override {
    if (rank.index != rank_ || is_deallocation(executed.mlir) || is_get_device(executed.mlir)) return;
    const std::vector<std::size_t> weights = weights_of(executed);
    const bool is_weight = !executed.const_eval.empty() || !weights.empty();
    put_memory(executed, state, is_weight);
    put_operation(executed, weights, is_weight);
    ++index_;
  }
  void operation_without_state(const tt_rank&, const tt_executed_operation&) override {}
  void program_state(const tt_rank&, const tt_memory_state&) override {}
  void begin_program(const tt_rank&, std::string_view) override {}
  void end_program(const tt_rank&, std::string_view) override {}
  void out_of_memory(const tt_rank&, const tt_out_of_memory&, std::uint64_t) override {}

  void finish() {
    memory_.end(']');
    memory_.end('}');
    operations_.end(']');
  }

 private:
  /// The weights that an operation takes, found by shape alone, since value names are those of another module. Operations of a
  /// const-eval program get those of the `ttcore.load_cached` that runs it.
  [[nodiscard]] std::vector<std::size_t> weights_of(const tt_executed_operation& executed) {
    const bool is_load = executed.mlir.name.find("load_cached") != std::string::npos;
    if (!is_load && !executed.const_eval.empty())
      return loaded_ == executed.const_eval ? loaded_weights_ : std::vector<std::size_t>{};
    std::vector<std::size_t> weights;
    for (const mlir_tensor& input : executed.mlir.input_tensors) {
      const auto found = weights_by_shape_.find(input.shape);
      if (found == weights_by_shape_.end()) continue;
      if (is_load || std::find(weights.begin(), weights.end(), found->second) == weights.end()) weights.push_back(found->second);
    }
    if (is_load) {
      loaded_.clear();
      for (const std::string& input : executed.mlir.inputs) {
        if (input.starts_with('@')) loaded_ = input.substr(1);
      }
      loaded_weights_ = weights;
    }
    return weights;
  }

  void put_memory(const tt_executed_operation& executed, const tt_memory_state& state, bool is_weight) {
    memory_.begin('{');
    memory_.field("op_type", executed.type);
    memory_.key("memory");
    memory_.begin('{');
    for (std::size_t kind = 0; kind < tt_memory_count; ++kind) {
      if (!state[kind]) continue;
      memory_.key(tt_memory_names[kind]);
      memory_.begin('{');
      memory_.field("numBanks", state[kind]->banks);
      memory_.field("totalBytesPerBank_MB", state[kind]->total);
      memory_.field("totalBytesAllocatedPerBank_MB", state[kind]->allocated);
      memory_.field("totalBytesFreePerBank_MB", state[kind]->free);
      memory_.field("largestContiguousBytesFreePerBank_MB", state[kind]->largest_free);
      memory_.end('}');
    }
    memory_.end('}');
    memory_.field("index", index_);
    memory_.field("mlir_op", executed.name());
    put_loc(memory_, executed);
    put_const_eval(memory_, executed, is_weight);
    memory_.end('}');
  }

  void put_operation(const tt_executed_operation& executed, const std::vector<std::size_t>& weights, bool is_weight) {
    const mlir_operation& mlir = executed.mlir;
    operations_.begin('{');
    put_or_null("result", mlir.result);
    operations_.field("mlir_op", executed.name());
    operations_.key("inputs");
    operations_.begin('[');
    for (const std::string& input : mlir.inputs) operations_.value(input);
    operations_.end(']');
    put_or_null("attributes", mlir.attributes);
    put_or_null("input_types", mlir.input_types);
    put_or_null("output_type", mlir.output_type);
    put_tensors("input", mlir.input_tensors);
    put_tensors("output", mlir.output_tensors);
    put_loc(operations_, executed);
    operations_.field("index", index_);
    put_const_eval(operations_, executed, is_weight);
    operations_.key("weights");
    operations_.begin('[');
    for (const std::size_t weight : weights) put_weight(weight);
    operations_.end(']');
    operations_.end('}');
  }

  void put_weight(std::size_t index) {
    const tt_input& weight = inputs_[index];
    operations_.begin('{');
    operations_.field("registry_index", index);
    operations_.field("name", weight.name);
    operations_.field("shape", weight.shape);
    operations_.field("dtype", weight.dtype);
    operations_.field("bytes", weight.bytes);
    operations_.end('}');
  }

  void put_or_null(std::string_view name, std::string_view text) {
    operations_.key(name);
    operations_.value_or_null(text);
  }
  void put_tensors(const std::string& which, const std::vector<mlir_tensor>& tensors) {
    operations_.key(which + "_shapes");
    operations_.begin('[');
    for (const mlir_tensor& tensor : tensors) operations_.value_or_null(tensor.shape);
    operations_.end(']');
    operations_.key(which + "_dtypes");
    operations_.begin('[');
    for (const mlir_tensor& tensor : tensors) operations_.value_or_null(tensor.dtype);
    operations_.end(']');
  }

  static void put_loc(indented_json<byte_sink_view>& out, const tt_executed_operation& executed) {
    out.key("loc");
    out.value_or_null(executed.mlir.loc);
  }
  static void put_const_eval(indented_json<byte_sink_view>& out, const tt_executed_operation& executed, bool is_weight) {
    out.key("const_eval_graph");
    out.value_or_null(executed.const_eval);
    out.field("const_eval_cache_miss", executed.is_cache_miss);
    out.field("is_weight_op", is_weight);
  }

  std::size_t rank_;
  indented_json<byte_sink_view> memory_;
  indented_json<byte_sink_view> operations_;
  const std::vector<tt_input>& inputs_;
  std::map<std::string, std::size_t, std::less<>> weights_by_shape_;
  std::string loaded_;  ///< the function of the last `ttcore.load_cached`
  std::vector<std::size_t> loaded_weights_;
  std::uint64_t index_ = 0;
};

}  // namespace

}  // namespace detail

tt_log_content content_of_tt_log(std::FILE* file, const std::filesystem::path& path) {
  detail::tt_json_survey survey;
  detail::tt_log_reading reading = detail::read_tt_lines(file, path, survey);
  tt_log_content found;
  for (auto& [index, summary] : survey.ranks) {
    if (summary.operations != 0) found.ranks.push_back(std::move(summary));
  }
  found.inputs = std::move(reading.inputs);
  found.has_module = reading.has_module;
  found.status = std::move(reading.status);
  return found;
}

void write_tt_json(std::FILE* file, const std::filesystem::path& path, const tt_rank_summary& rank,
                   const std::vector<tt_input>& inputs, byte_sink_view memory, byte_sink_view operations) {
  detail::tt_json_writer writer{memory, operations, rank, inputs};
  (void)detail::read_tt_lines(file, path, writer);
  writer.finish();
}

void write_tt_inputs(const tt_log_content& content, byte_sink_view sink) {
  detail::indented_json<byte_sink_view> out{sink};
  out.begin('{');
  out.key("metadata");
  out.begin('{');
  if (content.has_module) {
    const std::vector<tt_input>& inputs = content.inputs;
    std::int64_t weight_bytes = 0;
    for (const tt_input& input : inputs) weight_bytes = detail::add_saturating(weight_bytes, input.is_weight() ? input.bytes : 0);
    const auto count = [&](auto&& is_wanted) { return std::count_if(inputs.begin(), inputs.end(), is_wanted); };
    out.field("total_entries", inputs.size());
    out.field("total_weights", count([](const tt_input& input) { return input.is_weight(); }));
    out.field("total_inputs", count([](const tt_input& input) { return input.type == "input"; }));
    out.field("total_weight_bytes", weight_bytes);
    out.field("total_weight_MB", static_cast<double>(weight_bytes) / 0x1p20);
  }
  out.end('}');
  out.key("entries");
  out.begin('[');
  for (std::size_t index = 0; index < content.inputs.size(); ++index) {
    const tt_input& input = content.inputs[index];
    out.begin('{');
    out.field("index", index);
    out.field("ssa", input.ssa);
    out.field("name", input.name);
    out.field("type", input.type);
    out.key("shape");
    out.value_or_null(input.shape);
    out.field("dtype", input.dtype);
    out.field("bytes", input.bytes);
    out.field("bytes_MB", static_cast<double>(input.bytes) / 0x1p20);
    out.end('}');
  }
  out.end(']');
  out.end('}');
}

}  // namespace memprof::inline MEMPROF_ABI
