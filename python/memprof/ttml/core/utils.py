"""`MemoryUsageTracker`, as in ttml.core.utils, over memprof's capture."""

from __future__ import annotations

from ... import _capture, _core
from ...ttnn.graph import RunMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MemoryUsageGuard", "MemoryUsageTracker"]


class MemoryUsageGuard:
    """Ends the capture and discards it when it is collected, unless it was released. A `with` block releases it."""

    def __init__(self, capture: _capture.Capture) -> None:
        self._capture: _capture.Capture | None = capture

    def release(self) -> None:
        """Leaves the capture to `MemoryUsageTracker.end_capture` and `clear`."""
        self._capture = None

    def __enter__(self) -> MemoryUsageGuard:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def __del__(self) -> None:
        capture, self._capture = self._capture, None
        if capture is not None and capture is MemoryUsageTracker._capture:
            MemoryUsageTracker.clear()


class MemoryUsageTracker:
    """One capture at a time, with a segment for each phase of the training."""

    _capture: _capture.Capture | None = None

    @staticmethod
    def begin_capture(mode: RunMode = RunMode.NORMAL) -> MemoryUsageGuard:
        """Begins a capture. Hold on to the guard: the capture ends with it. Raises `memprof.Error` while a capture is active."""
        capture: _capture.Capture = _simulation() if mode is RunMode.NO_DISPATCH else _capture.Capture()
        MemoryUsageTracker._capture = capture
        return MemoryUsageGuard(capture)

    @staticmethod
    def snapshot(name: str) -> None:
        """Ends the current phase, which gets that name."""
        _core.snapshot(name)

    @staticmethod
    def end_capture(name: str = "END_TRACE") -> None:
        """Ends the capture; its last phase gets that name. Does nothing without one."""
        if MemoryUsageTracker._capture is not None:
            MemoryUsageTracker._capture.end(name)

    @staticmethod
    def print_memory_usage() -> None:
        """Prints each phase, in the tracker's format: to the byte what scripts that read its logs expect."""
        profile = _core.current_profile()
        print(profile.tracker_text() if profile.segments else "WARNING: No traces captured\n", end="")

    @staticmethod
    def clear() -> None:
        """Discards the capture; ends it first."""
        capture, MemoryUsageTracker._capture = MemoryUsageTracker._capture, None
        if capture is not None:
            capture.end()
            _core.discard_capture()


def _simulation() -> _capture.Capture:
    begin = getattr(_capture, "no_dispatch", None)
    if begin is None:
        raise _core.Error("MemoryUsageTracker.begin_capture: this memprof simulates nothing from Python; use RunMode.NORMAL")
    capture: _capture.Capture = begin()
    return capture
