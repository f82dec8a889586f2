#include "arrow.hpp"
#include "core.hpp"
#include "table.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;

/// The value in a row of a column.
struct cell_at {
  std::size_t row;

  nb::object operator()(const integer_values& column) const { return nb::cast(column.values[row]); }
  nb::object operator()(const real_values& column) const { return nb::cast(column.values[row]); }
  nb::object operator()(const truth_values& column) const { return nb::cast((column.bits[row / 8] >> row % 8 & 1) != 0); }
  nb::object operator()(const text_values& column) const {
    const auto begin = static_cast<std::size_t>(column.ends[row]);
    return nb::str(column.bytes.data() + begin, static_cast<std::size_t>(column.ends[row + 1]) - begin);
  }
};

[[nodiscard]] nb::list column_of(const table& self, const std::string& name) {
  for (const table_column& column : self.columns) {
    if (column.name != name) continue;
    nb::list cells;
    for (std::size_t row = 0; row < self.rows; ++row) cells.append(std::visit(cell_at{row}, column.values));
    return cells;
  }
  throw nb::key_error(name.c_str());
}

[[nodiscard]] nb::list rows_of(const table& self) {
  nb::list rows;
  for (std::size_t row = 0; row < self.rows; ++row) {
    nb::dict cells;
    for (const table_column& column : self.columns) {
      cells[nb::str(column.name.data(), column.name.size())] = std::visit(cell_at{row}, column.values);
    }
    rows.append(cells);
  }
  return rows;
}

[[nodiscard]] std::vector<std::string> names_of(const table& self) {
  std::vector<std::string> names;
  for (const table_column& column : self.columns) names.push_back(column.name);
  return names;
}

[[nodiscard]] nb::object to_pandas(const table& self) {
  nb::dict columns;
  for (const table_column& column : self.columns) {
    columns[nb::str(column.name.data(), column.name.size())] = column_of(self, column.name);
  }
  return nb::module_::import_("pandas").attr("DataFrame")(columns);
}

}  // namespace

void bind_tables(nb::module_& module) {
  nb::class_<table>(
      module, "Table",
      "Rows of a run, for data frames: pandas.DataFrame.from_arrow, polars.DataFrame, pyarrow.table and DuckDB take it "
      "as it is, through Arrow's C stream interface.")
      .def_ro("name", &table::name)
      .def_prop_ro("columns", names_of)
      .def("__len__", [](const table& self) { return self.rows; })
      .def("__getitem__", column_of, "column"_a,
           nb::sig("def __getitem__(self, column: str) -> list[int] | list[float] | list[bool] | list[str]"),
           "The values of a column.")
      .def("rows", rows_of, nb::sig("def rows(self) -> list[dict[str, int | float | bool | str]]"),
           "The rows, a dictionary each.")
      .def("to_pandas", to_pandas, nb::sig("def to_pandas(self) -> pandas.DataFrame"))
      .def(
          "__arrow_c_stream__", [](std::shared_ptr<const table> self, nb::handle) { return arrow_stream_of(std::move(self)); },
          "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"))
      .def("__repr__", [](const table& self) {
        return "<memprof.Table '" + self.name + "', " + std::to_string(self.rows) + " rows, " +
               std::to_string(self.columns.size()) + " columns>";
      });
}

}  // namespace memprof_python
