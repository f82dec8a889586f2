#pragma once

#include "result.hpp"

#include <string>

namespace bench {

/// The report as a text table, followed by what was skipped.
[[nodiscard]] std::string to_table(const report& report);

}  // namespace bench
