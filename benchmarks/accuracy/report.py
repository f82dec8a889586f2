"""Judges predictions by measurements, and writes a page about them."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from measured import MeasuredRun, is_held_out
from timm_models import Prediction

#: What CUDA reports of an A100 40 GB, MiB; and where its measurements are taken to be cut off.
CAPACITY = 40_336
CUT_OFF = 39_000


@dataclasses.dataclass(frozen=True)
class JudgedRun:
    """A measurement beside a prediction. Sizes are MiB."""

    measured: MeasuredRun
    prediction: Prediction
    #: Whether the run ended out of memory, by the measurements alone.
    ran_out: bool


@dataclasses.dataclass(frozen=True)
class Errors:
    """Relative errors of a set of runs, without sign but for `mean`."""

    runs: int
    median: float
    p90: float
    mean: float
    within: dict[float, float]


def quantile(values: Sequence[float], share: float) -> float:
    """The least of the values that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def ran_out(runs: Sequence[MeasuredRun]) -> set[tuple[str, int]]:
    """Runs at the device's limit, and those that show less than the same model with a smaller batch: they ended early."""
    found = set()
    most: dict[str, float] = {}
    for run in sorted(runs, key=lambda each: (each.model, each.batch)):
        if run.measured >= CUT_OFF or run.measured < most.get(run.model, 0):
            found.add((run.model, run.batch))
        most[run.model] = max(most.get(run.model, 0), run.measured)
    return found


def judge(runs: Sequence[MeasuredRun], predictions: Sequence[Prediction]) -> list[JudgedRun]:
    by_run = {(each.model, each.batch): each for each in predictions if not each.fault}
    early = ran_out(runs)
    return [
        JudgedRun(run, by_run[run.model, run.batch], (run.model, run.batch) in early)
        for run in runs
        if (run.model, run.batch) in by_run
    ]


def constant_of(judged: Sequence[JudgedRun], estimate: Callable[[JudgedRun], float]) -> float:
    """What the estimates lack, MiB: the median of measured minus estimate, of the models that are not held out. Raises `ValueError` if no
    run of these was predicted."""
    lacking = [each.measured.measured - estimate(each) for each in judged if not each.ran_out and not is_held_out(each.measured.model)]
    if not lacking:
        raise ValueError("no run was predicted of the models on which the constant is chosen; take more models")
    return statistics.median(lacking)


def errors_of(judged: Sequence[JudgedRun], predicted: Callable[[JudgedRun], float]) -> Errors:
    signed = [predicted(each) / each.measured.measured - 1 for each in judged]
    plain = [abs(each) for each in signed]
    return Errors(
        len(plain),
        statistics.median(plain),
        quantile(plain, 0.9),
        statistics.fmean(signed),
        {limit: sum(each <= limit for each in plain) / len(plain) for limit in (0.02, 0.05, 0.1)},
    )


def _share(value: float) -> str:
    return f"{value * 100:.1f} %"


def _row(name: str, errors: Errors) -> str:
    within = " | ".join(_share(errors.within[limit]) for limit in (0.02, 0.05, 0.1))
    return f"| {name} | {errors.runs:,} | {_share(errors.median)} | {_share(errors.p90)} | {errors.mean * 100:+.1f} % | {within} |"


def cause_of(run: JudgedRun, predicted: float) -> str:
    """What may explain the difference."""
    if predicted < run.measured.measured and run.prediction.has_convolutions:
        return "too low, as without the workspaces of cuDNN's algorithms, which are not predicted"
    if not run.prediction.exact:
        return "sizes of the simulation are estimates in part"
    return "unknown"


