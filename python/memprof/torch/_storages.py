"""Copies of storages, as `copy.deepcopy` makes them of tensors: of a module's buffers, a `state_dict`, an optimizer's state."""

from __future__ import annotations

import functools

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class StorageCopies:
    """From the first construction to the last `remove`, `UntypedStorage.clone` takes its memory from libtorch's allocator, where it is
    recorded. libtorch's Python binding takes it from another on the CPU, and cannot take any on a claimed CUDA device."""

    _users = 0
    _original: Callable[..., Any]

    def __init__(self) -> None:
        kind = StorageCopies
        if kind._users == 0:
            kind._original = torch.UntypedStorage.clone
            setattr(torch.UntypedStorage, "clone", _recorded(kind._original))
        kind._users += 1
        self._is_in_use = True

    def remove(self) -> None:
        if not self._is_in_use:
            return
        self._is_in_use = False
        StorageCopies._users -= 1
        if StorageCopies._users == 0:
            # It is of a base class.
            delattr(torch.UntypedStorage, "clone")


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def clone(self: torch.UntypedStorage) -> Any:
        if self.device.type not in ("cpu", "cuda"):
            return original(self)
        with torch.no_grad():
            return torch.empty(0, dtype=torch.uint8, device=self.device).set_(self).clone().untyped_storage()

    return clone
