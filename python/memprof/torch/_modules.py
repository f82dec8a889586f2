"""Modules as operations, and the names and categories of their tensors, without a line in the program."""

from __future__ import annotations

import functools
import weakref

import torch
from torch.nn.modules import module as _hooks
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.weak import WeakIdKeyDictionary

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from ._steps import OptimizerSteps

    NamedModule = tuple[weakref.ref[torch.nn.Module], str]


class ModuleScopes:
    """From its construction to `remove`, each call of a module is an operation, named by the module's place in its parent.

    Parameters and buffers are named when a module registers them or is copied, by their path when the outermost module is first
    called; the state of optimizers, after the step that creates it. With `whole_paths`, an operation is named by the module's whole path, which is
    in the name of its backward pass, too: "gradients of h.3.mlp". `steps` hear of calls.
    """

    def __init__(self, whole_paths: bool = False, steps: OptimizerSteps | None = None) -> None:
        self._whole_paths = whole_paths
        #: The outermost modules that were called.
        self.roots: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._names: dict[int, NamedModule] = {}
        self._parameters: MutableMapping[torch.Tensor, str] = WeakIdKeyDictionary()
        self._states: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._undo: list[Callable[[], object]] = [
            _hooks.register_module_parameter_registration_hook(self._on_parameter).remove,
            _hooks.register_module_buffer_registration_hook(self._on_buffer).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
        ]
        self._original: Callable[..., Any] = torch.nn.Module._call_impl
        setattr(torch.nn.Module, "_call_impl", self._call(steps))
        self._original_setstate: Callable[..., Any] = torch.nn.Module.__setstate__
        setattr(torch.nn.Module, "__setstate__", self._setstate())

    def remove(self) -> None:
        if self._undo:
            setattr(torch.nn.Module, "_call_impl", self._original)
            setattr(torch.nn.Module, "__setstate__", self._original_setstate)
        while self._undo:
            self._undo.pop()()

    def _call(self, steps: OptimizerSteps | None) -> Callable[..., Any]:
        original, operation, name_tree = self._original, _core._Operation, self._name_tree
        waiting = [] if steps is None else steps.waiting
        find = self._names.get
        is_compiling: Callable[[], bool] = torch.compiler.is_compiling

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():  # the compiler looks into this function, and must see nothing of memprof
                return original(module, *args, **kwargs)
            if waiting and steps is not None:
                steps.module_is_called()
            known = find(id(module))
            if known is None or known[0]() is not module:
                known = name_tree(module)
            scope = operation(known[1], "")
            scope.enter()
            try:
                return original(module, *args, **kwargs)
            finally:
                scope.exit()

        return call

    def _setstate(self) -> Callable[..., Any]:
        """A copy by `copy.deepcopy`, as an average of the weights (EMA) is, and a module that is read registers nothing. Its parts have
        their tensors before it has them, so the outermost module names all by their path."""
        original = self._original_setstate

        @functools.wraps(original)
        def set_state(module: torch.nn.Module, state: Any) -> None:
            original(module, state)
            for path, parameter in module.named_parameters():
                _core._annotate_tensor(parameter._cdata, _path_in(module, path), "parameter")
            for path, buffer in module.named_buffers():
                _core._annotate_tensor(buffer._cdata, _path_in(module, path), "other")

        return set_state

    def _name_tree(self, root: torch.nn.Module) -> NamedModule:
        """Names a module and those below it. A list of modules is never called: its modules bear its name, as in `h.3`."""
        self.roots.add(root)
        called = {"": type(root).__name__}
        for path, module in root.named_modules():
            parts = path.split(".")
            above = len(parts) - 1
            while above > 0 and ".".join(parts[:above]) not in called:
                above -= 1
            if not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)) or path == "":
                called[path] = (path if self._whole_paths else ".".join(parts[above:])) or type(root).__name__
                self._names[id(module)] = (weakref.ref(module), called[path])
        for path, parameter in root.named_parameters():
            self._parameters[parameter] = path
            _core._annotate_tensor(parameter._cdata, path, "parameter")
        for path, buffer in root.named_buffers():
            _core._annotate_tensor(buffer._cdata, path, "other")
        return self._names[id(root)]

    def _on_parameter(self, module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        if parameter is not None:
            _core._annotate_tensor(parameter._cdata, f"{type(module).__name__}.{name}", "parameter")

    def _on_buffer(self, module: torch.nn.Module, name: str, buffer: torch.Tensor | None) -> None:
        if buffer is not None:
            _core._annotate_tensor(buffer._cdata, f"{type(module).__name__}.{name}", "other")

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._states.get(optimizer) == len(optimizer.state) or not _core.is_capturing():
            return
        self._states[optimizer] = len(optimizer.state)
        for number, (parameter, state) in enumerate(optimizer.state.items()):
            name = self._parameters.get(parameter, f"parameter {number}")
            for part, tensor in state.items():
                if torch.is_tensor(tensor):
                    _core._annotate_tensor(tensor._cdata, f"{name}.{part}", "optimizer_state")


def _path_in(module: torch.nn.Module, path: str) -> str:
    """What belongs to the module itself has the module's class before it, as where it is registered."""
    return path if "." in path else f"{type(module).__name__}.{path}"
