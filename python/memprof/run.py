"""Records a Python script as it is: `memprof run train.py --batch-size 16`.

The program `memprof` runs this module in a process of its own, reads the trace that the process leaves, whatever ends it, and
prints the summary. Its environment says where the trace goes: tools/preload/preload.cpp.
"""

from __future__ import annotations

import atexit
import os
import sys

from . import _capture, _core
from ._after_import import after_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_OPTIONS_WITH_VALUE = ("--trace", "--profile", "--page", "--json")
_OPTIONS = (*_OPTIONS_WITH_VALUE, "--infer-operations", "--uses", "--stacks", "--children")


def is_script(arguments: list[str]) -> bool:
    """Whether the arguments of `memprof run` name a script or a module of Python, rather than a program after `--`."""
    place = _place_of_script(arguments)
    return place < len(arguments) and (arguments[place] == "-m" or arguments[place].endswith((".py", ".pyw")))


def command_of(program: str, arguments: list[str]) -> list[str]:
    """The call of the program `memprof` that runs and records the script in the arguments of `memprof run`."""
    import subprocess

    place = _place_of_script(arguments)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [program, "run", *arguments[:place], "--", sys.executable, *flags, "-m", __name__, *arguments[place:]]


def script_of(arguments: list[str]) -> list[str]:
    """The script, or `-m` and a module, and what follows it in the arguments of `memprof run`."""
    return arguments[_place_of_script(arguments) :]


def require_script(script: list[str], command: str) -> None:
    """Ends this process, with Python's own exit status, if a script, or with `-m` a module, is absent."""
    name, *module = script
    if name != "-m":
        _text_of(name, command)
    elif module and not _has_module(module[0].partition(".")[0]):
        print(f"{command}: no module named '{module[0]}'", file=sys.stderr)
        sys.exit(1)


def _has_module(name: str) -> bool:
    """Whether `python -m` finds a module or a package of that name, without a dot."""
    import importlib.util

    path = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return True  # it is there, and Python says what is wrong with it
    finally:
        sys.path[:] = path


def _place_of_script(arguments: list[str]) -> int:
    place = 0
    while place < len(arguments) and arguments[place].startswith("--") and arguments[place] != "--":
        place += 2 if arguments[place] in _OPTIONS_WITH_VALUE else 1
    return place


def main() -> None:
    """Becomes the script: its `__main__`, its arguments, its exit status, its tracebacks."""
    folder = os.environ.pop("RUN_BY_MEMPROF_FOLDER", "")
    os.environ.pop("RUN_BY_MEMPROF_PROCESS", None)
    os.environ.pop("RUN_BY_MEMPROF_ITSELF", None)
    records_children = os.environ.pop("RUN_BY_MEMPROF_CHILDREN", None) is not None
    arguments = sys.argv[1:]
    if not folder or not arguments or arguments == ["-m"]:
        sys.exit("memprof run: expected a script, or -m and a module: memprof run [OPTIONS] SCRIPT.py [ARGUMENTS]")
    recording = _Recording(folder)
    recording.begin()
    if records_children:
        os.register_at_fork(after_in_child=recording.begin)
    atexit.register(recording.end)  # the first, so that it comes after all of the script's own
    sys.excepthook = without_frames_of_ours(sys.excepthook)
    try:
        become(arguments, "memprof run")
    except SystemExit as end:
        if end.code == 2:  # what parsers of arguments end with
            _say_misplaced(arguments)
        raise


def _say_misplaced(script: list[str]) -> None:
    from ._script_help import misplaced

    name = script[1] if script[0] == "-m" else os.path.basename(script[0])
    if why := misplaced(script, _OPTIONS, "memprof run"):
        print(f"memprof run: {name} ended with exit status 2{why}", file=sys.stderr, flush=True)


def become(arguments: list[str], command: str) -> None:
    """Runs a script, or with `-m` a module, as the interpreter does, in place of the `__main__` that there was."""
    if arguments[0] == "-m":
        _become_module(arguments[1:])
    else:
        _become_script(arguments, command)


class _Recording:
    """The capture of this process, which `_exit` and signals leave unended: the program `memprof` ends such a trace."""

    def __init__(self, folder: str) -> None:
        self._folder, self._process = folder, 0
        self._infers = os.environ.pop("RUN_BY_MEMPROF_INFER", None) is not None
        self._uses = os.environ.pop("RUN_BY_MEMPROF_USES", None) is not None
        self._stacks = {"sampled": 65_536, "all": 1}.get(os.environ.pop("RUN_BY_MEMPROF_STACKS", ""), 0)
        self._active: _capture.Capture | None = None
        self._forget_torch: Callable[[], None] | None = None

    def begin(self) -> None:
        self._process = os.getpid()
        name = os.path.join(self._folder, f"{self._process}.1.memtrace")
        try:
            self._active = _capture.Capture(
                trace_file=name.replace("%", "%%"), torch=False, infer_operations=self._infers, uses=self._uses, stacks=self._stacks
            )
        except _core.Error as fault:
            print(f"memprof run: {fault}", file=sys.stderr, flush=True)
            if self._stacks and str(fault).startswith("stacks"):  # of this Python cannot be read; all else is recorded
                self._stacks = 0
                self.begin()
        else:
            if self._forget_torch is not None:
                self._forget_torch()  # the parent's wait for torch is in this child, too
            self._forget_torch = after_import("torch", self._record_torch)

    def _record_torch(self) -> None:
        if self._active is None or not self._active.is_active:
            return
        try:
            self._active.record_torch()
        except _core.Error as fault:
            print(f"memprof run: tensors are not recorded: {fault}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._active is not None and self._process == os.getpid():
            self._active.end()


def _become_module(arguments: list[str]) -> None:
    import runpy

    sys.argv = ["-m", *arguments[1:]]
    _put_first(os.getcwd())
    _new_main()
    runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]  # what `python -m` calls


def _become_script(arguments: list[str], command: str) -> None:
    path = arguments[0]
    sys.argv = list(arguments)
    _put_first(os.path.dirname(os.path.realpath(path)))
    text = _text_of(path, command)
    place = os.path.join(os.getcwd(), path)
    names = _new_main()
    names.update(__file__=place, __cached__=None)
    exec(compile(text, place, "exec"), names)


def _text_of(path: str, command: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as fault:
        print(f"{command}: cannot open '{path}': {fault.strerror}", file=sys.stderr)
        sys.exit(2)  # as Python does


def _new_main() -> dict[str, object]:
    """Makes a `__main__` as a script finds it, in place of this module's."""
    import builtins
    import types

    made = types.ModuleType("__main__")
    made.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = made
    return made.__dict__


def _put_first(folder: str) -> None:
    """Has modules be found in that folder first, as the interpreter does, in place of what it put there for this module."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = folder


def without_frames_of_ours(
    show: Callable[[type[BaseException], BaseException, TracebackType | None], object],
) -> Callable[[type[BaseException], BaseException, TracebackType | None], object]:
    """Shows tracebacks without the frames in which this module runs the script."""

    def show_script(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        first = trace
        while first is not None and first.tb_frame.f_globals is not sys.modules["__main__"].__dict__:
            first = first.tb_next
        # None where the script has a fault of syntax, which Python shows without a traceback.
        show(kind, fault.with_traceback(first), first)

    return show_script


if __name__ == "__main__":
    # Also importable by its name, which is where its state is: the script replaces `__main__`.
    from memprof.run import main as run

    run()
