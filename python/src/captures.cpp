#include "core.hpp"
#include "interpreter_stack.hpp"
#include "path_argument.hpp"
#include "simulation.hpp"
#include "torch_library.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memprof/memprof.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/profile/fact/python_stacks.hpp>
#include <memprof/record/capture_state.hpp>
#include <memprof/record/capture_trace.hpp>
#include <memprof/record/memory_space.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/toolkit/analysis/script_run.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/trace.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof_python {
namespace {

using namespace nb::literals;
using without_gil = nb::call_guard<nb::gil_scoped_release>;

[[nodiscard]] constexpr memprof::run_mode mode_of(bool no_dispatch) noexcept {
  return no_dispatch ? memprof::run_mode::no_dispatch : memprof::run_mode::normal;
}

/// The capture in which the program has last made a snapshot of its own; 0: none.
std::atomic<std::uint32_t> marked_capture{0};

void snapshot_of_program(std::string_view name) {
  marked_capture = memprof::detail::active_capture();
  memprof::snapshot(name);
}

/// Ends a segment where a step has ended, unless the program ends its segments itself.
void end_step(std::string_view name) {
  const std::uint32_t active = memprof::detail::active_capture();
  if (active != 0 && marked_capture != active) memprof::snapshot(name);
}

/// A capture and the trace that it fills.
class capture {
 public:
  /// `stacks_from`: the size of blocks of tensors from which they have the stack of Python that asked; 0: none has. Frames of
  /// files in `own_folder` are left out.
  capture(memprof::capture_options options, bool keeps_trace, bool records_torch, std::size_t stacks_from,
          const std::string& own_folder)
      : mode_{options.mode}, device_{options.device}, stacks_from_{stacks_from} {
    if (stacks_from_ != 0) interpreter_stack::require_readable();
    if (keeps_trace) options.trace = (trace_ = std::make_shared<memprof::trace>()).get();
    guard_.emplace(memprof::detail::start_capture(options, options.mode));
    number_ = memprof::detail::active_capture();
    if (stacks_from_ != 0) interpreter_stack::begin(stacks_from_, own_folder);
    put_stacks();
    if (records_torch) attach_torch();
  }

  void attach_torch() {
    const auto caller = stacks_from_ == 0 ? nullptr : &interpreter_stack::label_of_caller;
    (void)memprof::detail::keep_backends(number_, torch_library::attach(mode_, device_, caller));
  }
  [[nodiscard]] bool is_active() const noexcept { return number_ != 0 && memprof::detail::active_capture() == number_; }
  void snapshot(std::string_view name) {
    if (is_active()) marked_capture = number_;
    guard_->snapshot(name);
  }
  void end(std::string_view name) {
    if (is_active()) put_stacks();
    guard_->end(name);
  }
  [[nodiscard]] memprof::profile profile() const { return guard_->profile(); }
  [[nodiscard]] std::shared_ptr<recorded_trace> trace() {
    if (!trace_) memprof::detail::raise("this capture keeps no trace: begin it with capture(trace=True)");
    if (is_active()) memprof::detail::raise("the trace can be read once the capture has ended");
    if (!read_) read_ = std::make_shared<recorded_trace>(trace_);
    return read_;
  }

 private:
  /// Says which blocks have a stack.
  void put_stacks() const {
    if (stacks_from_ == 0) return;
    const memprof::heap_stacks row{static_cast<std::int64_t>(stacks_from_), 0, interpreter_stack::unnamed(),
                                   std::string{memprof::stacks_of_python}};
    memprof::extend::event_sink{}.add_facts(memprof::detail::table_of(&row, &row + 1));
  }

  std::shared_ptr<memprof::trace> trace_;  // outlives the capture, which writes to it
  std::shared_ptr<recorded_trace> read_;
  std::optional<memprof::capture_guard> guard_;
  std::uint32_t number_ = 0;
  memprof::run_mode mode_;
  memprof::device_description device_;
  std::size_t stacks_from_;
};

/// An operation that `with` opens and closes.
class operation {
 public:
  operation(std::string name, const std::string& category) : name_(std::move(name)), category_(category_of(category)) {}

