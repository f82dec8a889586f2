"""Published measurements: what real GPUs took."""

from __future__ import annotations

import csv
import dataclasses
import enum
import hashlib
import pathlib
from collections.abc import Callable, Iterable, Sequence
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


#: What CUDA reports of an A100 40 GB, MiB.
CAPACITY = 40_336
#: From here on, a run may have been at the device's limit.
CUT_OFF = 39_000
#: What any run takes besides its tensors: context, kernels, libraries. Of 2,190 runs whose FakeTensor number leaves room, 1,600 to 1,700 MiB
#: more than it has none, and those with more have 1,736 MiB and up, but for one.
LEAST_BESIDES = 1_600


class Kind(enum.Enum):
    """What a measurement says of its run, decided by measurements and FakeTensor's numbers alone."""

    #: It trained: it shows at least `LEAST_BESIDES` more than FakeTensor's number, and stayed below `CUT_OFF`.
    TRAINED = "trained"
    #: As TRAINED, but it shows more than the same model with a larger batch.
    CONTRADICTED = "shows more than with a larger batch"
    #: It cannot have fitted: FakeTensor's number alone is too much, or it shows too little, and a smaller batch says that it needed too much.
    OUT_OF_MEMORY = "ended out of memory"
    #: From `CUT_OFF` on: it fitted, or it ran out of memory.
    AT_THE_LIMIT = "at the limit"
    #: It shows less than its tensors take, although there was room: it ended before its first step was done, for another reason.
    IMPOSSIBLE = "measurement impossible"


def _kinds_of_a_model(runs: Sequence[MeasuredRun]) -> dict[int, Kind]:
    kinds: dict[int, Kind] = {}
    trained: list[MeasuredRun] = []
    for run in sorted(runs, key=lambda each: each.batch):
        # With a smaller batch, it took that; of the tensors alone, FakeTensor knows how many are more.
        needed = max((each.measured + run.faketensor - each.faketensor for each in trained), default=0)
        if run.faketensor + LEAST_BESIDES > CAPACITY:
            kinds[run.batch] = Kind.OUT_OF_MEMORY
        elif run.measured >= CUT_OFF:
            kinds[run.batch] = Kind.AT_THE_LIMIT
        elif run.measured < run.faketensor + LEAST_BESIDES:
            kinds[run.batch] = Kind.OUT_OF_MEMORY if needed > CAPACITY else Kind.IMPOSSIBLE
        else:
            kinds[run.batch] = Kind.TRAINED
            trained.append(run)
    for index, run in enumerate(trained):
        if any(run.measured > larger.measured for larger in trained[index + 1 :] if larger.faketensor - run.faketensor > 100):
            kinds[run.batch] = Kind.CONTRADICTED
    return kinds


def kinds_of(runs: Iterable[MeasuredRun]) -> dict[tuple[str, int], Kind]:
    """By model and batch."""
    by_model: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        by_model.setdefault(run.model, []).append(run)
    return {(model, batch): kind for model, of_it in by_model.items() for batch, kind in _kinds_of_a_model(of_it).items()}


def order_of(model: str) -> bytes:
    """The place of a model in an order that depends on no property of it, the same everywhere."""
    return hashlib.sha256(model.encode()).digest()


def is_held_out(model: str) -> bool:
    """Half of the models: the constant is chosen on the others, and judged on these."""
    return order_of(model)[1] % 2 == 1
