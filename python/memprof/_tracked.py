"""Which objects are tracked, so that memory which several of them share counts once."""

from __future__ import annotations

import bisect
import operator
import sys
import weakref

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._capture import Category


class _Block:
    """The memory of a tracked object, until the object is collected."""

    def __init__(self, of: Any, extent: tuple[int, int, int], key: tuple[int, str], capture: int) -> None:
        self.address, self.nbytes, self.end = extent
        self.capture, self._key = capture, key
        #: Ends the block, once.
        self.free = weakref.finalize(of, self._free)
        self.free.atexit = False
        bisect.insort(_blocks.setdefault(key, []), self, key=_address_of)

    def forget(self) -> None:
        """Its end is not recorded."""
        self.free.detach()
        self._remove()

    def _free(self) -> None:
        self._remove()
        _core.MemorySpace(self._key[1]).deallocate(self.address, self.nbytes)

    def _remove(self) -> None:
        beside = _blocks[self._key]
        del beside[bisect.bisect_left(beside, self.address, key=_address_of)]
        if not beside:
            del _blocks[self._key]


_address_of, _end_of = operator.attrgetter("address"), operator.attrgetter("end")

#: By the id of the object that owns the memory, which lives at least as long as its views, and the memory space: in the order of their
#: addresses, and so of their ends, since none covers another.
_blocks: dict[tuple[int, str], list[_Block]] = {}


def record(buffer: Any, space: str, category: Category, capture: int) -> int | None:
    """Records the memory of an object as a block of the capture with that number, and returns its address; None: it is a tracked
    object's, whose block it is. Blocks of tracked views of the object end."""
    address, nbytes, end = extent = _extent_of(buffer)
    where, key = _core.MemorySpace(space), (id(_owner_of(buffer)), space)
    beside = _blocks.get(key, [])
    if beside and beside[0].capture != capture:
        for block in list(beside):
            block.forget()
    before = bisect.bisect_right(beside, address, key=_address_of)
    if before != 0 and end <= beside[before - 1].end:
        return None
    first = bisect.bisect_left(beside, address, key=_address_of)
    for block in beside[first : bisect.bisect_right(beside, end, key=_end_of)]:
        block.free()
    where.allocate(address, nbytes, category)  # may raise
    _Block(buffer, extent, key, capture)
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
