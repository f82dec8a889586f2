#pragma once

#include <memprof/analysis/hlo_attribution.hpp>

#include <string>

namespace memprof_tool {

/// The rules of a TOML file; the default ones if `path` is empty. Throws `memprof::error` with the line of what is wrong.
///
///     gradients = 'transpose\(jvp'      # pattern of words that only training has
///     [[class]]                         # a block is of the first class that fits
///     name = "kv_cache"
///     op_name = '^init_carry\[[23]\]$'
///     group = "Parameter"               # or Output, Temporary, Thread-local, Constant, any; Parameter if it is left out
///     category = "kv_cache"             # in traces; the class's name if that is one, else other
[[nodiscard]] memprof::hlo_class_rules read_class_rules(const std::string& path);

}  // namespace memprof_tool
