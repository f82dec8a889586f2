#pragma once

#include <memprof/toolkit/analysis/hlo_attribution.hpp>

#include <string>

namespace memprof_tool {

/// Reads the rules in a TOML file; an empty `path` gives the default rules. Throws `memprof::error`, naming the line at fault.
///
///     gradients = 'transpose\(jvp'      # pattern that occurs only in training
///     [[class]]                         # the first class that matches a block wins
///     name = "kv_cache"
///     op_name = '^init_carry\[[23]\]$'
///     group = "Parameter"               # or Output, Temporary, Thread-local, Constant, any; default: Parameter
///     category = "kv_cache"             # in traces; default: the class's name if that is a category, else other
[[nodiscard]] memprof::hlo_class_rules read_class_rules(const std::string& path);

}  // namespace memprof_tool
