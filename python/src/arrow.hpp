#pragma once

#include "table.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace memprof_python {

/// The table as a capsule with an `ArrowArrayStream`, of one batch: Arrow's C stream interface, by which pandas, Polars, DuckDB
/// and pyarrow take it without a copy. https://arrow.apache.org/docs/format/CStreamInterface.html
[[nodiscard]] nanobind::capsule arrow_stream_of(std::shared_ptr<const table> rows);

}  // namespace memprof_python
