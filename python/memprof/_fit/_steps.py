"""Ends a script once its optimizers have made enough steps."""

from __future__ import annotations

import functools
import os
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Once an optimizer has made so many times the steps that are asked for, others are not waited for.
_PATIENCE = 4


class StepCounter:
    """Counts the steps of all optimizers that are made from now on, and calls `end` once each has made `steps`."""

    def __init__(self, steps: int, end: Callable[[], object]) -> None:
        self._limit, self._end, self._process = steps, end, os.getpid()
        self._counts: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        register_optimizer_step_post_hook(self._after_step)
        original = torch.optim.Optimizer.__init__

        @functools.wraps(original)
        def initialize(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._counts[optimizer] = 0

        setattr(torch.optim.Optimizer, "__init__", initialize)

    @property
    def most(self) -> int:
        """The steps of the optimizer that made most."""
        return max(self._counts.values(), default=0)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if os.getpid() != self._process:
            return
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        counts = list(self._counts.values())
        if min(counts) >= self._limit or max(counts) >= _PATIENCE * self._limit:
            self._end()
