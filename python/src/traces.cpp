#include "traces.hpp"

#include "core.hpp"
#include "exports.hpp"
#include "path_argument.hpp"
#include "table.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/analysis/allocation_sequence.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/toolkit/analysis/memory_fit_text.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/analysis/memory_prediction_text.hpp>
#include <memprof/toolkit/page/html.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/trace/cuda_context.hpp>
#include <memprof/trace/trace_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace memprof_python {

recorded_trace::recorded_trace(const std::filesystem::path& path) {
  memprof::detail::file_handle handle{std::fopen(path.c_str(), "rb")};
  if (!handle) memprof::detail::raise_about_file("read", path, memprof::detail::reason_in_errno());
  if (!memprof::is_trace_file(handle.get())) memprof::detail::raise_about_file("read", path, "it is not a trace");
  source_ = std::make_unique<file>(std::move(handle), path);
}

namespace {

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

template <class Source>
constexpr bool is_file = std::is_same_v<Source, recorded_trace::file>;

/// Calls `use(view)` with the trace as a `trace_source_view`.
template <class Use>
decltype(auto) with_view(const recorded_trace& self, Use&& use) {
  return self.read([&]<class Source>(const Source& source) -> decltype(auto) {
    if constexpr (is_file<Source>) {
      return use(memprof::trace_source_view{source.trace});
    } else {
      return use(memprof::trace_source_view{source});
    }
  });
}

[[nodiscard]] memprof::profile profile_of(const recorded_trace& self, bool lifetimes) {
  const memprof::facets asked = lifetimes ? memprof::facets::all : memprof::facets::none;
  return self.read([&]<class Source>(const Source& source) {
    if constexpr (is_file<Source>) {
      std::rewind(source.handle.get());
      memprof::trace_file_status status;
      return memprof::profile_of(source.handle.get(), source.path, status, 0, asked);
    } else {
      return memprof::profile_of(source, asked);
    }
  });
}

void write_html(const recorded_trace& self, const path_argument& path, const std::string& title) {
  memprof::html_options options{.title = title};
  options.calls_of_stack = memprof::calls_by_name();
  const auto note_damage = [](const memprof::trace_file_status& status, bool, memprof::html_options& page) {
    if (!status.damage.empty()) page.notes.push_back(status.damage + "; everything before that was read");
  };
  self.read([&]<class Source>(const Source& source) {
    if constexpr (is_file<Source>) {
      std::rewind(source.handle.get());
      (void)memprof::write_html_of_trace_file(source.handle.get(), source.path, path, options, note_damage);
    } else {
      memprof::write_html(source, path, options);
    }
  });
}

void save(const recorded_trace& self, const path_argument& path) {
  self.read([&]<class Source>(const Source& source) {
    if constexpr (is_file<Source>) {
      memprof::detail::raise("the trace is already in the file '" + source.path.string() + "'; copy that");
    } else {
      memprof::write_trace(source, path);
    }
  });
}

/// What the caching allocator makes of the steps of a trace.
struct trace_fit {
  memprof::memory_fit fit;
  std::string operation;  ///< of the request that fails
};

[[nodiscard]] trace_fit fit_of(const recorded_trace& self, std::int64_t capacity, const std::string& space,
                               const std::string& alloc_conf, bool descending_addresses, std::int64_t context) {
  memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(alloc_conf);
  options.descending_addresses = descending_addresses;
  options.capacity = capacity;
  options.context = context;
  memprof::allocation_sequence sequence{std::string_view{space}};
  with_view(self, [&](const memprof::trace_source_view& source) { source.visit(sequence); });
  trace_fit result{memprof::fit_memory(sequence, options), {}};
  if (result.fit.first_failure) result.operation = memprof::operation_path(sequence, result.fit.first_failure->operation);
  return result;
}

/// The least, expected and most bytes of a context, and the source of the numbers.
using context_values = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>;

/// What the parts of a prediction add up to, and whether it fits.
struct trace_prediction {
  trace_fit judged;
  memprof::memory_prediction prediction;
  memprof::fit_certainty certainty;
};

[[nodiscard]] trace_prediction prediction_of(const recorded_trace& self, std::int64_t capacity, const context_values& context,
                                             const std::string& space, const std::string& alloc_conf, bool descending_addresses) {
  memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(alloc_conf);
  options.descending_addresses = descending_addresses;
  options.capacity = capacity;
  memprof::allocation_sequence sequence{std::string_view{space}};
  with_view(self, [&](const memprof::trace_source_view& source) { source.visit(sequence); });
  const memprof::profile run = profile_of(self, false);
  const memprof::space_profile* const found = run.find_space(space);
  const auto& [least, expected, most, source] = context;
  const memprof::cuda_context beside{least, expected, most, source};
  const memprof::space_profile none;
  memprof::predicted_fit fit = memprof::predict_fit(sequence, run, found == nullptr ? none : *found, options, beside);
  trace_prediction result{{std::move(fit.fit), {}}, std::move(fit.prediction), fit.certainty};
  if (result.judged.fit.first_failure) {
    result.judged.operation = memprof::operation_path(sequence, result.judged.fit.first_failure->operation);
  }
  return result;
}

void bind_prediction(nb::module_& module) {
  module.def(
      "_cuda_context",
      [](const std::string& device) {
        const memprof::cuda_context found = memprof::cuda_context_of(device_named(device));
        return context_values{found.least, found.expected, found.most, std::string{found.source}};
      },
      "device"_a, "What a process holds of a CUDA device besides its allocator's memory: least, expected and most bytes, source.");
  nb::class_<trace_prediction>(module, "_Prediction")
      .def_prop_ro("fit", [](const trace_prediction& self) { return self.judged; })
      .def_prop_ro("total", [](const trace_prediction& self) { return self.prediction.bytes(); })
      .def_prop_ro("beside", [](const trace_prediction& self) { return self.prediction.beside_blocks(); })
      .def_prop_ro("certainty",
                   [](const trace_prediction& self) {
                     return std::string{memprof::fit_certainty_names[static_cast<std::size_t>(self.certainty)]};
                   })
      .def_prop_ro("parts",
                   [](const trace_prediction& self) {
                     std::vector<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::string>> rows;
                     for (const memprof::predicted_memory& part : self.prediction.parts) {
                       rows.emplace_back(part.part, part.bytes, part.least_bytes, part.most_bytes, part.source);
                     }
                     return rows;
                   })
      .def_prop_ro("parts_text", [](const trace_prediction& self) { return memprof::parts_text(self.prediction); })
      .def_prop_ro("uncertain_parts", [](const trace_prediction& self) { return memprof::uncertain_parts_text(self.prediction); })
      .def("uncertainty", [](const trace_prediction& self, std::int64_t spare) {
        return memprof::uncertainty_text(self.prediction, self.certainty, spare);
      }, "spare"_a);
}

void bind_fit(nb::module_& module) {
  nb::class_<trace_fit>(module, "MemoryFit", "Whether the steps of a trace fit, and what they need. In bytes.")
      .def_prop_ro("fits", [](const trace_fit& self) { return self.fit.fits(); })
      .def_prop_ro("capacity", [](const trace_fit& self) { return self.fit.capacity; })
      .def_prop_ro(
          "reserved", [](const trace_fit& self) { return self.fit.unlimited_stats.reserved_bytes.peak; },
          "The most that the allocator would reserve of a device without a limit.")
      .def_prop_ro(
          "allocated", [](const trace_fit& self) { return self.fit.unlimited_stats.allocated_bytes.peak; },
          "The most in blocks in use, including rounding.")
      .def_prop_ro(
          "fails_at", [](const trace_fit& self) { return self.operation; },
          "The path of the operation whose request fails; empty if none does, or no operation was open.")
      .def_prop_ro(
          "requested",
          [](const trace_fit& self) { return self.fit.first_failure ? self.fit.first_failure->requested : std::int64_t{0}; },
          "The size of the request that fails; 0: none does.")
      .def("__bool__", [](const trace_fit& self) { return self.fit.fits(); })
      .def("__str__", [](const trace_fit& self) { return memprof::to_text(self.fit, self.operation); });
}

}  // namespace

