"""litgpt's published fine-tuning runs beside predictions, without memory and kernels, on a CUDA device that is not there."""

from __future__ import annotations

import csv
import dataclasses
import math
import pathlib
import statistics
import time
from collections.abc import Sequence

import in_process
from measured import read_table

MIB = 1 << 20
#: Columns of litgpt.csv.
COLUMNS = ("gpu", "config", "script", "batch", "sequence", "rank", "parts", "measured_gb")
TABLE = pathlib.Path(__file__).parent / "litgpt.csv"
#: The preset that is claimed, what CUDA reports of the GPU, MiB, and of it the context: see docs/predicted_memory.md. An A10G's out-of-memory
#: messages say 21.99 GiB; its context is that of the other GPU with 24 GB.
DEVICES = {"A100": ("gpu-40gb", 40_336, 1_669), "A10G": ("gpu-24gb", 22_517, 504)}
#: What a fully trained parameter takes in bfloat16, with its gradient and AdamW's two moments.
BYTES_OF_A_TRAINED_PARAMETER = 8


@dataclasses.dataclass(frozen=True)
class Run:
    """A published run. The model is litgpt's `config`, trained by its `script` with micro-batches of `batch` sequences."""

    gpu: str
    config: str
    script: str
    batch: int
    sequence: int
    #: Of LoRA, and the parts that have it: `qv` or `all`.
    rank: int
    parts: str
    #: The most that PyTorch's allocator had allocated, bytes; None: it ended out of memory.
    measured: float | None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Sizes are bytes."""

    allocated: int
    reserved: int
    #: In tensors alone.
    live: int
    parameters: int
    trained: int
    #: Whether PyTorch's allocator had what was asked for, of what the device has besides the context.
    fits: bool
    seconds: float
    cpu_seconds: float
    #: The most memory of the process, MiB.
    resident: float


def _run(row: dict[str, str]) -> Run:
    measured = None if row["measured_gb"] == "OOM" else float(row["measured_gb"]) * 1e9
    run = Run(row["gpu"], row["config"], row["script"], int(row["batch"]), int(row["sequence"]), int(row["rank"]), row["parts"], measured)
    if run.gpu not in DEVICES:
        raise ValueError(f"{run.gpu} is none of {', '.join(DEVICES)}")
    if run.script not in ("full", "lora", "adapter", "adapter_v2"):
        raise ValueError(f"{run.script} is none of litgpt's scripts")
    if run.batch < 1 or run.sequence < 1 or measured is not None and not (0 < measured < math.inf):
        raise ValueError("a batch, a sequence and what was measured, or OOM, are expected")
    return run


def read(path: pathlib.Path = TABLE) -> list[Run]:
    """The published runs. Raises `ValueError` naming the line that cannot be read."""
    return read_table(path, COLUMNS, _run)


def _simulate(run: Run, capacity: int, counts: dict[str, int]) -> tuple[dict[str, int], int, bool]:
    import litgpt_training
    import memprof
    import torch
    from memprof import _core

    ends_out_of_memory = False
    with memprof.no_dispatch(device=DEVICES[run.gpu][0]) as capture:
        # The measurements' PyTorch is older than 2.12: of free blocks of one size, the lowest address is taken.
        _core._begin_claimed_device(capacity, "", True)
        try:
            litgpt_training.fine_tune(run.config, run.script, run.batch, run.sequence, run.rank, run.parts, counts)
        except torch.OutOfMemoryError:
            ends_out_of_memory = True
        stats = torch.cuda.memory_stats()
    return stats, capture.profile.space("cuda:0").cumulative_peak, ends_out_of_memory


def simulate(run: Run) -> Prediction:
    """Without a limit; and where neither its tensors exceed the device nor all that is reserved fits, again with it, as PyTorch's
    allocator gives cached memory back before it fails."""
    begin, cpu_begin = time.monotonic(), time.process_time()
    in_process.forget_peak()
    counts: dict[str, int] = {}
    stats, live, _ = _simulate(run, 0, counts)
    seconds, cpu_seconds, resident = time.monotonic() - begin, time.process_time() - cpu_begin, in_process.peak_resident()
    _, capacity, context = DEVICES[run.gpu]
    room = (capacity - context) * MIB
    reserved = stats["reserved_bytes.all.peak"]
    fits = reserved <= room or live <= room and not _simulate(run, room, {})[2]
    allocated = stats["allocated_bytes.all.peak"]
    return Prediction(allocated, reserved, live, counts["parameters"], counts["trained"], fits, seconds, cpu_seconds, resident)


def is_impossible(run: Run, prediction: Prediction) -> bool:
    """Whether weights, gradients and moments alone are more than was measured: then it was not trained like that on one GPU."""
    return run.script == "full" and run.measured is not None and prediction.trained * BYTES_OF_A_TRAINED_PARAMETER > run.measured


def predict(runs: Sequence[Run], seconds: float) -> list[tuple[Run, Prediction | None, str]]:
    """Each run, what it takes, and why that is not known."""
    import litgpt.adapter  # noqa: F401  (the children have these)
    import litgpt.adapter_v2  # noqa: F401
    import litgpt.lora  # noqa: F401
    import litgpt_training  # noqa: F401
    import memprof.torch  # noqa: F401
    import torch._dynamo  # noqa: F401  (which optimizers import at their first step)

    return [(run, *in_process.call(simulate, run, seconds=seconds)) for run in runs]


def _row(run: Run, made: Prediction) -> str:
    gigabytes = made.allocated / 1e9
    method = run.script + (f", rank {run.rank}, {'queries and values' if run.parts == 'qv' else 'all layers'}" if run.script == "lora" else "")
    settings = f"| {run.gpu} | {run.config} | {method} | {run.batch} | {run.sequence:,} |"
    verdict = "fits" if made.fits else "out of memory"
    if run.measured is None:
        return f"{settings} out of memory | {gigabytes:.2f} | | {verdict}: {'wrong' if made.fits else 'right'} |"
    if is_impossible(run, made):
        return f"{settings} {run.measured / 1e9:.2f} | {gigabytes:.2f} | not judged | {verdict}: not judged |"
    return (
        f"{settings} {run.measured / 1e9:.2f} | {gigabytes:.2f} | {(made.allocated / run.measured - 1) * 100:+.1f} % | "
        f"{verdict}: {'right' if made.fits else 'wrong'} |"
    )


def report(rows: Sequence[tuple[Run, Prediction | None, str]], preface: str) -> list[str]:
    """The table, in Markdown. Raises `ValueError` if nothing can be judged."""
    done = [(run, made) for run, made, _ in rows if made is not None]
    judged = [(run, made) for run, made in done if not is_impossible(run, made)]
    errors = sorted(abs(made.allocated / run.measured - 1) for run, made in judged if run.measured is not None)
    if not errors:
        raise ValueError("no run of litgpt was predicted")
    right = sum(made.fits == (run.measured is not None) for run, made in judged)
    lost = sum(run.measured is None for run, _ in judged)
    p90 = errors[math.ceil(0.9 * len(errors)) - 1]
    shares = ", ".join(f"{sum(error <= most for error in errors) / len(errors):.0%} within {most:.0%}" for most in (0.01, 0.02, 0.05))
    costs = [
        f"{statistics.median(each):,.1f} (most {max(each):,.1f}) {unit}"
        for each, unit in (
            ([made.seconds for _, made in done], "s on the clock"),
            ([made.cpu_seconds for _, made in done], "s of the processor"),
            ([made.resident for _, made in done], "MiB resident"),
        )
    ]
    lines = [
        preface.rstrip("\n"),
        "",
        f"Of {len(errors)} runs that trained: median error {statistics.median(errors):.1%}, 90th percentile {p90:.1%}; {shares}. "
        f"Of {len(judged)} verdicts, {right} are right; {lost} of these runs ended out of memory.",
        f"A prediction takes {', '.join(costs)}, in the median.",
        "",
        "| GPU | model | script | batch | sequence | measured, GB | predicted | error | verdict |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [_row(run, made) for run, made in done]
    lines += [f"\n{run.config}, {run.script}, batch {run.batch} failed: {fault}" for run, made, fault in rows if made is None]
    return lines


def write(path: pathlib.Path, rows: Sequence[tuple[Run, Prediction | None, str]]) -> None:
    """Every prediction, with all that is known of it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        names = [field.name for kind in (Run, Prediction) for field in dataclasses.fields(kind)]
        table = csv.DictWriter(file, [*names, "fault"])
        table.writeheader()
        for run, made, fault in rows:
            table.writerow({**dataclasses.asdict(run), **(dataclasses.asdict(made) if made else {}), "fault": fault})
