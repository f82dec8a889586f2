#pragma once

#include "core.hpp"
#include "traces.hpp"

namespace memprof_python {

/// The analyses that need every event, as methods of `Trace`. Their answers' classes come first.
void bind_answers_of_traces(nb::module_& module);
void bind_analyses(nb::class_<recorded_trace>& trace);

}  // namespace memprof_python
