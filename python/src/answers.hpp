#pragma once

#include "core.hpp"
#include "reflected_class.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memprof/profile/json.hpp>
#include <memprof/report/text/text_options.hpp>

#include <cstddef>
#include <string>

namespace memprof_python {

/// What every answer of an analysis has besides its fields: its text, its JSON, its verdict.
template <class T>
nb::class_<T> bind_answer(nb::module_& module, const char* doc) {
  using namespace nb::literals;
  nb::class_<T> bound = bind_struct<T>(module);
  bound.doc() = doc;
  bound
      .def(
          "json", [](const T& self) { return memprof::detail::dump(to_json(self)); }, "The whole answer as JSON text.")
      .def(
          "verdict", [](const T& self) { return verdict_of(self); }, "What the text says first, on one line.");
  if constexpr (requires(const T& self) { to_text(self, memprof::text_options{}, true); }) {
    bound
        .def(
            "text",
            [](const T& self, std::size_t columns, bool all_rows) { return to_text(self, {.columns = columns}, all_rows); },
            "columns"_a = 100, "all_rows"_a = false, "The answer for people, in lines of at most `columns` columns.")
        .def("__str__", [](const T& self) { return to_text(self, memprof::text_options{}); });
  }
  if constexpr (requires(const T& self) { caveats_of(self); }) {
    bound.def(
        "caveats", [](const T& self) { return caveats_of(self); }, "What makes the numbers less than exact, a sentence each.");
  }
  return bound;
}

}  // namespace memprof_python
