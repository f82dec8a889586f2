"""Calls a function once a module has been imported, whenever the program does that."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def after_import(name: str, call: Callable[[], object]) -> Callable[[], None]:
    """Calls `call` now if the program has imported the module, else right after it does. What `call` raises fails the import.

    Returns a function after which it is no longer called.
    """
    if name in sys.modules:
        call()
        return lambda: None
    finder = _finders.get(name)
    if finder is None or finder not in sys.meta_path:
        finder = _finders[name] = _Finder(name)
        sys.meta_path.insert(0, finder)
    calls = finder.calls
    calls.append(call)

    def undo() -> None:
        if call in calls:
            calls.remove(call)

    return undo


class _Finder:
    """Finds one module, as the other finders do, and has its loader call functions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.calls: list[Callable[[], object]] = []

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    # Asked for the spec alone, as programs do that look whether a module is there, nothing is called.
                    spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def loaded(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            while self.calls:
                self.calls.pop(0)()


#: At most one for a module: two would ask each other.
_finders: dict[str, _Finder] = {}


class _Loader:
    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._finder.loaded()
