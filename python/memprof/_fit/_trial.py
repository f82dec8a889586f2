"""A trial: this process becomes the script, simulated, until it has made enough optimizer steps."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys

import torch

from .. import _core
from .._capture import NoDispatch
from ..run import become, without_frames_of_ours
from ..torch._modules import ModuleScopes
from ._changes import make_changes
from ._installed import is_installed
from ._outcome import Outcome
from ._steps import StepCounter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ._trials import Plan


class Trial:
    """`run` never returns: the process ends once the answer is in the file."""

    def __init__(self, plan: Plan, answer: str) -> None:
        self._plan = plan
        self._answer = answer
        self._process = os.getpid()
        self._options: list[tuple[list[str], int]] = []
        self._modules_before = set(sys.modules)

    def run(self) -> NoReturn:
        if self._plan.is_first:
            self._watch_argparse()
        try:
            self._capture = NoDispatch(device=self._plan.device, trace=True, modules=False, steps=False)
        except _core.Error as fault:
            self._write(Outcome(ended="raised", status=2, fault=str(fault)))
        make_changes(self._plan.changes)
        self._scopes = ModuleScopes(whole_paths=True)
        self._steps = StepCounter(self._plan.steps, lambda: self._end(Outcome(ended="steps")))
        outcome = self._become_script()
        if os.getpid() == self._process:
            self._end(outcome)
        sys.stdout.flush()
        os._exit(outcome.status)  # a process that the script forked

    def _become_script(self) -> Outcome:
        try:
            become(self._plan.command, "memprof fit")
        except SystemExit as end:
            if end.code is None or end.code == 0:
                return Outcome(ended="end")
            if not isinstance(end.code, int):
                print(end.code, file=sys.stderr)
            return Outcome(ended="exit", status=end.code if isinstance(end.code, int) else 1)
        except BaseException as fault:
            without_frames_of_ours(sys.excepthook)(type(fault), fault, fault.__traceback__)
            lines = str(fault).splitlines()
            return Outcome(ended="raised", status=1, fault=": ".join([type(fault).__name__, *lines[:1]]))
        return Outcome(ended="end")

    def _end(self, outcome: Outcome) -> NoReturn:
        self._capture.end()
        self._measure(outcome)
        outcome.steps = self._steps.most
        outcome.options = self._options
        if self._plan.is_first:
            outcome.imported = self._imported()
            outcome.repeated = _repeated_modules(self._scopes)
        self._write(outcome)

    def _write(self, outcome: Outcome) -> NoReturn:
        # In whole, or not at all.
        made = f"{self._answer}.made"
        with open(made, "w") as file:
            json.dump(dataclasses.asdict(outcome), file)
        os.replace(made, self._answer)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def _measure(self, outcome: Outcome) -> None:
        profile, plan = self._capture.profile, self._plan
        space = next((space for space in profile.spaces if space.name == plan.space), None)
        if space is None:
            return
        trace = self._capture.trace
        outcome.live, outcome.taken = space.cumulative_peak, space.allocations

        fraction = _core._claimed_memory_fraction()
        allowed = f"per_process_memory_fraction:{max(fraction, 1e-9):.9f}" if fraction < 1 else ""

        def predict(device: str, alloc_conf: str = plan.alloc_conf) -> _core._Prediction:
            alloc_conf = ",".join(part for part in (alloc_conf, allowed) if part)
            return trace._predict(device, context=plan.context, space=plan.space, alloc_conf=alloc_conf)

        outcome.judge(predict(plan.device))
        outcome.is_estimated = any(profile.facts.get(table) for table in ("approximations", "assumed_sizes"))
        if not plan.is_first:
            return
        for name in _core.device_presets:
            if _core._cuda_capacity(name):
                outcome.presets[name] = predict(name).fits
        if not outcome.fits:
            conf = ",".join(part for part in (plan.alloc_conf, "expandable_segments:True") if part)
            outcome.fits_expandable = predict(plan.device, conf).fits

    def _imported(self) -> list[str]:
        """Modules that are not the script's own, in the order of their import."""
        named: list[str] = []
        for name, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            if name not in self._modules_before and is_installed(origin, self._plan.command[0]):
                named.append(name)
        return named

    def _watch_argparse(self) -> None:
        original = argparse.ArgumentParser.parse_known_args

        def parse_known_args(parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> Any:
            found = original(parser, *args, **kwargs)
            for action in parser._actions:
                value = getattr(found[0], action.dest, None)
                if action.option_strings and type(value) is int and value > 0:
                    self._options.append((list(action.option_strings), value))
            return found

        setattr(argparse.ArgumentParser, "parse_known_args", parse_known_args)


def _repeated_modules(scopes: ModuleScopes) -> tuple[str, str, int] | None:
    """Where the model has most of its parameters in modules of one class, which have modules of their own: its blocks."""
    best: tuple[str, str, int] | None = None
    most = 0
    for root in list(scopes.roots):
        for path, module in root.named_modules():
            kinds: dict[type[torch.nn.Module], list[torch.nn.Module]] = {}
            for child in module.children():
                if next(child.children(), None) is not None:
                    kinds.setdefault(type(child), []).append(child)
            for kind, children in kinds.items():
                size = sum(parameter.numel() for child in children for parameter in child.parameters())
                if len(children) > 1 and size > most:
                    best, most = (path, f"{kind.__module__}.{kind.__qualname__}", len(children)), size
    return best
