"""Published measurements: what real GPUs took."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import pathlib
from collections.abc import Callable, Sequence
from typing import TypeVar

Row = TypeVar("Row")


@dataclasses.dataclass(frozen=True)
class MeasuredRun:
    """One training run on a real GPU. Sizes are MiB."""

    model: str
    batch: int
    #: The most that nvidia-smi showed of the device.
    measured: float
    #: What PyTorch's FakeTensor said, as published beside it.
    faketensor: float


def read_table(path: pathlib.Path, columns: Sequence[str], made_of: Callable[[dict[str, str]], Row]) -> list[Row]:
    """What `made_of` makes of each row. Raises `ValueError` naming the columns, or the line that cannot be read."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file, strict=True)
        try:
            if rows.fieldnames != list(columns):
                raise ValueError(f"expected the columns {','.join(columns)}, not {','.join(rows.fieldnames or ['none'])}")
            made = []
            for row in rows:
                if None in row or None in row.values():
                    raise ValueError(f"expected {len(columns)} values")
                made.append(made_of(row))
        except (ValueError, csv.Error) as fault:
            raise ValueError(f"{path}, line {rows.line_num}: {fault}") from None
    return made


def _timm_run(row: dict[str, str]) -> MeasuredRun:
    run = MeasuredRun(row["model"], int(row["batch"]), float(row["measured_mib"]), float(row["faketensor_mib"]))
    if not run.model or run.batch < 1 or not run.measured > 0:
        raise ValueError("a model, a batch and what was measured are expected")
    return run


def read_timm(path: pathlib.Path) -> list[MeasuredRun]:
    """Reads `model,batch,measured_mib,faketensor_mib`. Raises as `read_table`, and if there are no rows."""
    runs = read_table(path, ("model", "batch", "measured_mib", "faketensor_mib"), _timm_run)
    if not runs:
        raise ValueError(f"{path} has no rows")
    seen = set()
    for run in runs:
        if (run.model, run.batch) in seen:
            raise ValueError(f"{path} has {run.model} with batch {run.batch} twice")
        seen.add((run.model, run.batch))
    return runs


def order_of(model: str) -> bytes:
    """The place of a model in an order that depends on no property of it, the same everywhere."""
    return hashlib.sha256(model.encode()).digest()


def is_held_out(model: str) -> bool:
    """Half of the models: the constant is chosen on the others, and judged on these."""
    return order_of(model)[1] % 2 == 1
