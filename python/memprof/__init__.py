"""Exact memory profiles of training loops.

    with memprof.capture() as capture:
        model = Model()
        memprof.snapshot("MODEL_CREATION")
        with memprof.track_operation("forward"):
            loss = model(x)
    print(capture.profile)

Names are those of the C++ library. A call that marks what a program does (`snapshot`, `track_operation`, `annotate`) does nothing
while no capture is active, so that an instrumented program also runs unprofiled.
"""

from __future__ import annotations

from ._capture import Capture, NoDispatch, capture, no_dispatch, real_scope, track, track_operation
from ._core import (
    Error,
    MemoryFit,
    MemorySpace,
    Profile,
    Table,
    Trace,
    annotate,
    current_profile,
    device_presets,
    discard_capture,
    end_capture,
    is_capturing,
    memory_checkpoint,
    read,
    snapshot,
)
from ._core import version as __version__
from ._notebook import repr_html

__all__ = [
    "Capture",
    "Error",
    "MemoryFit",
    "MemorySpace",
    "NoDispatch",
    "Profile",
    "Table",
    "Trace",
    "__version__",
    "annotate",
    "capture",
    "current_profile",
    "device_presets",
    "discard_capture",
    "end_capture",
    "is_capturing",
    "memory_checkpoint",
    "no_dispatch",
    "print_memory_usage",
    "read",
    "real_scope",
    "snapshot",
    "track",
    "track_operation",
]


def print_memory_usage() -> None:
    """Prints the summary of the active capture so far, or of the last one."""
    print(current_profile(), end="")


Profile._repr_html_ = repr_html  # type: ignore[attr-defined]
