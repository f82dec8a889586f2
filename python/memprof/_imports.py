"""Reading the recordings of other tools: what `memprof import` does."""

from __future__ import annotations

import os
import warnings

from ._core import Trace, _import_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    ImportFormat = Literal["auto", "torch-snapshot", "rmm", "heaptrack", "xplane", "tt-mlir", "ttnn-graph", "session"]
    Frames = Literal["own", "all"]


def import_recording(
    path: str | os.PathLike[str],
    format: ImportFormat = "auto",
    *,
    frames: Frames | None = None,
    module: str = "",
    classes: str | os.PathLike[str] = "",
    per_core: bool = False,
    operations: int = 0,
    keep_damaged: bool = False,
) -> Trace:
    """The recording of another tool as a trace: the same as `memprof import FORMAT FILE` writes (docs/formats.md).

    `format` is 'torch-snapshot' (PyTorch's `_dump_snapshot`, pickle or JSON), 'rmm' (CSV of its logging adaptor), 'heaptrack' (packed or
    not), 'xplane' (XLA profile, *.xplane.pb or *.hlo_proto.pb), 'tt-mlir' (log of its runtime), 'ttnn-graph' (JSON of GraphProcessor),
    'session' (JSON of pie's memory profiler), or 'auto': by the content. `frames`, for 'heaptrack' and 'torch-snapshot': which frames of
    stacks become operations; `module` and `classes`, for 'xplane': the one program to read, and a file of rules; `per_core`, for
    'ttnn-graph'. `operations` is how many have a row of their own in the profile; 0: as many as the program keeps.

    What there is to remark about a recording is warned about. One that is damaged raises `Error`, which says where; with `keep_damaged`,
    it is a warning, and the trace, whose profile is not exact, has all before the damage. The trace is in memory.
    """
    trace, remarks = _import_recording(path, format, frames or "", module, os.fspath(classes), per_core, operations, keep_damaged)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return trace
