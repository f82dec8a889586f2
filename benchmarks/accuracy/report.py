"""Judges predictions by measurements, and writes a page about them."""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from measured import CAPACITY, CUT_OFF, LEAST_BESIDES, Kind, MeasuredRun, is_held_out, kinds_of
from timm_models import Prediction

#: Goals of a prediction's cost.
MOST_SECONDS, MOST_RESIDENT = 2, 500


@dataclasses.dataclass(frozen=True)
class JudgedRun:
    """A measurement beside a prediction. Sizes are MiB."""

    measured: MeasuredRun
    prediction: Prediction
    kind: Kind


@dataclasses.dataclass(frozen=True)
class Besides:
    """What a run takes besides what PyTorch's allocator reserves, MiB: chosen on half of the models."""

    #: Context, kernels, libraries: of models without convolutions.
    context: float
    #: What models with convolutions take more, in the median: the workspaces of cuDNN's algorithms.
    workspaces: float
    #: Of it, what one in ten does not reach, and what nine in ten do not exceed.
    interval: tuple[float, float]

    def of(self, prediction: Prediction) -> float:
        return self.context + (self.workspaces if prediction.has_convolutions else 0)

    def total(self, prediction: Prediction) -> float:
        return prediction.reserved + self.of(prediction)


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


def judge(runs: Sequence[MeasuredRun], predictions: Sequence[Prediction]) -> list[JudgedRun]:
    by_run = {(each.model, each.batch): each for each in predictions if not each.fault}
    kinds = kinds_of(runs)
    return [
        JudgedRun(run, by_run[run.model, run.batch], kinds[run.model, run.batch]) for run in runs if (run.model, run.batch) in by_run
    ]


def lacking(judged: Iterable[JudgedRun], estimate: Callable[[JudgedRun], float]) -> list[float]:
    """Measured minus estimate, MiB, of the runs that trained, of models that are not held out. Raises `ValueError` if there are none."""
    found = [each.measured.measured - estimate(each) for each in judged if each.kind is Kind.TRAINED and not is_held_out(each.measured.model)]
    if not found:
        raise ValueError("no run was predicted of the models on which the constants are chosen; take more models")
    return found


def besides_of(judged: Sequence[JudgedRun]) -> Besides:
    """Raises as `lacking`, which wants models without convolutions."""
    context = statistics.median(lacking((each for each in judged if not each.prediction.has_convolutions), lambda run: run.prediction.reserved))
    convolved = [each for each in judged if each.prediction.has_convolutions]
    if not convolved:
        return Besides(context, 0, (0, 0))
    more = lacking(convolved, lambda run: run.prediction.reserved + context)
    return Besides(context, statistics.median(more), (quantile(more, 0.1), quantile(more, 0.9)))


def is_between(prediction: Prediction, besides: Besides) -> bool:
    """Whether the allocator has to give cached memory back to fit, so that only a simulation with the limit can tell."""
    room = CAPACITY - besides.of(prediction)
    return prediction.live <= room < prediction.reserved


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


def cause_of(run: JudgedRun, judged: Iterable[JudgedRun], besides: Besides) -> str:
    """Why the prediction is wrong, by the numbers of this and the other runs of the model."""
    made, measured = run.prediction, run.measured
    # Gradients and the optimizer's state, which FakeTensor did not count, are three times the parameters.
    if made.live > 5 * measured.faketensor:
        return f"another model under this name: {made.live:,.0f} MiB in tensors, where FakeTensor had {measured.faketensor:,.0f}"
    if measured.measured < made.live + LEAST_BESIDES:
        return f"the run ended early: its tensors take {made.live:,.0f} MiB, and it shows only {measured.measured - made.live:,.0f} more"
    if made.classes != 1000 and besides.total(made) > measured.measured:
        return f"the run ended early: {made.classes} classes, for labels of 1,000"
    lack = measured.measured - besides.total(made)
    if lack <= 0:
        return f"too high: the allocator is predicted to reserve {made.reserved - made.live:,.0f} MiB more than the tensors take"
    others = [
        (each.measured.measured - besides.total(each.prediction), each.measured.batch)
        for each in judged
        if each.measured.model == measured.model and each.kind in (Kind.TRAINED, Kind.CONTRADICTED) and each is not run
    ]
    larger = min(((other, batch) for other, batch in others if batch > measured.batch), default=None)
    if larger is not None and larger[0] < lack / 2:
        return f"{lack:,.0f} MiB for a moment, as when cuDNN tries its algorithms: with batch {larger[1]}, it is {larger[0]:,.0f} MiB"
    if made.has_convolutions:
        return f"{lack:,.0f} MiB, {lack / measured.batch:,.0f} an image, as workspaces of convolutions"
    return f"unexplained: {lack:,.0f} MiB are missing"


