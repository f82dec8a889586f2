"""Storages, which libtorch's Python binding copies, saves and loads without the dispatcher, so that no capture sees it: `copy.deepcopy`
does so with tensors, of a module's buffers, a `state_dict`, an optimizer's state, and so do `torch.save` and `torch.load`."""

from __future__ import annotations

import functools

import torch

from .. import _core

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


def on_a_claimed_device() -> dict[str, Callable[..., Any]]:
    """What replaces methods of `UntypedStorage` there: the same by operators, which are simulated."""
    kind = torch.UntypedStorage
    return {
        "to": _storage_on(kind.to),
        "cpu": _on_cpu(kind.cpu),
        "_write_file": _written(kind._write_file),
        "_set_from_file": _read(kind._set_from_file),
        "resize_": _resized(kind.resize_),
    }


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _storage_on(original: Callable[..., Any]) -> Callable[..., Any]:
    """`UntypedStorage.to`, as `torch.load` calls it."""

    @functools.wraps(original)
    def to(self: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if where.type != "cuda":
            return original(self, device=where, non_blocking=non_blocking)
        return _bytes_of(self).to(where).untyped_storage()

    return to


def _on_cpu(original: Callable[..., torch.UntypedStorage]) -> Callable[..., torch.UntypedStorage]:
    """`UntypedStorage.cpu`, as `torch.save` calls it."""

    @functools.wraps(original)
    def cpu(self: torch.UntypedStorage) -> torch.UntypedStorage:
        if self.device.type != "cuda":
            return original(self)
        return _bytes_of(self).cpu().untyped_storage()

    return cpu


def _written(original: Callable[..., None]) -> Callable[..., None]:
    """`UntypedStorage._write_file`, as pickling a tensor calls it."""

    @functools.wraps(original)
    def _write_file(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> None:
        storage = self if self.device.type != "cuda" else _bytes_of(self).cpu().untyped_storage()
        original(storage, *args, **kwargs)

    return _write_file


def _read(original: Callable[..., Any]) -> Callable[..., Any]:
    """`UntypedStorage._set_from_file`, as unpickling a tensor calls it."""

    @functools.wraps(original)
    def _set_from_file(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if self.device.type != "cuda":
            return original(self, *args, **kwargs)
        read = torch.UntypedStorage(self.nbytes())  # type: ignore[no-untyped-call]  # real memory, whose bytes are known
        original(read, *args, **kwargs)
        _bytes_of(self).copy_(_bytes_of(read))
        return self

    return _set_from_file


def _resized(original: Callable[..., torch.UntypedStorage]) -> Callable[..., torch.UntypedStorage]:
    """`UntypedStorage.resize_`, with which FSDP frees parameters and takes their memory anew."""

    @functools.wraps(original)
    def resize_(self: torch.UntypedStorage, size: Any) -> torch.UntypedStorage:
        if self.device.type != "cuda":
            return original(self, size)
        try:
            _core._resize_storage(self._cdata, int(size))
        except RuntimeError as fault:
            if "out of memory" in str(fault):
                raise torch.OutOfMemoryError(str(fault)) from None
            raise
        return self

    return resize_
