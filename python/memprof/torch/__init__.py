"""Records unmodified PyTorch programs: `memprof.capture()` does, once a program has imported torch.

Every CPU tensor is a block in the space `cpu`; operations are modules, `torch.profiler.record_function` scopes and operators.
"""

from __future__ import annotations

from .. import _core
from ._library import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import torch

    from .._capture import Category

__all__ = ["annotate"]


def annotate(tensor: torch.Tensor, name: str, category: Category = "") -> None:
    """Names the block of a tensor for reports, and gives it a category. Does nothing while no capture is active."""
    load()
    _core._annotate_tensor(tensor._cdata, name, category or "other")
