"""Trials of a program that was built with memprof: its session is switched on, simulated, by the environment."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import tempfile

from .. import _core
from ._outcome import Outcome
from ._trials import last_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._request import Request


class ProgramTrials:
    """Each call of `run` is a run of the program, to its end."""

    def __init__(self, request: Request) -> None:
        self._request = request
        #: Of each trial.
        self.seconds: list[float] = []

    def run(self, value: int | None, changes: tuple[str, ...] = ()) -> Outcome:
        """The program with that value of the request's number, or as it is given. There are no changes."""
        import time

        request, begin = self._request, time.monotonic()
        with tempfile.TemporaryDirectory(prefix="memprof_fit_") as folder:
            environment = {**os.environ, **request.environment(value), "MEMPROF": "1", "MEMPROF_TRACE": "1"}
            environment.update(MEMPROF_NO_DISPATCH="1", MEMPROF_OUTPUT_DIR=os.path.join(folder, "session"))
            if request.device in _core.device_presets:
                environment["MEMPROF_DEVICE"] = request.device
            output = os.path.join(folder, "output")
            outcome = self._run(request.arguments(value), environment, output)
            outcome.output = "" if request.shows_output else last_of(output)
            if not outcome.failed:
                self._measure(outcome, glob.glob(os.path.join(folder, "session", "*.memtrace")))
        self.seconds.append(time.monotonic() - begin)
        return outcome

    def _run(self, command: list[str], environment: dict[str, str], output: str) -> Outcome:
        with open(output, "wb") as file:
            printed = None if self._request.shows_output else file
            try:
                done = subprocess.run(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=2 if printed is None else printed,
                    stderr=printed,
                    timeout=self._request.timeout,
                )
            except OSError as fault:
                raise _core.Error(f"cannot run '{command[0]}': {fault.strerror}") from None
            except subprocess.TimeoutExpired:
                reason = f"took more than {self._request.timeout} s; --timeout SECONDS gives it more"
                return Outcome(ended="died", status=1, fault=reason)
        if done.returncode < 0:
            reason = f"was ended by {signal.Signals(-done.returncode).name}"
            return Outcome(ended="died", status=128 - done.returncode, fault=reason)
        return Outcome(ended="exit" if done.returncode else "end", status=done.returncode)

    def _measure(self, outcome: Outcome, traces: list[str]) -> None:
        """Of the process with the greatest peak; in the device's space or, where the program knows of none, in its largest."""
        best: tuple[int, str, _core.SpaceProfile] | None = None
        for path in traces:
            for space in _core.read(path).spaces:
                rank = (space.name == self._request.space) * 2**62 + space.cumulative_peak
                if best is None or rank > best[0]:
                    best = rank, path, space
        if best is None:
            return
        _, path, space = best
        outcome.live, outcome.taken = space.cumulative_peak, space.allocations
        if space.name == self._request.space:
            trace, request = _core.Trace(path), self._request

            def predict(device: str) -> _core._Prediction:
                return trace._predict(device, context=request.context, space=request.space, alloc_conf=request.alloc_conf)

            outcome.judge(predict(request.device))
            outcome.presets = {name: predict(name).fits for name in _core.device_presets if _core._cuda_capacity(name)}
        else:
            outcome.allocated = outcome.reserved = outcome.total = outcome.live
            outcome.fits = outcome.live <= self._request.capacity
            outcome.operation = space.peak_operation
            for name in _core.device_presets:
                if capacity := _core._cuda_capacity(name):
                    outcome.presets[name] = outcome.live <= capacity
