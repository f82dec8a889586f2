#include "answers.hpp"
#include "constructor.hpp"
#include "core.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/record/container_limit.hpp>
#include <memprof/toolkit/analysis/memory_prediction.hpp>
#include <memprof/toolkit/estimate/available_memory.hpp>
#include <memprof/toolkit/estimate/decoder_config_json.hpp>
#include <memprof/toolkit/estimate/estimate.hpp>
#include <memprof/toolkit/estimate/estimate_answer_json.hpp>
#include <memprof/toolkit/estimate/estimate_json.hpp>
#include <memprof/toolkit/estimate/estimate_text.hpp>
#include <memprof/toolkit/estimate/training_step_text.hpp>
#include <memprof/trace/dtype.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace memprof::inline MEMPROF_ABI {

// The names of the command line, where they are no identifiers.
template <>
inline constexpr auto& enumeration_names<dtype> = dtype_names;
template <>
inline constexpr auto& enumeration_names<optimizer_kind> = optimizer_kind_names;
template <>
inline constexpr auto& enumeration_names<estimate_bucket> = estimate_bucket_names;

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof_python {
namespace {

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

/// A struct that callers make.
template <class T>
nb::class_<T> bind_input(nb::module_& module, const char* doc) {
  nb::class_<T> bound = bind_struct<T>(module);
  bind_constructor(bound);
  bound.doc() = doc;
  return bound;
}

/// A published decoder, or that of a file, and its longest sequence; 0: unknown.
[[nodiscard]] std::pair<memprof::decoder_model, std::int64_t> decoder_of(const std::string& name_or_file) {
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_file, ignored)) {
    const memprof::named_decoder& named = memprof::find_decoder(name_or_file);
    return {named.model, named.seq_len};
  }
  const std::string text = memprof::detail::read_whole_file(name_or_file, memprof::detail::max_bytes_by_hand);
  const memprof::decoder_config config = memprof::parse_decoder_config(text, {}, name_or_file);
  if (config.model) return {*config.model, config.longest_sequence};
  const memprof::decoder_shape& shape = config.shape;
  return {{.layers = shape.layers, .d_model = shape.d_model, .heads = shape.n_heads, .vocabulary = shape.vocab_size()},
          shape.seq_len};
}

/// An estimated step, and what it is the step of.
struct estimated_step {
  memprof::decoder_model model;
  memprof::training_setup setup;
  memprof::training_estimate estimate{};
  std::optional<memprof::predicted_fit> room{};  ///< on a CUDA device of limited size
  std::shared_ptr<recorded_trace> events{};      ///< null: not asked for
};

[[nodiscard]] estimated_step estimate_step(const memprof::decoder_model& model, const memprof::training_setup& setup,
                                           bool trace) {
  estimated_step made{model, setup};
  memprof::training_setup one = setup;
  if (trace && one.pipeline_stage < 0 && one.parallel.pipeline > 1)
    one.pipeline_stage = memprof::estimate_training_step(model, one).pipeline_stage;
  if (trace) {
    const auto events = std::make_shared<memprof::trace>();
    made.estimate = memprof::estimate_training_step(model, one, nullptr, events.get());
    if (events->left_out() != 0) memprof::detail::raise("out of memory recording the events of a step");
    made.events = std::make_shared<recorded_trace>(events);
  } else {
    made.estimate = memprof::estimate_training_step(model, one);
  }
  if (memprof::has_caching_allocator(setup.device) && setup.device.tensor_space().capacity != 0)
    made.room = memprof::predict_step(model, setup);
  return made;
}

