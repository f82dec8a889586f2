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


def place_of_script(arguments: list[str]) -> int | None:
    """Where the arguments of `memprof waterfall` name a script or a module of Python to run."""
    for place, argument in enumerate(arguments):
        if argument in ("-h", "--help"):
            return None
        if argument == "-m" or argument.endswith((".py", ".pyw")):
            return place if "--run" in arguments[:place] else None
    return None


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
        with tempfile.TemporaryDirectory(prefix="memprof_waterfall_") as folder:
            files = [os.path.join(folder, f"{name}.memtrace") for name in ("simulated", "real")]
            for file in files:
                if (status := _run(file, steps, script, shows_output)) != 0:
                    return status
                if file == files[0]:
                    _require_memory(file)
            return subprocess.call([program, "waterfall", *options, *files])
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
    """The script's exit status. What it printed is shown if that is not 0."""
    import subprocess

    how = "real" if os.path.basename(file) == "real.memtrace" else "simulated"
    if sys.stderr.isatty():
        print(f"memprof waterfall: {how} run", file=sys.stderr, flush=True)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    call = [sys.executable, *flags, "-m", __name__, how, file, str(steps), *script]
    stdout, stderr = (2, 2) if shows_output else (subprocess.PIPE, subprocess.STDOUT)
    done = subprocess.run(call, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    if done.returncode == 0 and os.path.exists(file):
        return 0
    sys.stderr.flush()
    os.write(2, done.stdout or b"")
    name = script[1] if script[0] == "-m" else os.path.basename(script[0])
    how_it_ended = f"was ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with exit status {done.returncode}"
    print(f"memprof waterfall: {name} {how_it_ended} in the {how} run", file=sys.stderr)
    return 128 - done.returncode if done.returncode < 0 else done.returncode or 1


def _require_memory(simulated: str) -> None:
    """Raises `Error` if this machine does not have the memory for the run."""
    from . import _core

    try:
        profile = _core.read(simulated)
    except _core.Error as fault:
        if "is empty" in str(fault):
            raise _core.Error("the script made no tensor of torch, so there is nothing to compare") from None
        raise
    needed = max((space.cumulative_peak for space in profile.spaces if space.name == "cpu"), default=0)
    available = _core._available_memory()
    if needed > available:
        raise _core.Error(f"the real run needs {needed / 2**30:.3g} GiB, but only {available / 2**30:.3g} GiB is available")


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

    def end() -> NoReturn:
        capture.end()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    StepCounter(int(steps), end)
    atexit.register(capture.end)  # where the script ends before
    sys.excepthook = without_frames_of_ours(sys.excepthook)
    become(script, "memprof waterfall")


if __name__ == "__main__":
    from memprof._waterfall import _become_run as become_run

    become_run()
