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

    It ends where a module is called next, outside of a backward pass: by then, a program that ends its steps itself has done so; optimizers
    whose steps follow each other make one together, and so do those that make theirs within a backward pass. Optimizers that take turns,
    as those of a GAN, have names of their own, so that a round of them is one step of the profile.
    """

    def __init__(self) -> None:
        #: The optimizer whose step has not ended its segment yet, if any, and the segment's name. The program may drop the optimizer.
        self.waiting: list[tuple[weakref.ref[torch.optim.Optimizer], str]] = []
        self._numbers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._sees_modules = True
        self._hook = register_optimizer_step_post_hook(self._after_step)

    def remove(self) -> None:
        """Also ends the segment of a step that nothing followed."""
        self._hook.remove()
        self._end_segment()

    def module_is_called(self) -> None:
        """To be called before a module is, if a step is waiting."""
        if torch._C._current_graph_task_id() == -1:
            self._end_segment()

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if any(last() is optimizer for last, _ in self.waiting):
            self._sees_modules = False  # no module was called since: the program has none, or they are not recorded
        if not self.waiting:
            self.waiting.append((weakref.ref(optimizer), self._name_of(optimizer)))
        if not self._sees_modules:
            self._end_segment()

    def _end_segment(self) -> None:
        try:
            _, name = self.waiting.pop()
        except IndexError:  # none waits, or another thread that calls modules has ended its segment
            return
        _core._end_step(name)

    def _name_of(self, optimizer: torch.optim.Optimizer) -> str:
        number = self._numbers.get(optimizer)
        if number is None:
            taken = set(self._numbers.values())
            number = self._numbers[optimizer] = next(free for free in range(1, len(taken) + 2) if free not in taken)
        return "OPTIMIZER_STEP" if number == 1 else f"OPTIMIZER_STEP_{number}"
