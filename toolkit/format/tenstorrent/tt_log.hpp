#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_survey.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_walk.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/block_address.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/space_id.hpp>
#include <memprof/version.hpp>

#include <algorithm>
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

/// "1x768" in the form used by blocks: "[1, 768]".
[[nodiscard]] inline std::string shape_text(std::string_view shape) {
  std::string text = "[";
  for (const char character : shape) character == 'x' ? text.append(", ") : text.append(1, character);
  return text + ']';
}

/// The element type and memory layout of a tensor: "bf16 tile dram interleaved", as far as the type shows it.
[[nodiscard]] inline std::string tensor_layout_text(const mlir_tensor& tensor, std::string_view type) {
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
template <recorded_event_writer Writer>
class tt_log_writer {
 public:
  tt_log_writer(tt_log_survey& survey, Writer& writer) : survey_(survey), writer_(writer) {}

  void on_rank(const tt_rank& rank) {
    if (rank_ == rank.index) return;
    rank_ = rank.index;
    writer_.on_thread(static_cast<std::uint32_t>(rank.index + 1), rank.number.empty() ? "device" : "rank " + rank.number, 0);
  }
  void enter(std::string_view name) { open_[rank_].push_back(writer_.begin_operation(name, {})); }
  void leave() {
    auto& open = open_[rank_];
    if (open.empty()) return;
    writer_.end_operation(open.back());
    open.pop_back();
  }
  void end_segment(std::string_view name) { writer_.end_segment(name); }
  void next_state() { writer_.at(1000 * ++states_); }
  void state(const tt_rank& rank, std::size_t memory, const tt_memory_view& view, std::string_view, std::uint64_t) {
    const std::pair key{rank.index, memory};
    if (const auto known = spaces_.find(key); known != spaces_.end()) {
      known->second.free = view.banks * bytes_of_mebibytes(view.free);
      return;
    }
    const std::int64_t capacity = view.banks * bytes_of_mebibytes(view.total);
    spaces_[key] = {writer_.space(tt_space_name(rank, memory), capacity), view.banks * bytes_of_mebibytes(view.free)};
  }

  void allocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& made, const tt_executed_operation* by) {
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
  void deallocate(const tt_rank& rank, std::size_t memory, const tt_blocks::block& from, std::int64_t part) {
    writer_.deallocate(spaces_[{rank.index, memory}].id, block_address{from.address}, static_cast<std::size_t>(part));
  }

  void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t) {
    const std::pair key{rank.index, failure.memory};
    if (spaces_.find(key) == spaces_.end())
      spaces_[key] = {writer_.space(tt_space_name(rank, failure.memory), product(failure.bank_size, failure.banks)), 0};
    const std::int64_t free = failure.free < 0 ? spaces_[key].free : product(failure.free, failure.banks);
    writer_.put_event({0, static_cast<std::uint64_t>(free), static_cast<std::uint64_t>(failure.requested), 0,
                       event_kind::out_of_memory, spaces_[key].id.value, 0});
  }
  void unseen(const tt_rank&, const tt_executed_operation&) {}

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
  Writer& writer_;
  std::size_t rank_ = ~std::size_t{0};
  std::map<std::size_t, std::vector<typename Writer::open_operation_type>> open_;
  std::int64_t states_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, written_space> spaces_;
};

}  // namespace detail

/// The log of tt-mlir's runtime as a source. The states before operations (`TT_RUNTIME_MEMORY_LOG_LEVEL=operation`) show what the
/// previous operation added to or took from each memory space; programs and operations are operations, and each outermost program
/// is a segment.
///
/// Levels are the log's: MiB per bank with three decimals, times banks. The log does not say whose bytes a decrease frees: for
/// `ttnn.deallocate` those of its input, else the newest block of that size, else the newest block. The file is read twice; it
/// takes memory for what is live, and 16 bytes for each block that is freed in parts. There are no times: each state counts as a
/// microsecond. If a log is cut off or has invalid lines, what precedes and surrounds them is kept, and the trace has a gap.
class tt_log_source {
 public:
  /// Reads the file for the first time. The caller keeps the file, which must be seekable. Raises an error with file and place if
  /// it has no states, or numbers that no device can have.
  tt_log_source(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
    detail::tt_log_walk<detail::tt_log_survey> walk{survey_, path_};
    detail::tt_log_lines<detail::tt_log_walk<detail::tt_log_survey>> lines{walk, path_};
    read(lines);
    walk.finish();
    survey_.splits.finish();
    status_ = lines.status();
    inputs_ = lines.registry().inputs();
    if (status_.states == 0 && survey_.failures.empty()) raise_without_states();
  }

  /// What its trace says about the capture.
  [[nodiscard]] static capture_info info() {
    capture_info made;
    made.library_version = version_string;
    made.operations = imported_operations;
    return made;
  }
  [[nodiscard]] const tt_log_status& status() const noexcept { return status_; }
  /// Arguments of the compiled module, if the log has a dump of it.
  [[nodiscard]] const std::vector<tt_input>& inputs() const noexcept { return inputs_; }
  /// Operations whose effect no state shows: the last one of each rank.
  [[nodiscard]] const std::vector<missing_source>& unseen() const noexcept { return survey_.missing; }
  /// Peaks and fragmentation of each space.
  [[nodiscard]] std::vector<tt_memory_fact> memories() const { return survey_.memories(); }

  /// Writes everything to a `trace_writer` except the end: call `writer.finish` with the returned value. Reads the file for the
  /// second time.
  template <recorded_event_writer Writer>
  [[nodiscard]] std::string write_to(Writer& writer) {
    add_facts(writer);
    detail::tt_log_writer<Writer> target{survey_, writer};
    detail::tt_log_walk<detail::tt_log_writer<Writer>> walk{target, path_};
    detail::tt_log_lines<detail::tt_log_walk<detail::tt_log_writer<Writer>>> lines{walk, path_};
    read(lines);
    walk.finish();
    if (!is_whole(status_)) writer.put_event({0, 0, 1, 0, event_kind::gap, any_space, 0});  // one or more events
    return walk.last_segment();
  }

 private:
  template <class Lines>
  void read(Lines& lines) {
    std::rewind(file_);
    detail::read_tt_lines(file_, path_, lines);
  }

  template <class Writer>
  void add_facts(Writer& writer) const {
    constexpr std::size_t max_inputs = 4096;
    std::vector<tt_input_fact> rows;
    for (const tt_input& input : inputs_) {
      if (rows.size() < max_inputs) rows.push_back({input.ssa, input.name, input.type, input.shape, input.dtype, input.bytes});
    }
    const auto add = [&](const auto& table) {
      if (!table.empty()) writer.add_facts(to_table(table));
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

  [[noreturn]] void raise_without_states() const {
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

  std::FILE* file_;
  std::filesystem::path path_;
  detail::tt_log_survey survey_;
  tt_log_status status_;
  std::vector<tt_input> inputs_;
};

/// What a user of a log should know besides its numbers, a sentence each.
[[nodiscard]] inline std::vector<std::string> remarks_on(const tt_log_source& source) {
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

}  // namespace memprof::inline MEMPROF_ABI