  void enter() {
    if (scope_) memprof::detail::raise("the operation '" + name_ + "' is open: nest another track_operation('" + name_ + "')");
    scope_.emplace([this] { return memprof::detail::find_label(name_); }, category_.tag());
  }
  void exit() noexcept { scope_.reset(); }

 private:
  std::string name_;
  memprof::optional_category category_;
  std::optional<memprof::operation_scope> scope_;
};

/// Reads the clock into the trace: events are not stamped one by one, so those that follow get the time of the last reading at
/// least. Costs a drain.
void mark_time() noexcept {
  const memprof::detail::control_guard control;
  auto& shared = memprof::abi_1::process_registry;
  if (shared.drain == nullptr || memprof::detail::active_capture() == 0) return;
  shared.drain(shared);
  if (memprof::detail::capture_state* const state = memprof::detail::state_of(shared))
    memprof::detail::put_clock_reading(shared, *state);
}

/// Names of the memory spaces that this process has, whether or not anything was recorded in them.
[[nodiscard]] std::vector<std::string> space_names() {
  const auto& shared = memprof::abi_1::process_registry;
  std::vector<memprof::extend::label> named;
  {
    const memprof::detail::control_guard control;
    named.assign(shared.space_names, shared.space_names + shared.space_count);
  }
  std::vector<std::string> names;
  for (const memprof::extend::label each : named) names.emplace_back(memprof::extend::event_sink{}.text_of(each));
  return names;
}

/// Keeps in the trace how far a script has come; the last call counts.
void put_script_run(std::int64_t optimizer_steps, std::int64_t wanted_steps, bool ended_itself) {
  if (memprof::detail::active_capture() == 0) return;
  const memprof::script_run row{optimizer_steps, wanted_steps, ended_itself ? 1 : 0};
  memprof::extend::event_sink{}.add_facts(memprof::detail::table_of(&row, &row + 1));
}

/// An address or a number of bytes, in words that nanobind's own refusal lacks.
[[nodiscard]] std::uint64_t unsigned_of(nb::handle given, const char* parameter) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  throw nb::value_error((std::string{parameter} + "=" + nb::str(number).c_str() + ": expected 0 to 2**64 - 1").c_str());
}

void annotate(nb::handle address, std::string_view name, std::string_view shape, std::string_view dtype,
              const std::string& category) {
  memprof::annotate(reinterpret_cast<const void*>(unsigned_of(address, "address")),
                    {.name = name, .shape = shape, .dtype = dtype, .category = category_of(category)});
}

/// Address and size of an object's memory.
[[nodiscard]] std::pair<std::uintptr_t, std::size_t> buffer_of(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
  const std::pair found{reinterpret_cast<std::uintptr_t>(view.buf), static_cast<std::size_t>(view.len)};
  PyBuffer_Release(&view);
  return found;
}

}  // namespace

