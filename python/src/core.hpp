#pragma once

#include <nanobind/nanobind.h>

#include <memprof/trace/category.hpp>

#include <string>

/// @file
/// The parts of the extension module `memprof._core`.

namespace memprof_python {

namespace nb = nanobind;

/// The category with that name; none for an empty name. Raises ValueError for any other.
[[nodiscard]] memprof::optional_category category_of(const std::string& name);

/// `Profile` and the classes of its fields, reading and comparing profiles, text and JSON.
void bind_profiles(nb::module_& module);

/// `Table`: rows for data frames.
void bind_tables(nb::module_& module);

/// `Trace`: what a trace knows beyond its profile.
void bind_traces(nb::module_& module);

/// `Capture`, and the calls that mark what a program does.
void bind_captures(nb::module_& module);

/// Reading recordings of any kind.
void bind_recordings(nb::module_& module);

/// Reading the recordings of other tools.
void bind_imports(nb::module_& module);

/// Accounts of one step side by side.
void bind_waterfalls(nb::module_& module);

/// Comparing runs and merging the ranks of a job.
void bind_comparisons(nb::module_& module);

/// Checking a run against limits and a baseline.
void bind_checks(nb::module_& module);

/// Estimates of decoders.
void bind_estimates(nb::module_& module);

/// What the package asks of a simulation (NO_DISPATCH).
void bind_simulation(nb::module_& module);

/// Functions that stand before others without being seen.
void bind_frameless_calls(nb::module_& module);

}  // namespace memprof_python
