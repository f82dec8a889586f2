"""Which objects are tracked, so that memory which several of them share counts once."""

from __future__ import annotations

import sys
import weakref

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._capture import Category


class _Block:
    """The memory of a tracked object, until the object is collected."""

    def __init__(self, of: Any, extent: tuple[int, int, int], owner: int, space: str, capture: int) -> None:
        self.address, self.nbytes, self.end = extent
        self.space, self.capture, self._owner = space, capture, owner
        self._finalizer = weakref.finalize(of, self.free)
        self._finalizer.atexit = False
        _blocks.setdefault(owner, []).append(self)

    def covers(self, address: int, end: int) -> bool:
        return self.address <= address and end <= self.end

    def forget(self) -> None:
        """Its end is recorded no more."""
        self._finalizer.detach()
        beside = _blocks.get(self._owner, [])
        if self in beside:
            beside.remove(self)
        if not beside:
            _blocks.pop(self._owner, None)

    def free(self) -> None:
        self.forget()
        _core.MemorySpace(self.space).deallocate(self.address, self.nbytes)


#: By the id of the object that owns the memory, which lives at least as long as its views.
_blocks: dict[int, list[_Block]] = {}


def record(buffer: Any, space: str, category: Category, capture: int) -> int | None:
    """Records the memory of an object as a block of the capture with that number, and returns its address; None: it is a tracked
    object's, whose block it is. Blocks of tracked views of the object end."""
    address, nbytes, end = extent = _extent_of(buffer)
    where, owner = _core.MemorySpace(space), id(_owner_of(buffer))
    for block in list(_blocks.get(owner, ())):
        if block.space != space:
            continue
        if block.capture != capture:
            block.forget()
        elif block.covers(address, end):
            return None
        elif address <= block.address and block.end <= end:
            block.free()
    where.allocate(address, nbytes, category)  # may raise
    _Block(buffer, extent, owner, space, capture)
    return address


def _owner_of(buffer: Any) -> Any:
    array_of_numpy = getattr(sys.modules.get("numpy"), "ndarray", ())
    while True:
        base = buffer.obj if isinstance(buffer, memoryview) else buffer.base if isinstance(buffer, array_of_numpy) else None
        if base is None:
            return buffer
        buffer = base


def _extent_of(buffer: Any) -> tuple[int, int, int]:
    """The lowest address of an object's elements, their bytes, and the address after the last."""
    first, nbytes = _core._buffer_of(buffer)
    with memoryview(buffer) as view:
        if nbytes == 0:
            return first, 0, first
        reaches = [stride * (count - 1) for count, stride in zip(view.shape or (), view.strides or ())]
        end = first + sum(reach for reach in reaches if reach > 0) + view.itemsize
    return first + sum(reach for reach in reaches if reach < 0), nbytes, end
