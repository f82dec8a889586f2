"""What Python's side of torch needs while libtorch is simulated (NO_DISPATCH)."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading

import torch
from torch.nn.parallel import distributed as _data_parallel
from torch.utils.data._utils import worker as _loader_worker

from .. import _core
from ._copy_warning import warn_of_copy
from ._nominal_numbers import list_float, nominal_item, nominal_list
from ._patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Simulation:
    """Prepares Python's side of torch, until `undo`. Make it before the capture begins, and undo it after its end."""

    def __init__(self) -> None:
        torch.backends.cudnn.version()  # type: ignore[no-untyped-call]  # is kept; a claimed device answers no such question
        self._patches = Patches()
        self._claimed: Any = None
        self._shape_functions = _PythonShapeFunctions()
        self._patches.set(torch.Tensor, "new_tensor", _new_tensor)
        self._patches.set(torch.Tensor, "new", _new)
        self._patches.set(torch.Tensor, "item", _item)
        self._patches.set(torch.Tensor, "__float__", _core._FramelessCall(_float))
        self._patches.set(torch.Tensor, "tolist", _tolist)
        self._patches.set(torch.Tensor, "numpy", _numpy)
        self._patches.set(torch._tensor_str, "_str", _print)
        for name in ("__init__", "_validate_sample"):  # they raise an error for arguments out of range
            self._patches.set(torch.distributions.Distribution, name, _checking(getattr(torch.distributions.Distribution, name)))
        # It counts steps, for a checkpoint.
        self._patches.set(torch.amp.GradScaler, "state_dict", _checking(torch.amp.GradScaler.state_dict))
        self._patches.set(torch.testing, "assert_close", _assert_close)
        self._patches.set(_loader_worker, "_worker_loop", _load_for_real)
        # It sends sizes to the other processes, and reads theirs from tensors.
        self._patches.set(_data_parallel, "_verify_param_shape_across_processes", lambda *args, **kwargs: None)
        self._load_floats()
        self._pass_on_higher_order_operators()
        self._join_new_threads()
        self._run_compiled_functions_eagerly()

    def claim(self, device: str, is_limited: bool = False) -> None:
        """Call once libtorch has the device. Does nothing if it is not a CUDA device. If it is limited, the program runs out of memory on
        it."""
        capacity = _core._cuda_capacity(device)
        if capacity is not None:
            if not hasattr(torch, "Event"):
                raise _core.Error(f"no_dispatch: a CUDA device needs torch 2.5 or later; this is {torch.__version__}")
            from ._claimed_cuda import ClaimedCuda

            self._claimed = ClaimedCuda(device, capacity, is_limited, self._patches)

    def undo(self) -> None:
        if self._claimed is not None:
            self._claimed.forget_defaults()
        _core._end_claimed_device()
        self._patches.undo()
        self._shape_functions.restore()
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
        if self._loads_floats:
            self._loads_floats.__exit__(None, None, None)

    def _load_floats(self) -> None:
        """`torch.load` refuses functions that it does not know, and a nominal number is saved as a call of `float`."""
        self._loads_floats: Any = None
        has_safe_globals = hasattr(torch.serialization, "safe_globals")  # from torch 2.5 on
        if has_safe_globals and float not in torch.serialization.get_safe_globals():
            self._loads_floats = torch.serialization.safe_globals([float])
            self._loads_floats.__enter__()

    def _join_new_threads(self) -> None:
        original: Any = vars(threading.Thread)["_bootstrap_inner"]

        def begin(self: threading.Thread) -> None:
            _core._join_simulation()
            original(self)

        self._patches.set(threading.Thread, "_bootstrap_inner", begin)

    def _pass_on_higher_order_operators(self) -> None:
        """Operators of functions, as `flex_attention` and `cond`, are dispatched in Python, which does not know the keys of the simulation. They call
        other operators, and those are simulated."""
        operators: Any = torch._ops
        original: Callable[..., Any] = operators.HigherOrderOperator.dispatch

        def dispatch(self: Any, /, dispatch_key: Any, *args: Any, **kwargs: Any) -> Any:
            keys = self.non_fallthrough_keys
            while dispatch_key.name == "???":  # of a value that pybind11's enumeration does not have
                keys = keys.remove(dispatch_key)
                dispatch_key = operators._compute_keyset(args, kwargs, keys).highestPriorityTypeId()
            return original(self, dispatch_key, *args, **kwargs)

        self._patches.set(operators.HigherOrderOperator, "dispatch", dispatch)

    def _run_compiled_functions_eagerly(self) -> None:
        """A compiled function would call kernels without libtorch's dispatcher."""
        self._stance: Any = None
        was_said = False
        original: Callable[..., Any] = torch.compile

        def be_eager() -> None:
            if self._stance is None and hasattr(torch.compiler, "set_stance"):  # from torch 2.6 on
                self._stance = torch.compiler.set_stance("force_eager")  # at once, until its exit

        def compile(*args: Any, **kwargs: Any) -> Any:
            nonlocal was_said
            if not was_said:
                was_said = True
                print("memprof: torch.compile has no effect under no_dispatch: functions run eagerly", file=sys.stderr)
            be_eager()
            if kwargs.get("backend") != "eager":  # fused kernels hold less, and what others save is another thing
                _core._list_decision("torch.compile (run eagerly)")
            if self._stance is None:
                return args[0] if args else lambda function: function
            return original(*args, **kwargs)

        if "torch._dynamo" in sys.modules:
            be_eager()
        self._patches.set(torch, "compile", compile)


