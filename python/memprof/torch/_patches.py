"""Attributes that are other ones for a time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_absent = object()


class Patches:
    """Sets attributes of modules and classes, until `undo`."""

    def __init__(self) -> None:
        self._previous: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        self._previous.append((owner, name, vars(owner).get(name, _absent)))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._previous:
            owner, name, value = self._previous.pop()
            if value is _absent:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
