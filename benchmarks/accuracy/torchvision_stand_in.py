"""Stands in for torchvision, which timm imports and a training step does not use, and which has no build for every torch.

Every name of every module of it is a class without content. Where torchvision is installed, that is used.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence


class _AnyName(type):
    def __getattr__(cls, name: str) -> type:
        return _any_class(name)


def _any_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return _AnyName(name, (), {})


class _Module(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> type:
        return _any_class(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """Has `import torchvision` succeed."""
    if importlib.util.find_spec("torchvision") is None:
        sys.meta_path.insert(0, _Finder())
