"""Records unmodified PyTorch programs: `memprof.capture()` does, once a program has imported torch.

Every CPU tensor is a block in the space `cpu`, and every tensor on a CUDA device one in `cuda:0` and so on; operations are modules,
`torch.profiler.record_function` scopes and operators.
"""

from __future__ import annotations

from .. import _core
from ._library import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import torch

    from .._capture import Category

__all__ = ["annotate", "set_read_limit"]


def annotate(tensor: torch.Tensor, name: str, category: Category = "") -> None:
    """Names the block of a tensor for reports, and gives it a category. Does nothing while no capture is active."""
    load()
    _core._annotate_tensor(tensor._cdata, name, category or "other")


def set_read_limit(reads: int) -> None:
    """Sets how often one place of a program may read a value that a simulation (`memprof.no_dispatch`) does not know, counted anew
    whenever another place reads one for the first time; then the read raises `RuntimeError`, since a program that waits for such a
    value would never end. The default is 100,000. Raises `Error` if less than 1."""
    load(no_dispatch=True)
    _core._set_read_limit(reads)


_waits_for_cuda = False


def record_cuda() -> None:
    """Records CUDA devices in the capture that records libtorch: from now on, or once the program has initialised CUDA, which a capture
    does not do for it. That would take device memory, and a program could no longer fork or choose its devices."""
    import torch

    global _waits_for_cuda
    cuda: Any = torch.cuda  # functions without types
    if cuda.is_initialized():
        _core._record_cuda()
    elif torch.version.cuda and not _waits_for_cuda:
        _waits_for_cuda = True
        cuda._lazy_call(_core._record_cuda)