void bind_steps(nb::module_& module) {
  nb::class_<estimated_step>(module, "TrainingEstimate", "What one device holds during a training step. In bytes.")
      .def_prop_ro(
          "profile", [](const estimated_step& self) -> const auto& { return self.estimate.step; },
          nb::rv_policy::reference_internal, "As from a capture under NO_DISPATCH; its times count events.")
      .def_prop_ro("parameters", [](const estimated_step& self) { return self.estimate.parameters; })
      .def_prop_ro("pipeline_stage", [](const estimated_step& self) { return self.estimate.pipeline_stage; })
      .def_prop_ro("peak", [](const estimated_step& self) { return self.estimate.space().cumulative_peak; })
      .def_prop_ro(
          "fits",
          [](const estimated_step& self) -> std::optional<bool> {
            if (self.room) return self.room->fits();
            const std::int64_t capacity = self.setup.device.empty() ? 0 : self.setup.device.tensor_space().capacity;
            return capacity == 0 ? std::nullopt : std::optional{self.estimate.space().cumulative_peak <= capacity};
          },
          "Whether the step fits on the device of its setup; None: it has no limit.")
      .def_prop_ro(
          "trace",
          [](const estimated_step& self) {
            if (!self.events) memprof::detail::raise("the estimate kept no trace: ask for estimate_step(..., trace=True)");
            return self.events;
          },
          "Every allocation of the step.")
      .def("text",
           [](const estimated_step& self) {
             return memprof::to_text(self.estimate, self.model, self.setup, self.room ? &*self.room : nullptr);
           })
      .def("__str__", [](const estimated_step& self) {
        return memprof::to_text(self.estimate, self.model, self.setup, self.room ? &*self.room : nullptr);
      });
  module.def("_estimate_step", estimate_step, "model"_a, "setup"_a, "trace"_a, without_gil{});
}

}  // namespace

void bind_estimates(nb::module_& module) {
  bind_input<memprof::decoder_model>(module, "The dimensions of a decoder-only transformer.")
      .def("parameters", &memprof::parameter_count, "seq_len"_a,
           "The number of parameters; with learned positions, for that sequence.");
  bind_input<memprof::layer_implementation>(module, "What layers allocate beyond what the arithmetic requires.");
  bind_input<memprof::parallel_degrees>(module, "The number of devices that share a training.");
  bind_input<memprof::training_setup>(module, "One training step, as far as it affects memory. `device` is a preset or a file.");
  bind_struct<memprof::shape_estimate>(module)
      .def(
          "text", [](const memprof::shape_estimate& self, std::size_t top_k) { return to_text(self, top_k); }, "top_k"_a = 12,
          "The tables of `memprof estimate`.")
      .def("__str__", [](const memprof::shape_estimate& self) { return to_text(self); })
      .def("json", [](const memprof::shape_estimate& self) { return to_json(self).dump(2); })
      .def("verdict", [](const memprof::shape_estimate& self) { return memprof::forward_sentence(self); })
      .doc() = "What a forward pass keeps for its backward pass, by bucket and operation. In bytes.";
  bind_steps(module);
  bind_struct<memprof::fit_answer>(module).doc() = "The greatest size at which a step fits. In bytes.";
  module.def("_available_memory", [] { return memprof::detail::available_memory(memprof::detail::container_limit()); });
  module.def("_decoder", decoder_of, "name_or_file"_a);
  module.def("_estimate", memprof::estimate_forward, "model"_a, "batch_size"_a, "seq_len"_a);
  module.def(
      "_find_fit",
      [](const memprof::decoder_model& model, const memprof::training_setup& setup, const std::string& sought,
         std::int64_t longest) {
        if (sought != "batch_size" && sought != "seq_len")
          throw nb::value_error(("'" + sought + "' is neither 'batch_size' nor 'seq_len'").c_str());
        const nb::gil_scoped_release no_gil;
        return memprof::find_fit(
            model, setup, sought == "batch_size" ? memprof::sought_size::batch_size : memprof::sought_size::seq_len, longest);
      },
      "model"_a, "setup"_a, "sought"_a, "longest"_a);
  nb::list decoders;
  for (const memprof::named_decoder& each : memprof::named_decoders) decoders.append(nb::str(each.name.data(), each.name.size()));
  module.attr("published_decoders") = nb::tuple(decoders);
}

}  // namespace memprof_python
