"""Changes that lower the peak and can be made without a line in the script, each tried by a run."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import torch

    from ._outcome import Outcome
    from ._trials import Trials

#: In a plan, followed by the class that is recomputed.
RECOMPUTE = "recompute "
AUTOCAST = "autocast"
ONE_BY_ONE = "foreach=False"
DEFAULT_DTYPE = "default dtype"

_CACHES = {"past_key_values": None, "past_key_value": None, "layer_past": None, "use_cache": False}


def helpful_changes(trials: Trials, given: Outcome) -> list[tuple[tuple[str, ...], Outcome]]:
    """Each change by itself; where none suffices, together. With what came of it."""
    singles: list[str] = [ONE_BY_ONE, AUTOCAST]
    if given.repeated is not None:
        singles.append(RECOMPUTE + given.repeated[1])
    tried: list[tuple[tuple[str, ...], Outcome]] = [((change,), trials.run(None, (change,))) for change in singles]
    if not any(outcome.fits for _, outcome in tried):
        works = tuple(names[0] for names, outcome in tried if not outcome.failed and outcome.steps == given.steps)
        if len(works) > 1:
            tried.append((works, trials.run(None, works)))
        if not tried[-1][1].fits:
            tried.append(((DEFAULT_DTYPE,), trials.run(None, (DEFAULT_DTYPE,))))
    return tried


def make_changes(changes: tuple[str, ...]) -> None:
    """Makes them in this process, for good."""
    import torch

    for change in changes:
        if change == AUTOCAST:
            _autocast()
        elif change == DEFAULT_DTYPE:
            torch.set_default_dtype(torch.bfloat16)
        elif change == ONE_BY_ONE:
            _step_one_by_one()
        else:
            _recompute(change[len(RECOMPUTE) :])


def _autocast() -> None:
    """In the outermost modules, as torch advises: not in the backward pass."""
    import torch

    original: Callable[..., Any] = torch.nn.Module._call_impl
    is_inside = False

    @functools.wraps(original)
    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal is_inside
        if is_inside:
            return original(module, *args, **kwargs)
        is_inside = True
        try:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return original(module, *args, **kwargs)
        finally:
            is_inside = False

    setattr(torch.nn.Module, "_call_impl", call)


def _step_one_by_one() -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def before_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            if "foreach" in group and not group.get("fused"):
                group["foreach"] = False

    register_optimizer_step_pre_hook(before_step)


def _recompute(name: str) -> None:
    """Has modules of that class computed again in the backward pass; a model of transformers does that by itself."""
    import torch
    from torch.utils.checkpoint import checkpoint

    original: Callable[..., Any] = torch.nn.Module._call_impl
    enabled: set[int] = set()
    has_own = False

    @functools.wraps(original)
    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal has_own
        enable: Any = getattr(module, "gradient_checkpointing_enable", None)
        if enable is not None and id(module) not in enabled:
            enabled.add(id(module))
            if getattr(module, "supports_gradient_checkpointing", True):
                enable({"use_reentrant": False})
                has_own = True
        kind = type(module)
        if has_own or f"{kind.__module__}.{kind.__qualname__}" != name or not (module.training and torch.is_grad_enabled()):
            return original(module, *args, **kwargs)
        kwargs.update((key, value) for key, value in _CACHES.items() if key in kwargs)
        return checkpoint(functools.partial(original, module), *args, use_reentrant=False, **kwargs)

    setattr(torch.nn.Module, "_call_impl", call)
