"""Python's floats that a simulation does not know: what `Tensor.item()` returns for an unknown tensor."""

from __future__ import annotations

import contextlib
import math
import numbers
import os.path
import sys

from .. import _core
from ._value_uses import is_chosen, is_compared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    import torch

#: Modules that compare numbers to print them, or to find a learning rate or a scale: whatever they find, memory is the same.
_harmless = {
    "json.encoder",
    "yaml.representer",
    "torch._tensor_str",
    "torch.amp.grad_scaler",
    "torch.cuda.amp.grad_scaler",
    "torch.optim.lr_scheduler",
}

#: Functions of NumPy.
_orders = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


class NominalFloat(float):
    """A float in all respects, but whoever decides by it is listed in the profile, as by an integer that is read. What is computed of it is
    one, too. Copies of it are itself; pickled, it is a plain float."""

    __slots__ = ()
    source = "Tensor.item()"

    def __lt__(self, other: Any) -> bool:
        _list_order(self, other, sys._getframe(1))
        return float.__lt__(self, other)

    def __le__(self, other: Any) -> bool:
        _list_order(self, other, sys._getframe(1))
        return float.__le__(self, other)

    def __gt__(self, other: Any) -> bool:
        _list_order(self, other, sys._getframe(1))
        return float.__gt__(self, other)

    def __ge__(self, other: Any) -> bool:
        _list_order(self, other, sys._getframe(1))
        return float.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        if not _is_certain(self, other):
            _list("comparison", self, sys._getframe(1))
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if not _is_certain(self, other):
            _list("comparison", self, sys._getframe(1))
        return float.__ne__(self, other)

    def __hash__(self) -> int:
        _list("hash", self, sys._getframe(1))
        return float.__hash__(self)

    def __bool__(self) -> bool:
        _list("truth", self, sys._getframe(1))
        return float.__bool__(self)

    def is_integer(self) -> bool:
        _list("is_integer", self, sys._getframe(1))
        return float.is_integer(self)

    def __int__(self) -> int:
        _list("int", self, sys._getframe(1))
        return float.__int__(self)

    def __trunc__(self) -> int:
        _list("trunc", self, sys._getframe(1))
        return float.__trunc__(self)

    def __floor__(self) -> int:
        _list("floor", self, sys._getframe(1))
        return float.__floor__(self)

    def __ceil__(self) -> int:
        _list("ceil", self, sys._getframe(1))
        return float.__ceil__(self)

    def __round__(self, digits: Any = None) -> Any:
        if digits is not None:
            return _carried(self)(float.__round__(self, digits))
        _list("round", self, sys._getframe(1))
        return float.__round__(self)

    def __float__(self) -> float:
        list_float(self.source, sys._getframe(1))
        return float.__float__(self)

    def __divmod__(self, other: Any) -> Any:
        return _both(self, float.__divmod__(self, other))

    def __rdivmod__(self, other: Any) -> Any:
        return _both(self, float.__rdivmod__(self, other))

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """A function of NumPy takes it for a plain float, which has no type of its own beside `float32`."""
        if function.__name__ in _orders and len(inputs) == 2:
            _list_order(self, inputs[1 if inputs[0] is self else 0], sys._getframe(1))
        plain = (float.__float__(one) if isinstance(one, NominalFloat) else one for one in inputs)
        return getattr(function, method)(*plain, **options)

    def __copy__(self) -> NominalFloat:
        return self

    def __deepcopy__(self, memo: Any) -> NominalFloat:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return float, (float.__float__(self),)


def _introduce_to_yaml(yaml: Any) -> None:
    for kind in (yaml.representer.SafeRepresenter, yaml.representer.Representer):
        kind.add_multi_representer(NominalFloat, kind.represent_float)


def _introduce_to_orjson(orjson: Any) -> None:
    original = orjson.dumps

    def dumps(value: Any, /, default: Any = None, option: Any = None) -> Any:
        def plain(other: Any) -> Any:
            if isinstance(other, NominalFloat):
                return float.__float__(other)
            if default is None:
                raise TypeError(f"Type is not JSON serializable: {type(other).__name__}")
            return default(other)

        return original(value, plain, option)

    orjson.dumps = dumps


def _introduce_to_omegaconf(omegaconf: Any) -> None:
    omegaconf._utils.BUILTIN_VALUE_TYPES += (NominalFloat, _Listed, _UniformDraw)
    original = omegaconf.FloatNode._validate_and_convert_impl

    def validate(self: Any, value: Any) -> Any:
        return value if isinstance(value, NominalFloat) else original(self, value)

    omegaconf.FloatNode._validate_and_convert_impl = validate


