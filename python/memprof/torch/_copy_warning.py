"""A warning of PyTorch that a simulated copy of a tensor does not give itself."""

from __future__ import annotations

import warnings


def warn_of_copy(call: str, stacklevel: int) -> None:
    advice = "it is recommended to use sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than"
    warnings.warn(f"To copy construct from a tensor, {advice} {call}.", UserWarning, stacklevel)