void bind_captures(nb::module_& module) {
  nb::class_<capture>(module, "_Capture")
      .def(
          "__init__",
          [](capture* self, const std::string& device, bool trace, const path_argument& trace_file, std::uint64_t trace_limit,
             std::uint32_t timeline_points, std::uint32_t largest_blocks, std::uint32_t full_segments, std::uint32_t operations,
             bool infer_operations, bool uses, std::size_t stacks_from, const std::string& own_folder, bool torch,
             bool no_dispatch) {
            memprof::capture_options options;
            options.mode = mode_of(no_dispatch);
            options.device = device_named(device);
            options.trace_file = trace_file.path.string();
            options.trace_limit = trace_limit;
            options.timeline_points = timeline_points;
            options.largest_blocks = largest_blocks;
            options.full_segments = full_segments;
            options.operations = operations;
            options.infer_operations = infer_operations;
            options.uses = uses;
            new (self) capture{options, trace, torch, stacks_from, own_folder};
          },
          nb::kw_only(), "device"_a, "trace"_a, "trace_file"_a, "trace_limit"_a, "timeline_points"_a, "largest_blocks"_a,
          "full_segments"_a, "operations"_a, "infer_operations"_a, "uses"_a, "stacks_from"_a, "own_folder"_a, "torch"_a,
          "no_dispatch"_a)
      .def_prop_ro("is_active", &capture::is_active)
      .def("attach_torch", &capture::attach_torch)
      .def("snapshot", &capture::snapshot, "name"_a)
      .def("end", &capture::end, "name"_a, without_gil{})
      .def("profile", &capture::profile, without_gil{})
      .def("trace", &capture::trace);

  nb::class_<operation>(module, "_Operation")
      .def(nb::init<std::string, const std::string&>(), "name"_a, "category"_a)
      .def("enter", &operation::enter)
      .def("exit", &operation::exit);

  nb::class_<memprof::memory_space>(module, "MemorySpace",
                                    "A named kind of memory whose blocks are counted together: 'cpu', 'dram', a pool. A name is "
                                    "one space in the whole process; "
                                    "spaces with the same `memory` also get a joint peak.")
      .def(
          "__init__",
          [](memprof::memory_space* self, std::string_view name, std::string_view memory) {
            new (self) memprof::memory_space{name, memory};
          },
          "name"_a, "memory"_a = "")
      .def(
          "allocate",
          [](memprof::memory_space self, nb::handle address, nb::handle nbytes, const std::string& category) {
            memprof::extend::event_sink{}.allocate(self, {unsigned_of(address, "address")}, unsigned_of(nbytes, "nbytes"),
                                                   category_of(category));
          },
          "address"_a, "nbytes"_a, "category"_a = "",
          nb::sig("def allocate(self, address: int, nbytes: int, category: str = '') -> None"),
          "Records a block that was just allocated.")
      .def(
          "deallocate",
          [](memprof::memory_space self, nb::handle address, nb::handle nbytes) {
            memprof::extend::event_sink{}.deallocate(self, {unsigned_of(address, "address")}, unsigned_of(nbytes, "nbytes"));
          },
          "address"_a, "nbytes"_a = 0, nb::sig("def deallocate(self, address: int, nbytes: int = 0) -> None"),
          "Records that a block is about to be freed; `nbytes`, if given, is checked.");

  module.def("snapshot", snapshot_of_program, "name"_a,
             "Ends the current segment, which gets that name, and begins the next. Does nothing without a capture.");
  module.def(
      "memory_checkpoint", [](std::string_view name) { memprof::memory_checkpoint(name); }, "name"_a,
      "Keeps what is live at this moment under that name (`Profile.checkpoints`), and ends no segment.");
  module.def(
      "end_capture", [](std::string_view name) { memprof::end_capture(name); },
      "name"_a = std::string{memprof::detail::end_segment_name}, without_gil{},
      "Ends the active capture, whoever began it; its last segment gets that name.");
  module.def(
      "discard_capture", [] { memprof::discard_capture(); }, without_gil{},
      "Discards the last capture and its profile; ends it first if it is active.");
  module.def(
      "current_profile", [] { return memprof::current_profile(); }, without_gil{},
      "The profile of the active capture so far, or of the last one; an empty profile if there is none.");
  module.def(
      "is_capturing", [] { return memprof::detail::active_capture() != 0; }, "Whether a capture is active.");
  module.def("_mark_time", mark_time);
  module.def("_space_names", space_names);
  module.def("_put_script_run", put_script_run, "optimizer_steps"_a, "wanted_steps"_a, "ended_itself"_a);
  module.def("_end_step", end_step, "name"_a);
  module.def("_begin_torch_operators", torch_library::begin_operators);
  module.def("_end_torch_operators", torch_library::end_operators);
  module.def(
      "_load_torch_library", [](const std::string& path, bool no_dispatch) { torch_library::load(path, mode_of(no_dispatch)); },
      "path"_a, "no_dispatch"_a);
  module.def(
      "_is_torch_library_loaded", [](bool no_dispatch) { return torch_library::is_loaded(mode_of(no_dispatch)); },
      "no_dispatch"_a);
  module.def("_record_cuda", torch_library::attach_cuda);
  module.def("_annotate_tensor", torch_library::annotate, "tensor"_a, "name"_a, "category"_a);
  module.def("_buffer_of", buffer_of, "object"_a);
  module.def(
      "annotate", annotate, "address"_a, nb::kw_only(), "name"_a = "", "shape"_a = "", "dtype"_a = "", "category"_a = "",
      nb::sig("def annotate(address: int, *, name: str = '', shape: str = '', dtype: str = '', category: str = '') -> None"),
      "Describes the live block at that address, for reports. A category replaces the block's own.");
}

}  // namespace memprof_python
