#pragma once

#include "result.hpp"

#include <filesystem>

namespace bench {

/// Writes the report with all samples and what is needed for comparison with another one: machine, compiler, flags. Throws
/// `std::runtime_error` if the file cannot be written.
void write_json(const report& report, const plan& plan, const std::filesystem::path& path);

}  // namespace bench
