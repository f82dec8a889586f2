"""Ends a script once its optimizers have made enough steps."""

from __future__ import annotations

import functools
import os
import weakref

import torch
from memprof.torch import _claimed_graphs
from torch.optim.optimizer import register_optimizer_step_post_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Steps on a stream of their own, which PyTorch's recipes for CUDA graphs make before a capture: 3, or 11 with DistributedDataParallel.
_MOST_WARM_UPS = 20

#: Once an optimizer has made so many times the steps that are asked for, others are not waited for.
_PATIENCE = 4


class StepCounter:
    """Counts the steps of all optimizers that are made from now on, and calls `end` once each has made `steps`. Those in the capture of a
    CUDA graph count when it is replayed, and those that warm it up do not. `observe` is called with each step that counts."""

    def __init__(self, steps: int, end: Callable[[], object], observe: Callable[[], object] | None = None) -> None:
        self._limit, self._end, self._observe, self._process = steps, end, observe, os.getpid()
        self._counts: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = weakref.WeakKeyDictionary()
        self._of_graphs: weakref.WeakKeyDictionary[Any, list[torch.optim.Optimizer]] = weakref.WeakKeyDictionary()
        self._warm_ups = 0
        _claimed_graphs.observe_replays(self._after_replay)
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
        graph = _claimed_graphs.captured_graph()
        if graph is not None:
            self._of_graphs.setdefault(graph, []).append(optimizer)
        elif _claimed_graphs.is_on_side_stream() and self._warm_ups < _MOST_WARM_UPS:
            self._warm_ups += 1
        else:
            self._count(optimizer)

    def _after_replay(self, graph: Any) -> None:
        for optimizer in self._of_graphs.get(graph, []):
            self._count(optimizer)

    def _count(self, optimizer: torch.optim.Optimizer) -> None:
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if self._observe is not None:
            self._observe()
        counts = list(self._counts.values())
        if min(counts) >= self._limit or max(counts) >= _PATIENCE * self._limit:
            self._end()
