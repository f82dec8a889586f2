#pragma once

#include "result.hpp"

#include <string>

namespace bench {

/// The report as a table for people, with what was skipped below it.
[[nodiscard]] std::string to_table(const report& report);

}  // namespace bench
