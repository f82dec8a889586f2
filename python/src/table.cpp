#include "table.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/trace/fact_table.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace memprof_python {
namespace {

/// Adds the cells of row after row. The first row says which columns there are, and of which kind.
class table_builder {
 public:
  explicit table_builder(std::string name) : built_(std::make_shared<table>()) { built_->name = std::move(name); }

  void begin_row() noexcept { column_ = 0; }
  void end_row() noexcept { ++built_->rows; }
  void integer(std::string_view column, std::int64_t value) { in<integer_values>(column).values.push_back(value); }
  void real(std::string_view column, double value) { in<real_values>(column).values.push_back(value); }
  void truth(std::string_view column, bool value) {
    auto& [bits, count] = in<truth_values>(column);
    if (count % 8 == 0) bits.push_back(0);
    bits.back() = static_cast<std::uint8_t>(bits.back() | static_cast<unsigned>(value) << count % 8);
    ++count;
  }
  void text(std::string_view column, std::string_view value) {
    auto& [ends, bytes] = in<text_values>(column);
    bytes += value;
    ends.push_back(static_cast<std::int64_t>(bytes.size()));
  }

  [[nodiscard]] std::shared_ptr<const table> finish() && { return std::move(built_); }

 private:
  template <class Values>
  Values& in(std::string_view name) {
    if (built_->rows == 0) built_->columns.push_back({std::string{name}, Values{}});
    if (column_ < built_->columns.size()) {
      table_column& column = built_->columns[column_++];
      if (auto* const values = std::get_if<Values>(&column.values); values != nullptr && column.name == name) return *values;
    }
    memprof::detail::raise("table '" + built_->name + "': the values of the column '" + std::string{name} +
                           "' are not of one kind in all rows");
  }

  std::shared_ptr<table> built_;
  std::size_t column_ = 0;
};

/// Adds what nlohmann's parser finds in one line.
class line_handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit line_handler(table_builder& rows) : rows_(rows) {}

  bool start_object(std::size_t) override { return rows_.begin_row(), true; }
  bool end_object() override { return rows_.end_row(), true; }
  bool key(string_t& name) override { return column_ = name, true; }
  bool number_integer(number_integer_t value) override { return rows_.integer(column_, value), true; }
  // The address of a block may exceed 63 bits; its bits are what matters.
  bool number_unsigned(number_unsigned_t value) override {
    return rows_.integer(column_, static_cast<std::int64_t>(value)), true;
  }
  bool number_float(number_float_t value, const string_t&) override { return rows_.real(column_, value), true; }
  bool boolean(bool value) override { return rows_.truth(column_, value), true; }
  bool string(string_t& value) override { return rows_.text(column_, value), true; }
  bool null() override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& fault) override {
    memprof::detail::raise(fault.what());
  }

 private:
  table_builder& rows_;
  std::string column_;
};

}  // namespace

std::shared_ptr<const table> table_of_json_lines(std::string name, std::string_view lines) {
  table_builder rows{std::move(name)};
  line_handler handler{rows};
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + (line.size() < lines.size() ? 1 : 0));
    nlohmann::json::sax_parse(line, &handler);
  }
  return std::move(rows).finish();
}

std::shared_ptr<const table> table_of_facts(const memprof::fact_table& facts, std::string_view run) {
  table_builder rows{facts.name};
  for (const auto& values : facts.rows) {
    rows.begin_row();
    rows.text("run", run);
    std::size_t column = 0;
    for (const memprof::fact_value& value : values) {
      const std::string& name = facts.columns[column++];
      std::visit(
          [&]<class Cell>(const Cell& cell) {
            if constexpr (std::is_same_v<Cell, std::string>) {
              rows.text(name, cell);
            } else if constexpr (std::is_same_v<Cell, double>) {
              rows.real(name, cell);
            } else {
              rows.integer(name, cell);
            }
          },
          value);
    }
    rows.end_row();
  }
  return std::move(rows).finish();
}

std::shared_ptr<const table> timeline_table(const memprof::profile& of, std::string_view run) {
  table_builder rows{"timeline"};
  for (const memprof::space_profile& space : of.spaces) {
    for (const memprof::timeline_point& point : space.timeline.points) {
      rows.begin_row();
      rows.text("run", run);
      rows.text("space", space.name);
      rows.integer("time_ns", point.time_ns);
      rows.integer("peak_bytes", point.peak);
      rows.integer("live_bytes", point.current);
      rows.end_row();
    }
  }
  return std::move(rows).finish();
}

}  // namespace memprof_python