class _PythonShapeFunctions:
    """Takes Python's decompositions out of the place of libtorch's own shape functions (Meta kernels), until `restore`: they
    allocate otherwise than the kernels do."""

    def __init__(self) -> None:
        import torch._meta_registrations as registrations

        self._registrations: Any = registrations
        library: Any = registrations._meta_lib_dont_use_me_use_register_meta
        self._names = set(library._op_impls)
        library._destroy()

    def restore(self) -> None:
        make_library: Any = torch.library.Library
        library = make_library("aten", "IMPL", "Meta")
        self._registrations._meta_lib_dont_use_me_use_register_meta = library
        restored: set[Any] = set()
        overloads: Any = torch._ops.OpOverload  # the others are of a higher order
        for kind in ("meta", "post_autograd", "pre_autograd"):  # as in activate_meta: the most specific is first
            for operator, function in self._registrations.global_decomposition_table[kind].items():
                if not isinstance(operator, overloads) or operator in restored:
                    continue
                restored.add(operator)
                if f"aten/{operator.name().split('::')[-1]}/Meta" in self._names:
                    library.impl(operator, function)


def _new_tensor(
    self: torch.Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> torch.Tensor:
    """`Tensor.new_tensor` takes the device from the highest dispatch key, which is Fake in a simulation."""
    if torch.is_tensor(data):
        warn_of_copy("tensor.new_tensor(sourceTensor)", stacklevel=3)
        return data.detach().to(device or self.device, dtype or self.dtype, copy=True).requires_grad_(requires_grad)
    return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad, **rest)


_original_new: Callable[..., torch.Tensor] = torch.Tensor.new


def _new(self: torch.Tensor, *args: Any, device: Any = None) -> torch.Tensor:
    """`Tensor.new`, for the same reason."""
    if self.layout is not torch.strided:  # it has no such key
        return _original_new(self, *args, **({} if device is None else {"device": device}))
    device = self.device if device is None else device
    (first, *others) = args or (0,)
    first = getattr(first, "_untyped_storage", first)  # a TypedStorage warns of each use
    if isinstance(first, torch.UntypedStorage):
        return torch.empty(0, dtype=self.dtype, device=first.device).set_(first)
    if torch.is_tensor(first):
        return first.to(device, self.dtype).detach()
    if isinstance(first, int):
        return torch.empty(first, *others, dtype=self.dtype, device=device)
    if isinstance(first, torch.Size):
        return torch.empty(first, dtype=self.dtype, device=device)
    return torch.tensor(first, dtype=self.dtype, device=device)


