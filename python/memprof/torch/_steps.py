"""Steps of optimizers as segments, in programs that make no snapshots."""

from __future__ import annotations

import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OptimizerSteps:
    """From its construction to `remove`, a segment ends with each step of an optimizer, until the program makes a snapshot of its own.

    Optimizers whose steps follow each other, with no call of a module between them, make one together, and so do those that make theirs
    within a backward pass. Which one is the last of them is known once it was; its step then ends the segment at once. Until then, the
    segment ends where a module is called next, outside of a backward pass: by then, a program that ends its steps itself has done so.
    Optimizers that take turns, as those of a GAN, have names of their own, so that a round of them is one step of the profile.
    """

    def __init__(self) -> None:
        #: The steps since a module was called, if any: the optimizer that made the last one, and the name of their segment; no name: it has
        #: ended. The program may drop the optimizer.
        self.waiting: list[tuple[weakref.ref[torch.optim.Optimizer], str | None]] = []
        self._numbers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._are_last: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._sees_modules = True
        self._hook = register_optimizer_step_post_hook(self._after_step)

    def remove(self) -> None:
        """Also ends the segment of a step that nothing followed."""
        self._hook.remove()
        self._end_segment()

    def module_is_called(self) -> None:
        """To be called before a module is, if a step is waiting."""
        if torch._C._current_graph_task_id() == -1:
            last = self._end_segment()
            if last is not None:
                self._are_last.add(last)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        last, name = self._take_waiting()
        if last is optimizer:  # no module was called since
            if name is not None:
                self._sees_modules = False  # the program has none, or they are not recorded
        elif last is not None:
            self._are_last.discard(last)
            if name is None:  # as if it had made its step before the last one
                self.waiting.append((weakref.ref(optimizer), None))
                return
        self.waiting.append((weakref.ref(optimizer), name or self._name_of(optimizer)))
        if not self._sees_modules or optimizer in self._are_last:
            self._end_segment()
            self.waiting.append((weakref.ref(optimizer), None))

    def _take_waiting(self) -> tuple[torch.optim.Optimizer | None, str | None]:
        try:
            last, name = self.waiting.pop()
        except IndexError:  # none waits, or another thread that calls modules has ended its segment
            return None, None
        return last(), name

    def _end_segment(self) -> torch.optim.Optimizer | None:
        last, name = self._take_waiting()
        if name is not None:
            _core._end_step(name)
        return last

    def _name_of(self, optimizer: torch.optim.Optimizer) -> str:
        number = self._numbers.get(optimizer)
        if number is None:
            taken = set(self._numbers.values())
            number = self._numbers[optimizer] = next(free for free in range(1, len(taken) + 2) if free not in taken)
        return "OPTIMIZER_STEP" if number == 1 else f"OPTIMIZER_STEP_{number}"
