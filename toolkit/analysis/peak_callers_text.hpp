#pragma once

#include <memprof/config.hpp>
#include <memprof/report/text/text_options.hpp>
#include <memprof/toolkit/analysis/peak_callers.hpp>

#include <string>

namespace memprof::inline MEMPROF_ABI {

/// A table of who asked for what was live at the peak, most first, with `text_options::owners` rows and one for the rest. Numbers
/// of a sample are marked as estimates, with their standard errors. Empty if there is nothing to say.
[[nodiscard]] std::string to_text(const peak_callers& of, const text_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
