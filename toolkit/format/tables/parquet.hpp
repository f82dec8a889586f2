#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// How a file begins: with Parquet's mark, and with one of memprof's, which readers skip as they go by the offsets at the end.
inline constexpr std::string_view parquet_begin = "PAR1memprof\n";

/// A table in Apache Parquet (https://parquet.apache.org/docs/file-format), for DuckDB, Spark, pandas and whatever else reads
/// columns. Columns are whole numbers of 64 bits, booleans or UTF-8, and none is null. A column of few different values in a
/// stretch of rows is written as their numbers in a dictionary; nothing is compressed further.
///
/// Written here, not by Arrow's library: that is in few distributions, and these tables need a small part of the format.
/// Memory holds one stretch of rows.
class parquet_file {
 public:
  enum class type : std::uint8_t { boolean, number, text };

  explicit parquet_file(byte_sink_view out) : out_(out) {}

  /// Before the first row.
  void add_column(std::string_view name, type of);
  /// The values of a row, one a column in their order; then `end_row`.
  void add(std::int64_t value);
  void add(bool value) { add(std::int64_t{value ? 1 : 0}); }
  void add(std::string_view utf8);
  void end_row();
  /// After the last row, even if there was none. Without it the file cannot be read.
  void finish();

 private:
  struct column {
    std::string name;
    type of = type::number;
    std::vector<std::int64_t> numbers;    ///< of the stretch; of a text, its number in the dictionary
    std::vector<std::string_view> texts;  ///< the dictionary: keys of `number_of`
    std::unordered_map<std::string, std::int64_t> number_of;
  };
  /// Where a column's bytes of a stretch are.
  struct chunk {
    std::int64_t dictionary_offset = -1;  ///< -1: none
    std::int64_t data_offset = 0;
    std::int64_t bytes = 0;
    std::int64_t rows = 0;
  };

  void write(std::string_view bytes);
  void end_stretch();
  [[nodiscard]] chunk write_chunk(const column& of);
  void write_page(std::string_view values, std::int64_t count, int encoding, bool is_dictionary);
  [[nodiscard]] std::string schema_element(const column& of) const;

  byte_sink_view out_;
  std::int64_t written_ = 0;
  std::vector<column> columns_;
  std::size_t next_ = 0;        ///< the column of the next value
  std::size_t rows_ = 0;        ///< of the stretch
  std::size_t text_bytes_ = 0;  ///< in its dictionaries
  std::int64_t all_rows_ = 0;
  std::vector<std::string> row_groups_;  ///< their descriptions, for the end of the file
};

}  // namespace memprof::inline MEMPROF_ABI::detail
