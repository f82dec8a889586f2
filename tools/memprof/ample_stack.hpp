#pragma once

#include <functional>

namespace memprof_tool {

/// The result of `run`, which runs on a thread of its own where the stack of this one is limited (`ulimit -s`): elfutils puts
/// hundreds of kilobytes on it for the lines of a file.
int with_ample_stack(const std::function<int()>& run);

}  // namespace memprof_tool
