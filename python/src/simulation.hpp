#pragma once

#include <memprof/trace/device_description.hpp>

#include <string>

namespace memprof_python {

/// The device with a name: "cuda" for one without limits, a preset's, or a file's; none for "". Throws `memprof::error` for
/// others.
[[nodiscard]] memprof::device_description device_named(const std::string& name);

}  // namespace memprof_python