void bind_traces(nb::module_& module) {
  bind_fit(module);
  bind_prediction(module);
  nb::class_<recorded_trace>(module, "Trace",
                             "Every event of a capture: what profiles are folded from. In memory (`Capture.trace`) or in a file.")
      .def(
          "__init__", [](recorded_trace* self, const path_argument& path) { new (self) recorded_trace{path.path}; }, "path"_a)
      .def("profile", profile_of, nb::kw_only(), "lifetimes"_a = false, without_gil{},
           "The profile of the trace. With `lifetimes`, its spaces have `facets`, which takes several times as long.")
      .def("write_html", write_html, "path"_a, "title"_a = "", without_gil{},
           "Writes the page of the trace: who owned the memory at each moment, operations and blocks over time.")
      .def("save", save, "path"_a, without_gil{}, "Writes a trace in memory to a file, which `memprof show` and others read.")
      .def(
          "export",
          [](const recorded_trace& self, const std::string& format, const path_argument& path, const std::string& space,
             const std::string& run) {
            const memprof::profile profile = profile_of(self, false);
            return with_view(self, [&](const memprof::trace_source_view& events) {
              return write_export(profile, &events, {format, path, space, run});
            });
          },
          "format"_a, "path"_a, nb::kw_only(), "space"_a = "", "run"_a = "", without_gil{}, export_doc)
      .def(
          "table",
          [](const recorded_trace& self, const std::string& name, const std::string& run) {
            const memprof::profile profile = profile_of(self, false);
            return with_view(self, [&](const memprof::trace_source_view& events) {
              return table_of_json_lines(name, table_lines(profile, &events, name, run));
            });
          },
          "name"_a, nb::kw_only(), "run"_a = "", without_gil{},
          "A table of the run: 'runs', 'segments', 'operations', 'blocks' (every block ever allocated) or 'events'.")
      .def(
          "_predict", prediction_of, "capacity"_a, "context"_a, nb::kw_only(), "space"_a = "cuda:0", "alloc_conf"_a = "",
          "descending_addresses"_a = false, without_gil{})
      .def(
          "fit", fit_of, "capacity"_a, nb::kw_only(), "space"_a = "cuda:0", "alloc_conf"_a = "", "descending_addresses"_a = false,
          "context"_a = 0, without_gil{},
          "Replays the trace through a model of PyTorch's caching allocator on a device of `capacity` bytes; 0: without a limit. "
          "`alloc_conf` is a value of PYTORCH_CUDA_ALLOC_CONF. `descending_addresses` is for PyTorch up to 2.11, where the "
          "addresses that "
          "CUDA's driver hands out decide among free blocks of one size. `context` bytes of the device are not the allocator's.");
}

}  // namespace memprof_python
