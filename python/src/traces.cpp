#include "traces.hpp"

#include "core.hpp"
#include "exports.hpp"
#include "path_argument.hpp"
#include "simulation.hpp"
#include "table.hpp"
#include "trace_analyses.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
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
#include <memprof/trace/trace_file.hpp>
#if MEMPROF_PYTHON_ZSTD
#include <memprof/trace/trace_zstd.hpp>  // lets every call read packed traces
#endif

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace memprof_python {

recorded_trace::recorded_trace(const std::filesystem::path& path) {
  memprof::detail::file_handle handle{std::fopen(path.c_str(), "rb")};
  if (!handle) memprof::detail::raise_about_file("read", path, memprof::detail::reason_in_errno());
  if (!memprof::is_trace_file(handle.get())) memprof::detail::raise_about_file("read", path, "it is not a trace");
  source_ = std::make_unique<file>(std::move(handle), path);
}

std::string recorded_trace::file_name() const {
  const auto* const in_file = std::get_if<std::unique_ptr<file>>(&source_);
  return in_file == nullptr ? std::string{} : (*in_file)->path.string();
}

memprof::profile profile_of(const recorded_trace& self, bool lifetimes, std::uint32_t full_segments) {
  const memprof::facets asked = lifetimes ? memprof::facets::all : memprof::facets::none;
  return self.read([&]<class Source>(const Source& source) {
    if constexpr (is_file<Source>) {
      std::rewind(source.handle.get());
      memprof::trace_file_status status;
      return memprof::profile_of(source.handle.get(), source.path, status, full_segments, asked);
    } else {
      return memprof::profile_of(source, asked);
    }
  });
}

namespace {

#if MEMPROF_PYTHON_ZSTD
/// Packs a trace's file in its place.
void pack_file(const std::filesystem::path& path) {
  const memprof::detail::file_handle whole{std::fopen(path.c_str(), "rb")};
  if (!whole) memprof::detail::raise_about_file("read", path, memprof::detail::reason_in_errno());
  memprof::repack_trace(whole.get(), path, path);
}
#endif

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

/// Nothing for which the events must be read.
[[nodiscard]] std::string representation_of(const recorded_trace& self) {
  return self.read([]<class Source>(const Source& source) -> std::string {
    if constexpr (is_file<Source>) {
      std::error_code ignored;
      const std::uintmax_t bytes = std::filesystem::file_size(source.path, ignored);
      const std::string size = ignored ? "gone" : std::to_string(bytes) + " bytes";
      return "<memprof.Trace '" + source.path.string() + "', " + size + '>';
    } else {
      return "<memprof.Trace in memory, " + std::to_string(source.size()) + " events>";
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

/// Writes a trace as a file, its chunks packed with zstd or not.
void copy_trace(const recorded_trace& self, const std::filesystem::path& path, bool packs) {
#if !MEMPROF_PYTHON_ZSTD
  if (packs)
    memprof::detail::raise(
        "this memprof was built without zstd, which packs traces; install libzstd (libzstd-dev on Debian) and reinstall it");
#endif
  self.read([&]<class Source>(const Source& source) {
    if constexpr (is_file<Source>) {
      std::error_code ignored;
      if (std::filesystem::equivalent(source.path, path, ignored))
        memprof::detail::raise("'" + path.string() + "' is the trace itself; choose another name");
      std::rewind(source.handle.get());
#if MEMPROF_PYTHON_ZSTD
      memprof::repack_trace(source.handle.get(), source.path, path, packs);
#else
      std::filesystem::copy_file(source.path, path, std::filesystem::copy_options::overwrite_existing);
#endif
    } else {
      memprof::write_trace(source, path);
#if MEMPROF_PYTHON_ZSTD
      if (packs) pack_file(path);
#endif
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

[[nodiscard]] std::vector<std::string> export_trace(const recorded_trace& self, const export_request& asked) {
  if (asked.format == "trace" || asked.format == "packed-trace") {
    copy_trace(self, asked.path, asked.format == "packed-trace");
    return {};
  }
  const memprof::profile profile = profile_of(self);
  return with_view(self, [&](const memprof::trace_source_view& events) { return write_export(profile, &events, asked); });
}

/// What the caching allocator makes of the steps of a trace.
struct trace_fit {
  memprof::memory_fit fit;
  std::string operation;  ///< of the request that fails
};

[[nodiscard]] trace_fit fit_of(const recorded_trace& self, std::int64_t capacity, const std::string& space,
                               const std::string& alloc_conf, bool descending_addresses) {
  memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(alloc_conf);
  options.descending_addresses = descending_addresses;
  options.capacity = capacity;
  memprof::allocation_sequence sequence{std::string_view{space}};
  with_view(self, [&](const memprof::trace_source_view& source) { source.visit(sequence); });
  trace_fit result{memprof::fit_memory(sequence, options), {}};
  if (result.fit.first_failure) result.operation = memprof::operation_path(sequence, result.fit.first_failure->operation);
  return result;
}

/// What the parts of a run on a device are, and whether it fits.
struct trace_prediction {
  memprof::predicted_fit judged;
  std::string operation;  ///< of the request that fails
};

[[nodiscard]] trace_prediction prediction_of(const recorded_trace& self, const std::string& device,
                                             std::optional<std::int64_t> context, const std::string& space,
                                             const std::string& alloc_conf) {
  memprof::allocation_sequence sequence{std::string_view{space}};
  with_view(self, [&](const memprof::trace_source_view& source) { source.visit(sequence); });
  const memprof::caching_allocator_options options = memprof::parse_cuda_alloc_conf(alloc_conf);
  trace_prediction result{memprof::predict_fit(sequence, profile_of(self, false), space, device_named(device), options, context),
                          {}};
  const std::optional<memprof::failed_allocation>& failure = result.judged.fit.first_failure;
  if (failure) result.operation = memprof::operation_path(sequence, failure->operation);
  return result;
}

void bind_prediction(nb::module_& module) {
  using row = std::tuple<std::string, std::int64_t, std::int64_t, std::optional<std::int64_t>, std::string>;
  nb::class_<trace_prediction>(module, "_Prediction", "What a run takes of a CUDA device, in parts. In bytes.")
      .def_prop_ro("fits", [](const trace_prediction& self) { return self.judged.fits(); })
      .def_prop_ro("is_certain", [](const trace_prediction& self) { return self.judged.is_certain; })
      .def_prop_ro("fails_at", [](const trace_prediction& self) { return self.operation; })
      .def_prop_ro("requested",
                   [](const trace_prediction& self) {
                     return self.judged.fit.first_failure ? self.judged.fit.first_failure->requested : 0;
                   })
      .def_prop_ro("allocated", [](const trace_prediction& self) { return self.judged.fit.unlimited_stats.allocated_bytes.peak; })
      .def_prop_ro("reserved", [](const trace_prediction& self) { return self.judged.prediction.reserved(); })
      .def_prop_ro("total", [](const trace_prediction& self) { return self.judged.prediction.total(); })
      .def_prop_ro("parts",
                   [](const trace_prediction& self) {
                     std::vector<row> rows;
                     for (const memprof::memory_part& part : self.judged.prediction.parts) {
                       const auto most = part.is_known() ? std::optional{part.most} : std::nullopt;
                       rows.emplace_back(part.name, part.bytes, part.least, most, part.source);
                     }
                     return rows;
                   })
      .def_prop_ro("parts_text", [](const trace_prediction& self) { return memprof::parts_text(self.judged.prediction); })
      .def_prop_ro("sources_text", [](const trace_prediction& self) { return memprof::sources_text(self.judged.prediction); });
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
  bind_answers_of_traces(module);
  nb::class_<recorded_trace> trace(
      module, "Trace", "Every event of a capture: what profiles are folded from. In memory (`Capture.trace`) or in a file.");
  bind_analyses(trace);
  bind_export(trace, export_trace);
  trace
      .def(
          "__init__", [](recorded_trace* self, const path_argument& path) { new (self) recorded_trace{path.path}; }, "path"_a)
      .def(
          "profile", [](const recorded_trace& self, bool lifetimes) { return profile_of(self, lifetimes); }, nb::kw_only(),
          "lifetimes"_a = false, without_gil{},
          "The profile of the trace. With `lifetimes`, its spaces have `facets`, which takes several times as long.")
      .def("write_html", write_html, "path"_a, "title"_a = "", without_gil{},
           "Writes the page of the trace: who owned the memory at each moment, operations and blocks over time.")
      .def("__repr__", representation_of)
      .def("save", save, "path"_a, without_gil{}, "Writes a trace in memory to a file, which `memprof show` and others read.")
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
      .def("_predict", prediction_of, "device"_a, nb::kw_only(), "context"_a = nb::none(), "space"_a = "cuda:0",
           "alloc_conf"_a = "", without_gil{},
           "The parts of the run on a CUDA device; `context` is the user's number for what the CUDA context takes.")
      .def(
          "fit", fit_of, "capacity"_a, nb::kw_only(), "space"_a = "cuda:0", "alloc_conf"_a = "", "descending_addresses"_a = false,
          without_gil{},
          "Replays the trace through a model of PyTorch's caching allocator on a device of `capacity` bytes; 0: without a limit. "
          "`alloc_conf` is a value of PYTORCH_CUDA_ALLOC_CONF. `descending_addresses` is for PyTorch up to 2.11, where the "
          "addresses that "
          "CUDA's driver hands out decide among free blocks of one size.");
}

}  // namespace memprof_python
