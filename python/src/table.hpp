#pragma once

#include <memprof/profile/profile.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace memprof_python {

/// The values of a column, laid out as Arrow wants them.
struct integer_values {
  std::vector<std::int64_t> values;
};
struct real_values {
  std::vector<double> values;
};
struct truth_values {
  std::vector<std::uint8_t> bits;  ///< eight rows a byte, the first in the lowest bit
  std::size_t count = 0;
};
struct text_values {
  std::vector<std::int64_t> ends{0};  ///< of each text in `bytes`, after a 0
  std::string bytes;
};

struct table_column {
  std::string name;
  std::variant<integer_values, real_values, truth_values, text_values> values;
};

/// Rows by column, as in a data frame.
struct table {
  std::string name;
  std::size_t rows = 0;
  std::vector<table_column> columns;
};

/// The rows in JSON lines, which all have the same keys, with values of one kind for each.
[[nodiscard]] std::shared_ptr<const table> table_of_json_lines(std::string name, std::string_view lines);

/// The rows of a table of facts, after a column `run` with that name.
[[nodiscard]] std::shared_ptr<const table> table_of_facts(const memprof::fact_table& facts, std::string_view run);

/// What each memory space held over time: a row for each point of its timeline.
[[nodiscard]] std::shared_ptr<const table> timeline_table(const memprof::profile& of, std::string_view run);

}  // namespace memprof_python
