#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_survey.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_walk.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <memprof/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// "1x768" in the form used by blocks: "[1, 768]".
std::string shape_text(std::string_view shape) {
  std::string text = "[";
  for (const char character : shape) character == 'x' ? text.append(", ") : text.append(1, character);
  return text + ']';
}

/// The element type and memory layout of a tensor: "bf16 tile dram interleaved", as far as the type shows it.
std::string tensor_layout_text(const mlir_tensor& tensor, std::string_view type) {
  std::string text = tensor.dtype;
  const auto has = [&](std::string_view part) { return type.find(part) != std::string_view::npos; };
  if (has("memref<")) text += has(".tile<") ? " tile" : " row_major";
  for (const std::string_view memory : {"dram", "l1", "l1_small", "system_memory", "trace"}) {
    if (has("buffer_type<" + std::string{memory} + '>') || has(", #" + std::string{memory} + '>'))
      text.append(" ").append(memory);
  }
  for (const std::string_view spread : {"interleaved", "height_sharded", "width_sharded", "block_sharded", "single_bank"}) {
    if (has('<' + std::string{spread} + '>')) text.append(" ").append(spread);
  }
  return text;
}

/// Writes the contents of a log during the second reading.
class tt_log_writer final : public tt_walk_target {
 public:
  tt_log_writer(tt_log_survey& survey, trace_writer& writer) : survey_(survey), writer_(writer) {}

  void on_rank(const tt_rank& rank) override {
    if (rank_ == rank.index) return;
    rank_ = rank.index;
    writer_.on_thread(static_cast<std::uint32_t>(rank.index + 1), rank.number.empty() ? "device" : "rank " + rank.number, 0);
  }
  void enter(std::string_view name) override { open_[rank_].push_back(writer_.begin_operation(name, {})); }
  void leave() override {
    auto& open = open_[rank_];
    if (open.empty()) return;
    writer_.end_operation(open.back());
    open.pop_back();
  }
  void end_segment(std::string_view name) override { writer_.end_segment(name); }
  void next_state() override { writer_.at(1000 * ++states_); }
  void state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view, std::uint64_t) override {
    const std::pair key{rank.index, memory};
    if (const auto known = spaces_.find(key); known != spaces_.end()) {
      known->second.free = view.banks * bytes_of_mebibytes(view.free);
      return;
    }
    const std::int64_t capacity = view.banks * bytes_of_mebibytes(view.total);
    spaces_[key] = {writer_.space(tt_space_name(rank, memory), capacity), view.banks * bytes_of_mebibytes(view.free)};
  }

  void allocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& made, const tt_executed_operation* by) override {
    const space_id space = spaces_[{rank.index, memory}].id;
    std::uint64_t address = made.address;
    annotation text;
    std::string shape;
    std::string layout;
    if (by != nullptr) {
      text.name = by->mlir.loc.empty() ? by->mlir.result : by->mlir.loc;
      if (!by->const_eval.empty()) text.category = category::parameter;
      if (!by->mlir.output_tensors.empty()) {
        text.shape = shape = shape_text(by->mlir.output_tensors.front().shape);
        text.dtype = layout = tensor_layout_text(by->mlir.output_tensors.front(), by->mlir.output_type);
      }
    }
    survey_.splits.for_each_part(made.number, made.bytes, [&](std::int64_t part) {
      writer_.allocate(space, block_address{address}, static_cast<std::size_t>(part), text.category);
      if (!annotation_text::is_empty(text)) writer_.annotate(block_address{address}, text);
      address += static_cast<std::uint64_t>(part);
    });
  }
  void deallocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& from, std::int64_t part) override {
    writer_.deallocate(spaces_[{rank.index, memory}].id, block_address{from.address}, static_cast<std::size_t>(part));
  }

  void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t) override {
    const std::pair key{rank.index, failure.memory};
    if (spaces_.find(key) == spaces_.end())
      spaces_[key] = {writer_.space(tt_space_name(rank, failure.memory), product(failure.bank_size, failure.banks)), 0};
    const std::int64_t free = failure.free < 0 ? spaces_[key].free : product(failure.free, failure.banks);
    writer_.put_event({0, static_cast<std::uint64_t>(free), static_cast<std::uint64_t>(failure.requested), 0,
                       event_kind::out_of_memory, spaces_[key].id.value, 0});
  }
  void unseen(const tt_rank&, const tt_executed_operation&) override {}

 private:
  struct written_space {
    space_id id;
    std::int64_t free = 0;  ///< when the last state was printed
  };

  /// 0 if unknown, or on overflow.
  [[nodiscard]] static std::int64_t product(std::int64_t of_bank, std::int64_t banks) noexcept {
    std::int64_t bytes = 0;
    return of_bank < 0 || __builtin_mul_overflow(of_bank, banks, &bytes) ? 0 : bytes;
  }

  tt_log_survey& survey_;
  trace_writer& writer_;
  std::size_t rank_ = ~std::size_t{0};
  std::map<std::size_t, std::vector<trace_writer::open_operation_type>> open_;
  std::int64_t states_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, written_space> spaces_;
};

}  // namespace

}  // namespace detail