#: Libraries that ask for the very type of what they write, by their modules.
_serializers = {"yaml": _introduce_to_yaml, "orjson": _introduce_to_orjson, "omegaconf": _introduce_to_omegaconf}
_serializers_known: set[str] = set()


def _introduce_to_serializers() -> None:
    for name in _serializers.keys() & sys.modules.keys() - _serializers_known:
        _serializers_known.add(name)
        with contextlib.suppress(AttributeError):  # of another module by that name
            _serializers[name](sys.modules[name])


class _Listed(NominalFloat):
    __slots__ = ()
    source = "Tensor.tolist()"


class _UniformDraw(NominalFloat):
    """From 0 to 1, so that some comparisons find the same whatever was drawn."""

    __slots__ = ()


def nominal_item(tensor: torch.Tensor, item: Any) -> Any:
    """What `tensor.item()` has returned, if the program shall be listed that decides by it."""
    if type(item) is not float:
        return item
    if not _serializers_known.issuperset(_serializers.keys() & sys.modules.keys()):
        _introduce_to_serializers()
    knowledge = _core._knowledge_of(tensor._cdata)
    return item if knowledge == 0 else (NominalFloat if knowledge == 1 else _UniformDraw)(item)


def nominal_list(tensor: torch.Tensor, numbers: Any) -> Any:
    """The same of `tensor.tolist()`."""
    if not tensor.is_floating_point() or _core._knowledge_of(tensor._cdata) == 0:
        return numbers
    return _listed(numbers, tensor.dim())


def _listed(numbers: Any, dimensions: int) -> Any:
    if dimensions == 0:
        return _Listed(numbers)
    if dimensions == 1:
        return list(map(_Listed, numbers))
    return [_listed(row, dimensions - 1) for row in numbers]


def list_float(source: str, frame: FrameType) -> None:
    """Call when `frame` calls `float` of an unknown number, which makes an exact float: nothing that is done with it later is seen."""
    if is_compared(frame):
        _list_decision("comparison", source, frame)


def _define_arithmetic() -> None:
    names = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
    for name in (*(f"__{name}__" for name in names), *(f"__r{name}__" for name in names)):
        setattr(NominalFloat, name, _with_other(getattr(float, name)))
    for name in ("__neg__", "__pos__", "__abs__"):
        setattr(NominalFloat, name, _alone(getattr(float, name)))


def _with_other(original: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: NominalFloat, other: Any, *rest: Any) -> Any:
        if isinstance(other, float) and type(other) is not float and not isinstance(other, NominalFloat):
            return NotImplemented  # of NumPy, whose own operator makes a number of its type
        result = original(self, other, *rest)
        return _carried(self)(result) if type(result) is float else result

    return operate


def _alone(original: Callable[..., Any]) -> Callable[..., Any]:
    def operate(self: NominalFloat) -> NominalFloat:
        return _carried(self)(original(self))

    return operate


def _both(self: NominalFloat, results: Any) -> Any:
    return results if results is NotImplemented else tuple(map(_carried(self), results))


def _carried(number: NominalFloat) -> type[NominalFloat]:
    kind = type(number)
    return NominalFloat if kind is _UniformDraw else kind


_define_arithmetic()


def _is_certain(number: NominalFloat, other: Any) -> bool:
    """Whether a comparison finds the same whatever the number is: it is finite and equal to itself."""
    if number is other or not isinstance(other, (int, float, numbers.Real)):
        return True
    value: Any = float.__float__(other) if isinstance(other, float) else other
    if type(number) is _UniformDraw:
        return not 0 < value < 1
    return isinstance(other, float) and not math.isfinite(value)


def _list_order(number: NominalFloat, other: Any, frame: FrameType) -> None:
    if not _is_certain(number, other) and not is_chosen(frame):
        _list("comparison", number, frame)


def _list(use: str, number: NominalFloat, frame: FrameType) -> None:
    _list_decision(use, number.source, frame)


def _list_decision(use: str, source: str, frame: FrameType) -> None:
    module = frame.f_globals.get("__name__", "")
    checks_arguments = frame.f_code.co_name == "__init__" and module.startswith("torch.")
    if module not in _harmless and not checks_arguments:
        _core._list_decision(f"{use} of {source} at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
