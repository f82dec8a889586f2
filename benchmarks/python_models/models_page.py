"""What the programs took, and a page about it."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import re
import statistics
from collections.abc import Sequence

MIB = 1 << 20
#: A simulated peak may be off by this share.
TOLERANCE = 0.001

#: How the page calls a row of these tables of a profile.
LISTED = {"approximations": "estimate of", "assumed_sizes": "size of", "unknown_reads": "value read by"}

#: Why a program's peak is off or one of its runs fails, found by `memprof compare` of its traces.
CAUSES: dict[str, str] = {}


@dataclasses.dataclass
class Measured:
    """One run of a program. Sizes are bytes."""

    #: The most that was live, and the sum of all allocations: in `cpu`, or for the claimed run in `cuda:0`.
    peak: int = 0
    allocated: int = 0
    seconds: float = 0
    #: The most that the process had resident, and what of it was there before the program began.
    resident_peak: int = 0
    resident_before: int = 0
    #: What the simulation could not know.
    listed: list[str] = dataclasses.field(default_factory=list)
    #: Why it did not end; empty: it did.
    fault: str = ""


@dataclasses.dataclass
class ModelResult:
    name: str
    real: Measured
    simulated: Measured
    claimed: Measured


def read_results(path: pathlib.Path) -> dict[str, ModelResult]:
    rows = json.loads(path.read_text())
    return {name: ModelResult(name, **{mode: Measured(**values) for mode, values in row.items()}) for name, row in rows.items()}


def write_results(path: pathlib.Path, results: dict[str, ModelResult]) -> None:
    rows = {name: {mode: dataclasses.asdict(getattr(row, mode)) for mode in ("real", "simulated", "claimed")} for name, row in results.items()}
    path.write_text(json.dumps(rows, indent=1) + "\n")


def file_name(program: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", program.lower()).strip("_")


def difference(result: ModelResult) -> float | None:
    """Of the simulated peak, relative to the real one; None if one of them is missing."""
    if result.real.fault or result.simulated.fault:
        return None
    return result.simulated.peak / result.real.peak - 1


def _ends(result: ModelResult) -> bool:
    return not (result.real.fault or result.simulated.fault or result.claimed.fault)


def is_equal(result: ModelResult) -> bool:
    off = difference(result)
    return off is not None and abs(off) <= TOLERANCE


def is_unexplained(result: ModelResult) -> bool:
    return not (is_equal(result) and _ends(result)) and result.name not in CAUSES


def line_of(result: ModelResult) -> str:
    """For a terminal."""
    off = difference(result)
    faults = [f"{mode}: {getattr(result, mode).fault}" for mode in ("real", "simulated", "claimed") if getattr(result, mode).fault]
    peaks = "" if off is None else f"real {result.real.peak:,} B, simulated {result.simulated.peak:,} B, {_percent(off)}"
    claimed = "" if result.claimed.fault else f"cuda:0 {result.claimed.peak:,} B"
    return f"{result.name}: " + "; ".join(part for part in (peaks, claimed, *faults) if part)


def _percent(share: float) -> str:
    return f"{share * 100:+.2f} %" if abs(share) >= 0.00005 else "0.00 %" if share == 0 else f"{share * 100:+.4f} %"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _grown(measured: Measured) -> str:
    return f"{(measured.resident_peak - measured.resident_before) / MIB:,.0f}"


def _listed(measured: Measured) -> str:
    counts = collections.Counter(measured.listed)
    return " ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())


def _row(result: ModelResult) -> str:
    real, simulated, claimed = result.real, result.simulated, result.claimed
    off = difference(result)
    cells = [
        result.name,
        "failed" if real.fault else f"{real.peak:,}",
        "failed" if simulated.fault else f"{simulated.peak:,}",
        "" if off is None else _percent(off),
        *("" if each.fault else f"{each.seconds:.1f}" for each in (real, simulated)),
        *("" if each.fault else _grown(each) for each in (real, simulated)),
        "failed" if claimed.fault else f"{claimed.peak:,}",
        _listed(simulated),
    ]
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _explanations(results: Sequence[ModelResult]) -> list[str]:
    lines = []
    for each in results:
        if is_equal(each) and _ends(each):
            continue
        said = [f"{mode}: `{_cell(getattr(each, mode).fault)}`" for mode in ("real", "simulated", "claimed") if getattr(each, mode).fault]
        lines.append(f"- {each.name}: " + " ".join([*said, CAUSES.get(each.name, "Not explained.")]))
    return lines


def document(results: Sequence[ModelResult], versions: dict[str, str], not_run: Sequence[str] = ()) -> str:
    """The page, in Markdown."""
    compared = [each for each in results if difference(each) is not None]
    exact = sum(each.simulated.peak == each.real.peak for each in compared)
    within = sum(is_equal(each) for each in compared)
    claimed = sum(not each.claimed.fault for each in results)
    before = statistics.median([each.real.resident_before for each in results if not each.real.fault] or [0])
    lines = [
        "# Programs of public Python packages, real and simulated",
        "",
        "`./dev python-models` writes this page. It runs each program three times, each in a process of its own: for real on the CPU",
        "(`memprof.capture`), simulated on the CPU (`memprof.no_dispatch`), and simulated on a CUDA device that is not there",
        '(`memprof.no_dispatch(device="gpu-80gb")`, with the model and its inputs on `cuda`). `./dev python-models --only Mamba` runs the',
        "programs with that word in their name; `--traces FOLDER` leaves the traces of both runs on the CPU, for",
        "`memprof compare`.",
        "",
        "The programs are in `benchmarks/python_models/model_programs.py`: models of reduced size, whose weights are random, made from a configuration;",
        "inputs are random, too. They train two steps with AdamW in float32 on one thread, but for those named `generate()`, which make 32",
        "tokens. Packages are used as they are; where torchvision is not installed, timm gets a stand-in, which no step uses.",
        "",
        f"{', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}.",
        "",
        f"Of {len(results)} programs, {len(compared)} end both for real and simulated: {exact} peak at the same byte, {within} within {TOLERANCE * 100:g} %. "
        f"{claimed} end on the claimed device.",
        "",
        "Peaks are bytes. Times are seconds of the processor, without imports. Resident is by how many MiB the process grew while it ran, at most;",
        f"interpreter, torch and the package took about {before / MIB:,.0f} MiB before. Listed are the profile's `approximations`, `assumed_sizes` and",
        "`unknown_reads` of the simulation on the CPU. The peak of `cuda:0` has the workspaces of cuBLAS in it, 8.1 MiB each.",
        "",
        "| program | peak: real | simulated | difference | time, s: real | simulated | resident, MiB: real | simulated | peak of `cuda:0`, claimed | listed |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        *(_row(each) for each in results),
    ]
    if not_run:
        lines += ["", f"{len(not_run)} programs have not been run yet: {'; '.join(not_run)}."]
    explanations = _explanations(results)
    if explanations:
        lines += ["", "## What differs, and why", "", *explanations]
    return "\n".join(lines) + "\n"