_original_item: Callable[..., Any] = torch.Tensor.item
_original_float: Callable[..., float] = torch.Tensor.__float__
_original_tolist: Callable[..., Any] = torch.Tensor.tolist
_original_numpy: Callable[..., Any] = torch.Tensor.numpy
_is_handled_by_class: Callable[[Any], bool] = torch.overrides.has_torch_function_unary


def _item(self: torch.Tensor) -> Any:
    """`Tensor.item`, whose numbers say who decides by them if the simulation does not know them."""
    if _is_handled_by_class(self):  # it calls this function again
        return _original_item(self)
    return nominal_item(self, _original_item(self))


def _float(self: torch.Tensor) -> tuple[Any, ...]:
    """`float(tensor)`, which cannot return such a number."""
    if not _is_handled_by_class(self) and _core._knowledge_of(self._cdata) != 0:
        list_float("float(Tensor)", sys._getframe(1))
    return _original_float, (self,)


def _tolist(self: torch.Tensor) -> Any:
    """`Tensor.tolist` reads memory, without an operator that could be simulated."""
    if _is_handled_by_class(self):  # it calls this function again
        return _original_tolist(self)
    if self.layout is torch.strided and not self.is_meta:
        self = self.resolve_conj().resolve_neg()
        if not self.is_cpu:
            self = self.cpu()
        if sys._getframe(1).f_globals.get("__name__") == "torch.utils.data.sampler":  # which data, of those there are
            with _deciding_nothing():
                _core._read_memory(self._cdata, "Tensor.tolist")
        else:
            _core._read_memory(self._cdata, "Tensor.tolist")
        return nominal_list(self, _original_tolist(self))
    return _original_tolist(self)


def _numpy(self: torch.Tensor, *, force: bool = False) -> Any:
    """`Tensor.numpy`, for the same reason; `numpy.asarray` calls it."""
    if _is_handled_by_class(self):
        return _original_numpy(self, force=force)
    if force:
        self = self.detach().cpu().resolve_conj().resolve_neg()
    array = _original_numpy(self)  # over the same memory; raises what torch raises
    _core._read_memory(self._cdata, "Tensor.numpy")
    return array


_original_print: Callable[..., str] = torch._tensor_str._str


@contextlib.contextmanager
def _deciding_nothing() -> Iterator[None]:
    """What is read within decides nothing about memory, as where it is printed."""
    _core._begin_print()
    try:
        yield
    finally:
        _core._end_print()


def _print(*args: Any, **kwargs: Any) -> str:
    """The text of a tensor, whose values decide in how many digits it is."""
    with _deciding_nothing():
        return _original_print(*args, **kwargs)


def _checking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def check(*args: Any, **kwargs: Any) -> Any:
        with _deciding_nothing():
            return original(*args, **kwargs)

    return check


_original_assert_close: Callable[..., None] = torch.testing.assert_close


def _assert_close(actual: Any, expected: Any, **kwargs: Any) -> None:
    """Numbers that the simulation does not know are taken for close: the program is one that works. Sizes and types are compared."""
    tensors = filter(torch.is_tensor, torch.utils._pytree.tree_leaves((actual, expected)))
    if not any(_core._knowledge_of(one._cdata) for one in tensors):
        return _original_assert_close(actual, expected, **kwargs)
    try:
        with _deciding_nothing():
            _original_assert_close(actual, expected, **kwargs)
    except AssertionError as fault:
        if re.search(r"not (close|equal)!", str(fault)) is None:
            raise


_original_worker_loop: Callable[..., Any] = _loader_worker._worker_loop


def _load_for_real(*args: Any, **kwargs: Any) -> Any:
    """A loader's worker is a process of its own, which loads data and records nothing."""
    _core._execute_in_this_process()
    return _original_worker_loop(*args, **kwargs)