def document(judged: Sequence[JudgedRun], predictions: Sequence[Prediction], versions: str, command: str) -> str:
    """The page, in Markdown. Raises `ValueError` if there are too few runs to choose a constant and to judge it."""
    constant = constant_of(judged, lambda run: run.prediction.reserved)
    own = [each for each in judged if not each.ran_out and is_held_out(each.measured.model)]
    if not own:
        raise ValueError("no run of a model that is held out was predicted; take more models")

    def predicted(run: JudgedRun) -> float:
        return run.prediction.reserved + constant

    fake_constant = constant_of(judged, lambda run: run.measured.faketensor)

    def faketensor(run: JudgedRun) -> float:
        return run.measured.faketensor + fake_constant

    sets = {
        "all": own,
        "models without convolutions": [each for each in own if not each.prediction.has_convolutions],
        "models with convolutions": [each for each in own if each.prediction.has_convolutions],
    }
    lines = [
        "# How exact on GPUs",
        "",
        "What `nvidia-smi` showed of others' GPUs, beside what memprof predicts on a machine without one. Nothing is chosen by model:",
        "a prediction is the bytes that PyTorch's allocator would reserve, by memprof's model of it, plus one constant for the context,",
        "the kernels and the libraries. The constant is the median of what is missing in half of the models; the others are judged.",
        "",
        f"`{command}` wrote this page. {versions}.",
        "",
        "## timm on an A100 40 GB",
        "",
        "The measurements are GPUMemNet's (github.com/itu-rad/GPUMemNet): the maximum of `nvidia-smi` over a training run of each model",
        "of timm with batches of 8 to 128, beside an estimate by PyTorch's FakeTensor. The script is not published. Sizes of its models say:",
        "single precision, the input size of the model's configuration, an optimizer with one buffer for each parameter, and gradients that",
        "live until the backward pass. Here it is SGD with Nesterov momentum and weight decay. Runs that ended early are left out: those at",
        f"{CUT_OFF:,} MiB and more, and those that show less than the same model with a smaller batch.",
        f"{len({each.model for each in predictions}):,} models were predicted.",
        "",
        f"The constant is {constant:,.0f} MiB; FakeTensor's own best one {fake_constant:,.0f} MiB.",
        "",
        "| | runs | median error | 90th percentile | mean | within 2 % | 5 % | 10 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, runs in sets.items():
        if runs:
            lines.append(_row(f"memprof, {name}", errors_of(runs, predicted)))
            lines.append(_row(f"FakeTensor and a constant, {name}", errors_of(runs, faketensor)))
    lines += ["", "## Does it fit?", ""]
    held_out = [each for each in judged if is_held_out(each.measured.model)]
    wrong = [each for each in held_out if (predicted(each) > CAPACITY) != each.ran_out]
    far = [each for each in wrong if abs(predicted(each) / CAPACITY - 1) > 0.03]
    lines += [
        f"Of {len(held_out):,} runs, {sum(each.ran_out for each in held_out):,} ended out of memory. {len(held_out) - len(wrong):,} are judged right; of the "
        f"{len(wrong):,} others {len(far):,} are predicted more than 3 % from the device's {CAPACITY:,} MiB.",
        "",
        "## The worst twenty",
        "",
        "| model | batch | measured, MiB | predicted | error | perhaps |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for each in sorted(own, key=lambda run: -abs(predicted(run) / run.measured.measured - 1))[:20]:
        error = predicted(each) / each.measured.measured - 1
        lines.append(
            f"| {each.measured.model} | {each.measured.batch} | {each.measured.measured:,.0f} | {predicted(each):,.0f} | "
            f"{error * 100:+.1f} % | {cause_of(each, predicted(each))} |"
        )
    failed = [each for each in predictions if each.fault]
    seconds = [each.seconds for each in predictions if not each.fault]
    lines += ["", "## Cost", "", f"A prediction takes {statistics.median(seconds):.1f} s, in the median; {quantile(seconds, 0.9):.1f} s for nine of ten."]
    if failed:
        lines += ["", f"{len(failed)} of {len(predictions):,} predictions failed:", ""]
        lines += [f"- {each.model}, batch {each.batch}: {each.fault}" for each in failed[:20]]
    return "\n".join(lines) + "\n"
