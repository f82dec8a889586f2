#include "core.hpp"

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>

namespace memprof_python {
namespace {

using namespace nb::literals;

/// A function of Python that ends in a call of another function, which it returns in place of its own result; that function is
/// called once it is gone. What the other one warns about then names the line of the program, as if it had been called itself.
class frameless_call {
 public:
  explicit frameless_call(nb::object prepare) : prepare_(std::move(prepare)) {}

  [[nodiscard]] nb::object call(const nb::args& args, const nb::kwargs& kwargs) const {
    const auto plan = nb::cast<nb::tuple>(called(prepare_, args, kwargs));
    const nb::handle otherwise = part(plan, 4);
    const nb::handle finish = part(plan, 3);
    nb::object result;
    try {
      result = called(plan[0], plan[1], part(plan, 2));
    } catch (nb::python_error& fault) {
      if (!otherwise.is_valid()) throw;
      result = otherwise(fault.value());
    }
    return finish.is_valid() ? finish(result) : result;
  }

  [[nodiscard]] nb::object bound(const nb::object& self, const nb::object& instance) const {
    return instance.is_none() ? self : method_(self, instance);
  }

 private:
  [[nodiscard]] static nb::handle part(const nb::tuple& plan, std::size_t index) {
    return index < plan.size() ? nb::handle{plan[index]} : nb::handle{};
  }

  [[nodiscard]] static nb::object called(nb::handle function, nb::handle args, nb::handle kwargs) {
    PyObject* const result = PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr());
    if (result == nullptr) nb::raise_python_error();
    return nb::steal(result);
  }

  nb::object prepare_;
  nb::object method_ = nb::module_::import_("types").attr("MethodType");
};

}  // namespace

void bind_frameless_calls(nb::module_& module) {
  nb::class_<frameless_call>(
      module, "_FramelessCall", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "Calls `prepare`, and then what it has returned: `(function, args, kwargs, finish, otherwise)`, all but the "
      "first two optional. The function's frame is the next above the caller's. `finish` makes the result of the "
      "function's, and `otherwise` takes its exception and returns a result in its place.")
      .def(nb::init<nb::object>(), "prepare"_a)
      .def("__call__", &frameless_call::call, "args"_a, "kwargs"_a,
           nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"))
      .def(
          "__get__",
          [](const nb::object& self, const nb::object& instance, const nb::handle&) {
            return nb::cast<const frameless_call&>(self).bound(self, instance);
          },
          "instance"_a.none(), "owner"_a.none() = nb::none());
}

}  // namespace memprof_python