def _judged_fits(judged: Sequence[JudgedRun], fits: dict[tuple[str, int], bool], besides: Besides) -> list[tuple[JudgedRun, bool]]:
    """Of each run that is known to have fitted or not, whether it is predicted to fit."""
    found = []
    for each in judged:
        made = each.prediction
        if each.kind in (Kind.AT_THE_LIMIT, Kind.IMPOSSIBLE):
            continue
        if is_between(made, besides):
            if (made.model, made.batch) in fits:
                found.append((each, fits[made.model, made.batch]))
        else:
            found.append((each, made.reserved + besides.of(made) <= CAPACITY))
    return found


def _fits(judged: Sequence[JudgedRun], fits: dict[tuple[str, int], bool], besides: Besides) -> list[str]:
    known = _judged_fits(judged, fits, besides)
    ran_out = [(each, fit) for each, fit in known if each.kind is Kind.OUT_OF_MEMORY]
    trained = [(each, fit) for each, fit in known if each.kind is not Kind.OUT_OF_MEMORY]
    wrong = [each for each, fit in known if fit == (each.kind is Kind.OUT_OF_MEMORY)]

    def distance(run: JudgedRun) -> float:
        nearest = run.prediction.reserved if run.kind is Kind.OUT_OF_MEMORY else run.prediction.live
        return (nearest + besides.of(run.prediction)) / CAPACITY - 1

    between = sum(is_between(each.prediction, besides) for each in judged)
    far = sum(abs(distance(each)) > 0.03 for each in wrong)
    lines = [
        "",
        "## Does it fit?",
        "",
        f"What a run has for its tensors is {CAPACITY:,} MiB less what it takes besides. Where the tensors alone are more, it cannot fit, and where",
        f"all that is reserved without a limit is less, it does; the {between} runs between were simulated again with that limit, where the",
        "allocator gives cached memory back before it fails.",
        "",
        "| of all models | runs | judged right | wrong |",
        "|---|---:|---:|---:|",
        f"| ended out of memory | {len(ran_out):,} | {sum(not fit for _, fit in ran_out):,} | {sum(fit for _, fit in ran_out):,} |",
        f"| trained | {len(trained):,} | {sum(fit for _, fit in trained):,} | {sum(not fit for _, fit in trained):,} |",
        "",
        f"Of the {len(wrong)} that are wrong, {far} are more than 3 % from the limit." if wrong else "None is wrong.",
    ]
    if wrong:
        lines += [
            "",
            "| wrong | batch | it | measured, MiB | in tensors | reserved without a limit | from the limit |",
            "|---|---:|---|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {each.measured.model} | {each.measured.batch} | {each.kind.value} | {each.measured.measured:,.0f} | {each.prediction.live:,.0f} | "
            f"{each.prediction.reserved:,.0f} | {distance(each) * 100:+.1f} % |"
            for each in wrong
        ]
    return lines


def out_of_memory_list(judged: Sequence[JudgedRun], fits: dict[tuple[str, int], bool], besides: Besides) -> list[str]:
    right = collections.defaultdict(list)
    for each, fit in _judged_fits(judged, fits, besides):
        if each.kind is Kind.OUT_OF_MEMORY and not fit:
            right[each.measured.model].append(each.measured.batch)
    named = (f"{model} ({', '.join(map(str, sorted(batches)))})" for model, batches in sorted(right.items()))
    return ["", "Rightly predicted to end out of memory, with the batches: " + "; ".join(named) + "."]


def _kinds(judged: Sequence[JudgedRun]) -> list[str]:
    counts = collections.Counter(each.kind for each in judged)
    impossible = collections.defaultdict(list)
    for each in judged:
        if each.kind is Kind.IMPOSSIBLE:
            impossible[each.measured.model].append(each.measured.batch)
    named = (f"{model} ({', '.join(map(str, sorted(batches)))})" for model, batches in sorted(impossible.items()))
    contradicted = (f"{each.measured.model} ({each.measured.batch})" for each in judged if each.kind is Kind.CONTRADICTED)
    return [
        "What a measurement can be used for was decided by the measurements and FakeTensor's numbers alone (`measured.py`):",
        "",
        "| kind | runs | rule |",
        "|---|---:|---|",
        f"| trained | {counts[Kind.TRAINED]:,} | shows at least {LEAST_BESIDES:,} MiB more than FakeTensor's number, and less than {CUT_OFF:,} |",
        f"| shows more than with a larger batch | {counts[Kind.CONTRADICTED]:,} | of the same model, which trained, too; judged in a row of its own |",
        f"| ended out of memory | {counts[Kind.OUT_OF_MEMORY]:,} | FakeTensor's number and {LEAST_BESIDES:,} MiB are more than {CAPACITY:,}; or it shows less "
        "than these two, and what a smaller batch showed, with what FakeTensor has more, exceeds the device |",
        f"| at the limit | {counts[Kind.AT_THE_LIMIT]:,} | {CUT_OFF:,} MiB and more: it fitted or not; not judged |",
        f"| measurement impossible | {counts[Kind.IMPOSSIBLE]:,} | shows less than FakeTensor's number and {LEAST_BESIDES:,} MiB, although there was room; not judged |",
        "",
        "Impossible, with the batches: " + "; ".join(named) + ".",
        "Most are models with fewer than 1,000 classes, as those of CLIP and SigLIP: a label that is out of range ends the run.",
        "",
        "More than with a larger batch: " + "; ".join(contradicted) + ".",
        "",
    ]


