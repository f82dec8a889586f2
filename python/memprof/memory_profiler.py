"""pie's memory profiler: the same calls and the same file, with exact numbers.

    from memprof.memory_profiler import initialize_memory_tracker, memory_checkpoint, stop_memory_tracker
    initialize_memory_tracker(output_dir="./profiles")
    memory_checkpoint("after_model_load")
    stop_memory_tracker()

The tracker leaves `memory_profile_YYYYMMDD_HHMMSS.json` when it is stopped, at the end of the program, and at SIGTERM and SIGHUP.
Only `initialize_memory_tracker` begins to record; no call of this module raises because something cannot be recorded or written:
a line on stderr says so.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
import time

from . import _capture, _core
from ._after_import import after_import
from ._settings import Settings, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

__all__ = [
    "MemoryTracker",
    "get_memory_tracker",
    "initialize_memory_tracker",
    "memory_checkpoint",
    "stop_memory_tracker",
]

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Set by torchrun, Open MPI, MVAPICH, MPICH and Slurm: the rank, and the number of processes, without which it means nothing.
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class MemoryTracker:
    """Records from `start` to `stop`; made by `initialize_memory_tracker`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._capture: _capture.Capture | None = None
        self._stem = ""
        self._process = 0
        self._forget_torch: Callable[[], None] = lambda: None
        self._wants_end = threading.Event()
        self._stopping = threading.Lock()
        self._signal_meanwhile = 0

    @property
    def is_active(self) -> bool:
        """Whether it records."""
        return self._capture is not None and self._process == os.getpid() and self._capture.is_active

    def track_operation(self, name: str) -> _capture.track_operation:
        """Names what this thread does, with `with`; operations nest. Reads the clock at both ends, which `memprof`'s own does not."""
        return _TimedOperation(name)

    def track_pytorch_ops(self) -> track_pytorch_ops:
        """Counts PyTorch's operators, with `with`: calls, times, bytes, by the shapes of inputs. About 300 ns an operator."""
        return track_pytorch_ops()

    def start(self) -> None:
        """Begins to record. Does nothing but say so if it cannot."""
        self._process = os.getpid()
        try:
            os.makedirs(self._settings.output_dir, exist_ok=True)
            self._stem = _reserve(self._settings.output_dir)
            self._capture = _capture.Capture(trace_file=self._trace.replace("%", "%%"), torch=False)
        except (OSError, _core.Error) as fault:
            say(f"the memory tracker records nothing: {fault}")
            if self._stem:
                _remove(self._trace)
            return
        self._forget_torch = after_import("torch", self._record_torch)
        threading.Thread(target=self._take_checkpoints, name="memprof checkpoints", daemon=True).start()
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, self._on_signal)

    def stop(self) -> str | None:
        """Ends the recording and writes its file, whose path it returns; None if there is nothing to end."""
        if not self._stopping.acquire(blocking=False):
            return None
        try:
            self._wants_end.set()
            self._forget_torch()
            capture, self._capture = self._capture, None
            if capture is None:
                return None
            capture.end()
            if self._process != os.getpid():  # in a child, whose parent writes the file
                return None
            self._leave_signals()
            return self._write()
        finally:
            self._stopping.release()
            if self._signal_meanwhile:
                _end_by(self._signal_meanwhile)

    @property
    def _trace(self) -> str:
        return self._stem + ".memtrace"

    def _write(self) -> str | None:
        path = self._stem + ".json"
        try:
            _core.Trace(self._trace).export("session", path)
        except _core.Error as fault:
            say(f"cannot write the profile '{path}': {fault}; `memprof export --format session` makes it from '{self._trace}'")
            return None
        if not self._settings.trace:
            _remove(self._trace)
        say(f"profile in '{path}'")
        return path

    def _record_torch(self) -> None:
        capture = self._capture
        if capture is None or not self.is_active:
            return
        try:
            capture.record_torch(steps=False)
        except _core.Error as fault:
            say(f"tensors are not recorded: {fault}")

    def _take_checkpoints(self) -> None:
        while not self._wants_end.wait(self._settings.interval):
            _core.memory_checkpoint("")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._stopping.locked():  # it may be this very thread that writes the file
            self._signal_meanwhile = number
            return
        self.stop()
        _end_by(number)

    def _leave_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)


class _TimedOperation(_capture.track_operation):
    """The operations of pie are few, and its file and its chart have their times."""

    __slots__ = ()

    def __enter__(self) -> _capture.track_operation:
        _core._mark_time()
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        _core._mark_time()
        super().__exit__(kind, fault, trace)


class track_pytorch_ops:
    """Counts PyTorch's operators: `MemoryTracker.track_pytorch_ops`."""

    def __init__(self) -> None:
        self._is_counting = False

    def __enter__(self) -> track_pytorch_ops:
        is_loaded = _core._is_torch_library_loaded(False) or _core._is_torch_library_loaded(True)
        if not self._is_counting and _core.is_capturing() and is_loaded:
            _core._begin_torch_operators()
            self._is_counting = True
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_counting:
            self._is_counting = False
            _core._end_torch_operators()


_tracker: MemoryTracker | None = None


def initialize_memory_tracker(
    output_dir: str | os.PathLike[str] = ".",
    enabled: bool = True,
    interval: float = 5.0,
    *,
    config: str | os.PathLike[str] | None = None,
) -> MemoryTracker:
    """Begins to record, if enabled, with a checkpoint of what is live every `interval` seconds. Stops a tracker that records.

    `config` names a TOML file (`[[backend]] enable_memory_profiling = true`, or the keys of `[memprof]`), which overrides the
    arguments; MEMPROF_CONFIG names another, and the environment overrides both: MEMPROF, MEMPROF_OUTPUT_DIR, MEMPROF_INTERVAL,
    and MEMPROF_TRACE, which keeps the trace beside the file.
    """
    global _tracker
    if _tracker is not None:
        _tracker.stop()
    settings = Settings(output_dir, enabled, interval)
    if config is not None:
        settings.read_file(config)
    settings.read_environment()
    _tracker = MemoryTracker(settings)
    if settings.enabled:
        _tracker.start()
    return _tracker


def get_memory_tracker() -> MemoryTracker:
    """The tracker; one that records nothing where none was initialized."""
    global _tracker
    if _tracker is None:
        _tracker = MemoryTracker(Settings(".", False, 5.0))
    return _tracker


def memory_checkpoint(name: str) -> contextlib.AbstractContextManager[None]:
    """Keeps what is live at this moment under that name. Does nothing while nothing is recorded. `with` may take the result."""
    _core.memory_checkpoint(name)
    return contextlib.nullcontext()


def stop_memory_tracker() -> str | None:
    """Ends the recording and writes its file, whose path it returns; None if there is nothing to end."""
    return None if _tracker is None else _tracker.stop()


atexit.register(stop_memory_tracker)


def _reserve(folder: str) -> str:
    """The name of the files without their endings, after the present time; creates the trace, so that the name is taken."""
    stem = os.path.join(folder, time.strftime("memory_profile_%Y%m%d_%H%M%S"))
    ranks = (os.environ[rank] for rank, size in _RANKS if rank in os.environ and size in os.environ)
    if (rank := next(ranks, "")).isdecimal():
        stem += f"_rank{rank}"
    for number in range(1, 10_000):
        name = stem if number == 1 else f"{stem}_{number}"
        if os.path.exists(name + ".json"):
            continue
        try:
            os.close(os.open(name + ".memtrace", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            continue
        return name
    raise FileExistsError(f"every name from '{stem}' to '{stem}_9999' is taken")


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass


def _end_by(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