tt_log_source::tt_log_source(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  detail::tt_walked_log walked = detail::walk_tt_log(file_, path_, survey_);
  survey_.splits.finish();
  status_ = std::move(walked.reading.status);
  inputs_ = std::move(walked.reading.inputs);
  if (status_.states == 0 && survey_.failures.empty()) raise_without_states();
}

extend::capture_info tt_log_source::info() {
  extend::capture_info made;
  made.library_version = version_string;
  made.operations = imported_operations;
  return made;
}

std::string tt_log_source::write_to(extend::trace_writer& writer) {
  add_facts(writer);
  detail::tt_log_writer target{survey_, writer};
  detail::tt_walked_log walked = detail::walk_tt_log(file_, path_, target);
  if (!is_whole(status_)) writer.put_event({0, 0, 1, 0, extend::event_kind::gap, extend::any_space, 0});  // one or more events
  return std::move(walked.last_segment);
}

void tt_log_source::add_facts(extend::trace_writer& writer) const {
  constexpr std::size_t max_inputs = 4096;
  std::vector<tt_input_fact> rows;
  for (const tt_input& input : inputs_) {
    if (rows.size() < max_inputs) rows.push_back({input.ssa, input.name, input.type, input.shape, input.dtype, input.bytes});
  }
  const auto add = [&](const auto& table) {
    if (!table.empty()) writer.add_facts(extend::to_table(table));
  };
  add(survey_.memories());
  add(survey_.fragmentation_over_time());
  add(survey_.failures);
  add(rows);
  add(survey_.missing);
  if (status_.states != 0)
    add(std::vector<source_limit>{
        {"states are logged between operations: a peak within one is not in the log", survey_.rounding, 0}});
}

void tt_log_source::raise_without_states() const {
  std::string reason = "expected memory states of tt-mlir's runtime";
  if (status_.unreadable != 0) reason += "; " + status_.first_unreadable;
  if (status_.without_state != 0) {
    reason += ": there are operations (" + status_.first_without_state +
              "), but no state before any; set TT_RUNTIME_MEMORY_LOG_LEVEL=operation";
  } else {
    reason += " ('Device memory state before operation ...' in a build with TT_RUNTIME_DEBUG=ON)";
  }
  detail::raise_about_file("read", path_, reason);
}

std::vector<std::string> remarks_on(const tt_log_source& source) {
  std::vector<std::string> remarks;
  const tt_log_status& status = source.status();
  for (const missing_source& each : source.unseen())
    remarks.push_back("what " + each.source + " allocated is unknown: " + each.reason);
  if (status.without_state != 0) {
    remarks.push_back("operations without a state before them: " + std::to_string(status.without_state) + ", the first " +
                      status.first_without_state + "; what they allocated is attributed to the operation before");
  }
  if (status.unreadable != 0) {
    remarks.push_back("unreadable lines skipped: " + std::to_string(status.unreadable) + ", the first " +
                      status.first_unreadable);
  }
  return remarks;
}

tt_reading read_tt_log(std::FILE* file, const std::filesystem::path& path, trace& target, std::uint32_t operations) {
  tt_log_source source{file, path};
  extend::capture_info info = tt_log_source::info();
  info.operations = operations;
  extend::trace_writer writer{target, info};
  writer.finish(source.write_to(writer));
  return {remarks_on(source), source.status().damage, is_whole(source.status())};
}

}  // namespace memprof::inline MEMPROF_ABI
