"""torchtune's published ladder of memory options for Llama 3.2 3B beside predictions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import in_process
import torchvision_stand_in

GIB = 1 << 30
BATCH, SEQUENCE = 2, 4096


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of the ladder: the options of all those before it are on, too, but for LoRA and QLoRA, which do not update in the backward pass."""

    name: str
    #: The most that PyTorch's allocator had in use, GiB.
    measured: float
    #: Of torchtune_training.Options; None: it cannot be simulated.
    options: dict[str, bool] | None
    #: Why not, or what is not as it was.
    note: str


_CHECKPOINTED = {"chunked_loss": True, "compiled_loss": True, "checkpointing": True}
_NO_COMPILER = "the compiler chooses what the blocks keep; the simulation runs programs as they are written"
_COMPILED = "of the compiler, what it makes of the loss; blocks, which keep their input alone, run as written"

STEPS = (
    Step("baseline", 25.5, None, "the lengths of the samples in the batch are not published"),
    Step("+ packed data", 60.0, {}, ""),
    Step("+ compile", 51.0, None, _NO_COMPILER),
    Step("+ chunked cross-entropy", 42.9, None, _NO_COMPILER),
    Step("+ activation checkpointing", 24.9, _CHECKPOINTED, _COMPILED),
    Step("+ optimizer step in the backward pass", 23.1, {**_CHECKPOINTED, "optimizer_in_backward": True}, _COMPILED),
    Step("+ activation offloading", 21.8, {**_CHECKPOINTED, "optimizer_in_backward": True, "offloading": True}, _COMPILED),
    Step("+ 8-bit AdamW", 17.6, None, "the optimizer's state is of a quantized type, made by kernels that are not there"),
    Step("LoRA", 8.5, {**_CHECKPOINTED, "offloading": True, "lora": True}, _COMPILED + "; rank 64, all layers, by the recipe of the package"),
    Step("QLoRA", 4.6, None, "the weights are of a quantized type, made by kernels that are not there"),
)


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Sizes are bytes, `resident` is MiB."""

    active: int
    reserved: int
    resident: float


def simulate(options: dict[str, bool]) -> Prediction:
    import memprof
    import torch
    import torchtune_training
    from memprof import _core

    in_process.forget_peak()
    with memprof.no_dispatch(device="gpu-80gb"):
        # The measurements' PyTorch is older than 2.12: of free blocks of one size, the lowest address is taken.
        _core._begin_claimed_device(0, "", True)
        torchtune_training.train(torchtune_training.Options(**options), BATCH, SEQUENCE)
        stats = torch.cuda.memory_stats()
    return Prediction(stats["active_bytes.all.peak"], stats["reserved_bytes.all.peak"], in_process.peak_resident())


def predict(steps: Sequence[Step], seconds: float) -> list[tuple[Step, Prediction | None, str]]:
    """Each step, what it takes, and why that is not known."""
    torchvision_stand_in.install()
    import memprof.torch  # noqa: F401  (the children have these)
    import torch._dynamo  # noqa: F401
    import torchtune.models.llama3_2  # noqa: F401
    import torchtune.training  # noqa: F401
    import torchtune_training  # noqa: F401

    rows: list[tuple[Step, Prediction | None, str]] = []
    for step in steps:
        made, fault = (None, "") if step.options is None else in_process.call(simulate, step.options, seconds=seconds)
        rows.append((step, made, fault))
    return rows


def report(rows: Sequence[tuple[Step, Prediction | None, str]], preface: str) -> list[str]:
    """The table, in Markdown. Raises `ValueError` if nothing was predicted."""
    errors = [abs(made.active / GIB / step.measured - 1) for step, made, _ in rows if made is not None]
    if not errors:
        raise ValueError("no step of torchtune's ladder was predicted")
    lines = [
        preface.rstrip("\n"),
        "",
        f"Of {len(rows)} steps, {len(errors)} were simulated: errors from {min(errors):.1%} to {max(errors):.1%}, mean {math.fsum(errors) / len(errors):.1%}.",
        "",
        "| step | measured, GiB | predicted | error | note |",
        "|---|---:|---:|---:|---|",
    ]
    for step, made, fault in rows:
        if made is None:
            why = f"failed: {fault}" if fault else f"not simulated: {step.note}"
            lines.append(f"| {step.name} | {step.measured:.1f} | – | | {why} |")
        else:
            predicted = made.active / GIB
            error = (predicted / step.measured - 1) * 100
            lines.append(f"| {step.name} | {step.measured:.1f} | {predicted:.1f} | {error:+.1f} % | {step.note} |")
    return lines
