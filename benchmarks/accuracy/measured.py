"""Published measurements: what real GPUs took."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import pathlib


@dataclasses.dataclass(frozen=True)
class MeasuredRun:
    """One training run on a real GPU. Sizes are MiB."""

    model: str
    batch: int
    #: The most that nvidia-smi showed of the device.
    measured: float
    #: What PyTorch's FakeTensor said, as published beside it.
    faketensor: float


def read_timm(path: pathlib.Path) -> list[MeasuredRun]:
    """Reads `model,batch,measured_mib,faketensor_mib`. Raises `ValueError` naming the line that is something else."""
    columns = ["model", "batch", "measured_mib", "faketensor_mib"]
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != columns:
            raise ValueError(f"{path}: expected the columns {','.join(columns)}, not {','.join(rows.fieldnames or [])}")
        runs = []
        for row in rows:
            try:
                run = MeasuredRun(row["model"], int(row["batch"]), float(row["measured_mib"]), float(row["faketensor_mib"]))
            except (TypeError, ValueError) as fault:
                raise ValueError(f"{path}, line {rows.line_num}: {fault}") from None
            if not run.model or run.batch < 1 or not run.measured > 0:
                raise ValueError(f"{path}, line {rows.line_num}: a model, a batch and what was measured are expected")
            runs.append(run)
    if not runs:
        raise ValueError(f"{path} has no rows")
    return runs


def order_of(model: str) -> bytes:
    """The place of a model in an order that depends on no property of it, the same everywhere."""
    return hashlib.sha256(model.encode()).digest()


def is_held_out(model: str) -> bool:
    """Half of the models: the constant is chosen on the others, and judged on these."""
    return order_of(model)[1] % 2 == 1