def _cost(predictions: Sequence[Prediction]) -> list[str]:
    done = [each for each in predictions if not each.fault]
    failed = [each for each in predictions if each.fault]

    def row(name: str, values: Sequence[float], most: float, digits: int) -> str:
        numbers = " | ".join(f"{value:,.{digits}f}" for value in (statistics.median(values), quantile(values, 0.9), max(values)))
        return f"| {name} | {numbers} | {_share(sum(value > most for value in values) / len(values))} |"

    lines = [
        "",
        "## Cost",
        "",
        "| of a prediction | median | 90th percentile | most | above the goal |",
        "|---|---:|---:|---:|---:|",
        row(f"seconds on the clock (goal: {MOST_SECONDS})", [each.seconds for each in done], MOST_SECONDS, 2),
        row("seconds of the processor", [each.cpu_seconds for each in done], MOST_SECONDS, 2),
        row(f"MiB resident (goal: {MOST_RESIDENT})", [each.resident for each in done], MOST_RESIDENT, 0),
        "",
        "Resident is the most of the process during the prediction, with Python, torch and timm. The clock ran on a machine with two cores that",
        "others used, too.",
    ]
    if failed:
        lines += ["", f"{len(failed)} of {len(predictions):,} predictions failed:", ""]
        lines += [f"- {each.model}, batch {each.batch}: {each.fault}" for each in failed[:20]]
    return lines


def document(
    judged: Sequence[JudgedRun],
    predictions: Sequence[Prediction],
    fits: dict[tuple[str, int], bool],
    versions: str,
    preface: str,
    appendix: str = "",
) -> str:
    """The page, in Markdown. Raises `ValueError` if there are too few runs to choose the constants and to judge them."""
    besides = besides_of(judged)
    own = [each for each in judged if each.kind is Kind.TRAINED and is_held_out(each.measured.model)]
    if not own:
        raise ValueError("no run of a model that is held out was predicted; take more models")
    one = statistics.median(lacking(judged, lambda run: run.prediction.reserved))
    fake = statistics.median(lacking(judged, lambda run: run.measured.faketensor))

    def total(run: JudgedRun) -> float:
        return besides.total(run.prediction)

    sets = {
        "all": own,
        "without convolutions": [each for each in own if not each.prediction.has_convolutions],
        "with convolutions": [each for each in own if each.prediction.has_convolutions],
    }
    lines = [preface.rstrip("\n").replace("VERSIONS", versions), ""]
    lines += _kinds(judged)
    lines += [
        f"Besides what the allocator reserves, {besides.context:,.0f} MiB are context, kernels and libraries: the median of what models without",
        f"convolutions lack in the half that is not judged. Models with convolutions lack {besides.workspaces:,.0f} MiB more in the median, cuDNN's "
        f"workspaces,",
        f"eight in ten of them {besides.interval[0]:,.0f} to {besides.interval[1]:,.0f} MiB: that is the interval of this part. Judged are the models of the other half:",
        "",
        "| | runs | median error | 90th percentile | mean | within 2 % | 5 % | 10 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, runs in sets.items():
        if runs:
            lines.append(_row(f"memprof, {name}", errors_of(runs, total)))
    lines.append(_row(f"memprof with one constant, {one:,.0f} MiB, all", errors_of(own, lambda run: run.prediction.reserved + one)))
    lines.append(_row(f"FakeTensor with its best constant, {fake:,.0f} MiB, all", errors_of(own, lambda run: run.measured.faketensor + fake)))
    more = [each for each in judged if each.kind is Kind.CONTRADICTED and is_held_out(each.measured.model)]
    if more:
        lines.append(_row("memprof, all and those that show more than with a larger batch", errors_of([*own, *more], total)))
    lines += _fits(judged, fits, besides)
    lines += out_of_memory_list(judged, fits, besides)
    lines += [
        "",
        "## The worst twenty",
        "",
        "Of the judged half. Why is inferred from the numbers of this run and of the model's other batches: no one recorded what the missing bytes were.",
        "",
        "| model | batch | measured, MiB | predicted | error | why |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for each in sorted(own, key=lambda run: -abs(total(run) / run.measured.measured - 1))[:20]:
        lines.append(
            f"| {each.measured.model} | {each.measured.batch} | {each.measured.measured:,.0f} | {total(each):,.0f} | "
            f"{(total(each) / each.measured.measured - 1) * 100:+.1f} % | {cause_of(each, judged, besides)} |"
        )
    lines += _cost(predictions)
    if appendix:
        lines += ["", appendix.rstrip("\n")]
    return "\n".join(lines) + "\n"
