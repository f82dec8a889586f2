#pragma once

#include <memprof/config.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/trace/fact_table.hpp>

#include <cstddef>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// A table of facts with at most `max_rows` rows, in at most `text_options::columns` columns; one with more columns of its own is
/// divided into several, one below the other. The names of its columns give the units of their numbers: "..._ns" are times;
/// "bytes", "..._bytes", "..._memory" and "..._size" are bytes.
[[nodiscard]] std::string to_text(const fact_table& table, std::size_t max_rows, const text_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
