#include "core.hpp"

#include <nanobind/nanobind.h>

#include <memprof/detail/error.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/version.hpp>

#include <string>

namespace memprof_python {

memprof::optional_category category_of(const std::string& name) {
  const memprof::optional_category found = memprof::category_from_string(name);
  if (found.has_value() || name.empty()) return found;
  std::string known;
  for (const std::string_view each : memprof::detail::category_names) known += (known.empty() ? "" : ", ") + std::string{each};
  throw nb::value_error(("unknown category '" + name + "'; expected one of " + known).c_str());
}

}  // namespace memprof_python

NB_MODULE(_core, module) {
  // A program may end with profiles alive, in globals for example: no fault of its own.
  nanobind::set_leak_warnings(false);
  nanobind::exception<memprof::error>(module, "Error", PyExc_RuntimeError).doc() =
      "What a call of memprof could not do, and why.";
  module.attr("version") = memprof::version_string;
  memprof_python::bind_tables(module);
  memprof_python::bind_profiles(module);
  memprof_python::bind_traces(module);
  memprof_python::bind_recordings(module);
  memprof_python::bind_imports(module);
  memprof_python::bind_comparisons(module);
  memprof_python::bind_waterfalls(module);
  memprof_python::bind_checks(module);
  memprof_python::bind_estimates(module);
  memprof_python::bind_captures(module);
  memprof_python::bind_simulation(module);
  memprof_python::bind_frameless_calls(module);
}
