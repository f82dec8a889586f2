"""Runs trials: each a fork of this process, which only imports what the first one imported."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import tempfile

from .. import _core
from ._installed import is_package
from ._outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

    from ._request import Request

_KEPT_OUTPUT = 16_000


@dataclasses.dataclass
class Plan:
    """What a trial does."""

    command: list[str]
    device: str
    space: str
    capacity: int
    #: What the CUDA context takes, if the user said it.
    context: int | None
    alloc_conf: str
    steps: int
    changes: tuple[str, ...]
    #: Also asks what is only known of the script as it is given.
    is_first: bool
    name: str


class Trials:
    """Each call of `run` is a run of the script. Imports torch."""

    def __init__(self, request: Request) -> None:
        # Before the first fork, since it may have to be compiled.
        from ..torch._library import load

        try:
            import torch
        except ImportError as fault:
            raise _core.Error(f"scripts are simulated where torch is installed: {fault}") from None
        if not hasattr(torch, "Event"):
            raise _core.Error(f"scripts are simulated with torch 2.5 or later; this is {torch.__version__}")
        load(no_dispatch=True)
        # Optimizers import it, which takes longer than all else that a small script does.
        _import(["torch._dynamo", *_imports_at_the_top(request.command[0])])
        self._request = request
        #: Of each trial.
        self.seconds: list[float] = []

    def run(self, value: int | None, changes: tuple[str, ...] = ()) -> Outcome:
        """The script with that value of the request's number, or as it is given."""
        import time

        request = self._request
        plan = Plan(
            command=request.arguments(value),
            device=request.device,
            space=request.space,
            capacity=request.capacity,
            context=request.context,
            alloc_conf=request.alloc_conf,
            steps=request.steps,
            changes=changes,
            is_first=not self.seconds,
            name=request.device_name,
        )
        if sys.stderr.isatty():
            words = [] if value is None or request.number is None else [request.number.text(value)]
            print(f"memprof fit: trial {len(self.seconds) + 1} {' '.join([*words, *changes])}", file=sys.stderr, flush=True)
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="memprof_fit_") as folder:
            outcome = self._run(plan, request.environment(value), folder)
        self.seconds.append(time.monotonic() - begin)
        if plan.is_first:
            _import(outcome.imported)
        return outcome

    def _run(self, plan: Plan, environment: dict[str, str], folder: str) -> Outcome:
        answer, output = os.path.join(folder, "answer"), os.path.join(folder, "output")
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            self._become_trial(plan, environment, answer, output)
        try:
            status = _wait(child, self._request.timeout)
        finally:
            _kill_group(child)  # its workers, too
        printed = "" if self._request.shows_output else last_of(output)
        if status is None:
            reason = f"took more than {self._request.timeout} s for {plan.steps} optimizer steps; --timeout SECONDS gives it more"
            return Outcome(ended="died", status=1, fault=reason, output=printed)
        if os.path.exists(answer):
            with open(answer) as file:
                return Outcome(**{**json.load(file), "output": printed})
        code = os.waitstatus_to_exitcode(status)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended itself (os._exit) with status {code}"
        fault = f"{how} before it made {plan.steps} optimizer steps"
        return Outcome(ended="died", status=128 - code if code < 0 else code, fault=fault, output=printed)

    def _become_trial(self, plan: Plan, environment: dict[str, str], answer: str, output: str) -> NoReturn:
        try:
            os.setpgid(0, 0)
            if self._request.shows_output:
                os.dup2(2, 1)
            else:
                file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
                os.dup2(file, 1)
                os.dup2(file, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.update(environment)
            from ._trial import Trial

            Trial(plan, answer).run()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)


def last_of(output: str) -> str:
    """What was printed last, in whole lines, enough for a traceback."""
    with open(output, "rb") as file:
        first = os.path.getsize(output) - _KEPT_OUTPUT
        file.seek(max(first, 0))
        text = file.read().decode(errors="replace")
    return text if first <= 0 else f"...\n{text.partition(chr(10))[2] or text}"


def _wait(child: int, seconds: int) -> int | None:
    """The status with which a process ended; None if it goes on after that time."""
    import select

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        descriptor = os.pidfd_open(child)
        try:
            if not select.select([descriptor], [], [], seconds)[0]:
                return None
        finally:
            os.close(descriptor)
        return os.waitpid(child, 0)[1]
    finally:
        signal.signal(signal.SIGTERM, previous)


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass


def _imports_at_the_top(script: str) -> list[str]:
    """What a script imports before it does anything else: `transformers`, `transformers.Trainer`."""
    import ast

    if script == "-m":
        return []
    try:
        with open(script, "rb") as file:
            statements = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.Import):
            names += (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            if statement.module and not statement.level:
                names += (f"{statement.module}.{alias.name}" for alias in statement.names)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            break
    return [name for name in names if is_package(name.partition(".")[0], script)]


def _import(names: list[str]) -> None:
    """Imports modules, so that the next trials need not: what cannot be imported here is left to them."""
    import contextlib
    import importlib

    import torch

    from ..torch._patches import Patches

    patches = Patches()
    # Modules that ask while they are imported should hear what they hear in a trial.
    patches.set(torch.cuda, "is_available", lambda: True)
    patches.set(torch.cuda, "device_count", lambda: 1)
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            for name in names:
                with contextlib.suppress(BaseException):
                    module, _, attribute = name.rpartition(".")
                    if module and hasattr(importlib.import_module(module), attribute):
                        continue
                    importlib.import_module(name)
    finally:
        patches.undo()
