#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tables/parquet.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// @file
/// Runs as tables that DuckDB, Polars, Spark or pandas can query directly: one file per table, CSV with a header, JSON lines or
/// Parquet.
/// The first column of each is the run's name, so that files of many runs form one table: `SELECT * FROM 'out/*/runs.csv'`.

namespace memprof::inline MEMPROF_ABI {

enum class table_format : std::uint8_t { csv, json_lines, parquet };

/// The rows of one table, all with the same columns.
class table_writer {
 public:
  table_writer(byte_sink_view out, table_format format) : out_(out), format_(format), parquet_(out) {}

  /// Takes the columns from a sample row added by `put`, so that a table without rows has them too; before the first row. A table
  /// of several runs takes them from the first.
  template <class Put>
  void header(Put&& put) {
    if (has_header_) return;
    is_header_ = has_header_ = true;
    put();
    is_header_ = false;
  }
  /// Adds a row of alternating columns and values: `row("run", name, "bytes", 12)`. Values are integers and texts.
  template <class... Cells>
  void row(const Cells&... cells) {
    static_assert(sizeof...(cells) % 2 == 0);
    if (format_ == table_format::parquet) {
      each([&](std::string_view column, const auto& value) { parquet_cell(column, value); }, cells...);
      if (!is_header_) parquet_.end_row();
      return;
    }
    line_.clear();
    if (is_header_) {
      if (format_ != table_format::csv) return;  // JSON lines repeat them in each line
      each([&](std::string_view column, const auto&) { next_cell() += column; }, cells...);
      return out_.write(line_ + '\n');
    }
    if (format_ == table_format::json_lines) line_ = '{';
    each([&](std::string_view column, const auto& value) { cell(column, value); }, cells...);
    if (format_ == table_format::json_lines) line_ += '}';
    line_ += '\n';
    out_.write(line_);
  }
  /// After the last row.
  void finish() {
    if (format_ == table_format::parquet) parquet_.finish();
  }

 private:
  template <class Visit, class Value, class... Rest>
  static void each(Visit&& visit, std::string_view column, const Value& value, const Rest&... rest) {
    visit(column, value);
    if constexpr (sizeof...(rest) != 0) each(visit, rest...);
  }

  /// The place of the next cell in the line.
  [[nodiscard]] std::string& next_cell();
  /// Writes the column's name where the format repeats it.
  void begin_cell(std::string_view column);
  void append_text(std::string_view text);

  template <class Value>
  void cell(std::string_view column, const Value& value) {
    begin_cell(column);
    if constexpr (std::is_same_v<Value, bool>) {
      line_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<Value>) {
      line_ += std::to_string(value);
    } else {
      append_text(value);
    }
  }

  /// Numbers are signed: those above 2^63, which no address or size is, become negative.
  template <class Value>
  void parquet_cell(std::string_view column, const Value& value) {
    using kind = detail::parquet_file::type;
    constexpr bool is_number = std::is_integral_v<Value>;
    if (is_header_) {
      parquet_.add_column(column, std::is_same_v<Value, bool> ? kind::boolean : is_number ? kind::number : kind::text);
    } else if constexpr (std::is_same_v<Value, bool>) {
      parquet_.add(value);
    } else if constexpr (is_number) {
      parquet_.add(static_cast<std::int64_t>(value));
    } else {
      parquet_text(value);
    }
  }
  void parquet_text(std::string_view text);

  byte_sink_view out_;
  table_format format_;
  bool is_header_ = false;
  bool has_header_ = false;
  std::string line_;
  detail::parquet_file parquet_;
};

/// `runs`: a row for each memory space of a run, with its totals and peak.
void write_runs_table(const profile& source, std::string_view run, table_writer& out);

/// What identifies a run besides its name: the commit it was built from, the branch, a batch size.
struct run_label {
  std::string name;
  std::string value;
};

/// `labels`: a row for each label of the run, to be joined with the other tables by `run` and `rank`. Values are texts.
void write_labels_table(const profile& source, std::string_view run, const std::vector<run_label>& labels, table_writer& out);

/// `segments`: a row for each memory space of each segment.
void write_segments_table(const profile& source, std::string_view run, table_writer& out);

/// `operations`: a row for each memory space of each operation path. The `self_` columns of a space add up to what was allocated
/// in operations; `peak_bytes` is what the operation itself had live at the space's peak.
void write_operations_table(const profile& source, std::string_view run, table_writer& out);

namespace detail {

/// The parts of an annotation.
struct annotation_parts {
  std::string_view parts[4];  ///< name, shape, dtype, requires_grad

  explicit annotation_parts(std::string_view text);
};

}  // namespace detail

/// `blocks` and `events` of a trace: a row for each block ever allocated, with its operation, category and name and the time it
/// was freed; and a row for each event. Two passes; takes memory for what is live.
void write_block_tables(const trace_source_view& source, std::string_view run, table_writer& blocks, table_writer& events);

/// `blocks` of a profile: the largest at each space's peak, the only single blocks a profile knows.
void write_block_table(const profile& source, std::string_view run, table_writer& out);

}  // namespace memprof::inline MEMPROF_ABI
