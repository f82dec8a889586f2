"""`memprof waterfall --run train.py --batch-size 16`: the first steps of a script, simulated and for real, side by side.

Each run is a process of its own, which leaves a trace; the program `memprof` compares the traces.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: The options that only scripts have.
_STEPS, _SHOW_OUTPUT = "--steps", "--show-output"


#: What a message about a script looks for among its arguments: options that only memprof has.
_OPTIONS = (_STEPS, _SHOW_OUTPUT, "--run", "--map", "--all", "--space", "--json", "--json-out", "--html", "--width")


def place_of_script(arguments: list[str]) -> int | None:
    """Where the arguments of `memprof waterfall` name a script or a module of Python to run."""
    for place, argument in enumerate(arguments):
        if argument == "-m" or argument.endswith((".py", ".pyw")):
            return place if "--run" in arguments[:place] else None
    return None


def names_script(arguments: list[str]) -> bool:
    """Whether a file of the comparison is a script, to be run."""
    return any(argument.endswith((".py", ".pyw")) for argument in arguments)


def refuse_script(arguments: list[str]) -> int:
    script = next(argument for argument in arguments if argument.endswith((".py", ".pyw")))
    print(f"memprof waterfall: a script follows --run: memprof waterfall --run {script}", file=sys.stderr)
    return 2


def main(program: str, arguments: list[str], place: int) -> int:
    """Runs the script twice and has `program` compare the runs. Returns the exit status."""
    import subprocess
    import tempfile

    from . import _core
    from .run import require_script

    script = arguments[place:]
    require_script(script, "memprof waterfall")
    try:
        options, steps, shows_output = _own_options(arguments[:place])
        if (status := subprocess.call([program, "waterfall", "--check-before-run", *options])) != 0:
            return status
        with tempfile.TemporaryDirectory(prefix="memprof_waterfall_") as folder:
            files = [os.path.join(folder, f"{name}.memtrace") for name in ("simulated", "real")]
            for file in files:
                if (status := _run(file, steps, script, shows_output)) != 0:
                    return status
            return subprocess.call([program, "waterfall", *options, "--of-script", *files])
    except _core.Error as fault:
        print(f"memprof waterfall: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _own_options(given: list[str]) -> tuple[list[str], int, bool]:
    """What is left for the program, after how many steps a run ends, and whether the script's prints are shown."""
    from . import _core

    rest: list[str] = []
    steps, shows_output = "2", False
    left = list(given)
    while left:
        argument = left.pop(0)
        if argument == _STEPS and left:
            steps = left.pop(0)
        elif argument.startswith(f"{_STEPS}="):
            steps = argument.partition("=")[2]
        elif argument == _SHOW_OUTPUT:
            shows_output = True
        elif argument != "--run":
            rest.append(argument)
    if not steps.isdecimal() or int(steps) == 0:
        raise _core.Error(f"{_STEPS} is '{steps}'; expected a whole number from 1 on")
    return rest, int(steps), shows_output


def _run(file: str, steps: int, script: list[str], shows_output: bool) -> int:
    """The script's exit status, or 2 if it has nothing to compare. What it printed last is shown if that is not 0."""
    import subprocess

    from ._fit._trials import last_of
    from ._script_help import misplaced

    how = "real" if os.path.basename(file) == "real.memtrace" else "simulated"
    if sys.stderr.isatty():
        print(f"memprof waterfall: {how} run", file=sys.stderr, flush=True)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    call = [sys.executable, *flags, "-m", __name__, how, file, str(steps), *script]
    printed = f"{file}.printed"
    with open(printed, "ab") as output:
        shown = 2 if shows_output else output
        status = subprocess.run(call, stdin=subprocess.DEVNULL, stdout=shown, stderr=shown).returncode
    name = script[1] if script[0] == "-m" else os.path.basename(script[0])
    if status == 0 and os.path.exists(file):
        if _has_tensors(file, how):
            return 0
        status, what = 2, "made no tensor of torch, so there is nothing to compare"
    elif status < 0:
        what = f"was ended by signal {-status} in the {how} run"
    else:
        what = f"ended with exit status {status} in the {how} run"
    print(last_of(printed), end="", file=sys.stderr)
    why = misplaced(script, _OPTIONS, "memprof waterfall") if status > 0 else ""
    print(f"memprof waterfall: {name} {what}{why}", file=sys.stderr)
    return 128 - status if status < 0 else status or 1


def _has_tensors(file: str, how: str) -> bool:
    """Raises `Error` if this machine does not have the memory for what is simulated."""
    from . import _core

    try:
        spaces = _core.read(file).spaces
    except _core.Error as fault:
        if "is empty" in str(fault):
            return False
        raise
    needed = max((space.cumulative_peak for space in spaces if space.name == "cpu"), default=0)
    available = _core._available_memory()
    if how == "simulated" and needed > available:
        raise _core.Error(f"the real run needs {needed / 2**30:.3g} GiB, but only {available / 2**30:.3g} GiB is available")
    return any(space.cumulative_peak != 0 for space in spaces)


def _become_run() -> None:
    """This process is a run: it becomes the script, until its optimizers have made enough steps."""
    import atexit

    from . import _core
    from ._capture import Capture, NoDispatch
    from .run import become, without_frames_of_ours

    how, file, steps, *script = sys.argv[1:]
    try:
        import torch
    except ImportError as fault:
        sys.exit(f"memprof waterfall: scripts are compared where torch is installed: {fault}")
    from ._fit._steps import StepCounter

    trace_file = file.replace("%", "%%")
    try:
        if how == "real":
            capture = Capture(trace_file=trace_file)
        else:
            capture = NoDispatch(trace_file=trace_file, device="cuda" if torch.cuda.is_available() else "")
    except _core.Error as fault:
        sys.exit(f"memprof waterfall: {fault}")

    def note(ended_itself: bool = True) -> None:
        _core._put_script_run(counter.most, int(steps), ended_itself)

    def end() -> NoReturn:
        note(ended_itself=False)
        capture.end()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    counter = StepCounter(int(steps), end, note)
    note()
    atexit.register(capture.end)  # where the script ends before
    sys.excepthook = without_frames_of_ours(sys.excepthook)
    become(script, "memprof waterfall")


if __name__ == "__main__":
    from memprof._waterfall import _become_run as become_run

    become_run()
