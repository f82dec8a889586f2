"""What was recorded on a GPU, what the simulation says of the same programs, and a page about both. Sizes are bytes."""

from __future__ import annotations

import dataclasses
import enum
import gzip
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from operator_cases import FAMILIES

#: The presets whose GPU has the architecture of these, by a word in the device's name. Their capacity plays no part.
PRESETS = {
    "H100": "gpu-141gb", "H200": "gpu-141gb", "A100-SXM4-40GB": "gpu-40gb", "A100-PCIE-40GB": "gpu-40gb",
    "A100": "gpu-80gb", "RTX 4090": "gpu-24gb",
}

#: Cases whose blocks are freed in an order that differs from run to run: autocast keeps its casts in a table of addresses.
UNORDERED = ("amp bf16", "amp f16")

#: Why a case differs, by a pattern of its name; the first that fits.
CAUSES = {
    "sdpa flash (gqa|dropout) f32": "no kernel takes float32: the GPU's run ends with an error, the simulated one goes on",
    "batch_norm": (
        "cuDNN's workspace, PyTorch's kernels for images with the channels last and their buffers for partial sums, and in `eval` weights as "
        "float32; simulated is the plain kernel"
    ),
    "(bilinear|nearest|bicubic|pad_reflect|pixel_shuffle) .*cl=True": (
        "images with the channels last, which the kernels copy into another layout first"
    ),
    "embedding_bag": "the kernel's own tensors of offsets, and its sort of the indices",
    "embedding ": "cub's scratch memory for a sort, which is 256 bytes larger",
    "index_put acc": "a sort of the indices, and what it takes",
    "sort|argsort|msort|topk|cum|logcumsumexp": "scratch memory of cub's and PyTorch's sorts and scans",
    "randperm|nonzero|masked_select|unique|bincount|histc|multinomial|quantile|isin|misc bool index": (
        "scratch memory and counters of cub and of PyTorch's kernels"
    ),
    r"(mse|huber) \w+ \(4096": "the partial sums of a reduction of more than 200 million elements",
    "ctc": "lengths and offsets, which the kernel copies to the device, and one more tensor as large as the probabilities",
    "mm mha|checkpoint": "one copy in the backward pass of an attention with projections, and one block that lives a little longer",
    "rnn": (
        "cuDNN's kernels, which take all weights in one block and keep a reserve for the backward pass; simulated is PyTorch's own loop"
    ),
    "conv": (
        "the workspace of the algorithm that cuDNN takes, and copies into its layout; both depend on the sizes and the GPU. Depthwise kernels "
        "make the gradient of the weight first"
    ),
    "linalg irfft": "a copy of the input, which cuFFT overwrites",
    "linalg": "workspaces, pivots and arrays of pointers of cuSOLVER, MAGMA and cuBLAS, and scratch memory of selections",
    "amp": (
        "autocast keeps its casts in a table of addresses, and frees them in the order of these; in float16, a step is also left out on the GPU, "
        "because the case's uninitialised numbers are not finite"
    ),
}

#: Programs whose reserved bytes differ by the addresses of their segments alone: with those of the recording they are equal.
SEGMENTS_ELSEWHERE = ("transformers: Qwen3", "phi3 bf16", "qwen2 seq 1000 bf16")

#: Why a program without convolutions differs otherwise.
PROGRAM_CAUSES = {
    "gpt-neox bf16 autocast": (
        "in each layer and step, the simulated backward pass of cuDNN's attention takes one block of 1 MiB more; without these blocks, what it "
        "reserves is equal"
    ),
    "falcon bf16": "64 bytes, of blocks of 1 to 8 bytes that are missing in the simulation",
}


@dataclasses.dataclass
class Peaks:
    """Of a program: the most that its tensors had at a moment, and that the allocator had of the device."""

    requested: int = 0
    reserved: int = 0
    #: Why it did not end; empty: it did.
    fault: str = ""


@dataclasses.dataclass
class Simulated(Peaks):
    #: The operators whose memory the profile calls an estimate.
    listed: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class HeldOut:
    """Programs that were measured after all rules of the simulation had been written."""

    programs: dict[str, Peaks] = dataclasses.field(default_factory=dict)
    #: How many had the measured peak of requested bytes when they were first compared, before anything was mended; 0: not known.
    equal_at_first: int = 0
    #: What was found then, and mended.
    remark: str = ""


@dataclasses.dataclass
class Recording:
    """What a GPU did."""

    device: str = ""
    driver: str = ""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Beyond what the allocator reserved, after each of these was used for the first time.
    in_use: dict[str, int] = dataclasses.field(default_factory=dict)
    programs: dict[str, Peaks] = dataclasses.field(default_factory=dict)
    held_out: HeldOut = dataclasses.field(default_factory=HeldOut)
    #: The events of each case: the bytes of a block that is allocated, with a minus sign of one that is freed.
    operators: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    operator_faults: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Why cases are missing.
    remark: str = ""


class Outcome(enum.Enum):
    EQUAL = "equal event by event"
    ORDER = "the same blocks in another order"
    FEWER = "blocks missing in the simulation"
    OTHER = "otherwise different"


@dataclasses.dataclass
class OperatorResult:
    name: str
    family: str
    outcome: Outcome


@dataclasses.dataclass
class ProgramResult:
    name: str
    real: Peaks
    simulated: Simulated

    @property
    def compared(self) -> bool:
        return not (self.real.fault or self.simulated.fault)

    @property
    def requested_equal(self) -> bool:
        return self.compared and self.real.requested == self.simulated.requested

    @property
    def reserved_equal(self) -> bool:
        return self.compared and self.real.reserved == self.simulated.reserved

    @property
    def equal(self) -> bool:
        return self.requested_equal and self.reserved_equal

    @property
    def has_convolutions(self) -> bool:
        return any("convolution" in name for name in self.simulated.listed)


def preset_of(device: str) -> str:
    """Raises `ValueError` if no preset stands for a GPU like it."""
    for word, preset in PRESETS.items():
        if word in device:
            return preset
    raise ValueError(f"no preset stands for {device}; there are those of {', '.join(PRESETS)}")


def takes_lowest_of_equal_blocks(recording: Recording) -> bool:
    """Whether the recorded PyTorch takes, of free blocks of one size, the one at the lowest address."""
    major, minor = recording.versions["torch"].split(".")[:2]
    return (int(major), int(minor)) < (2, 12)


def write_operators(folder: pathlib.Path, recording: Recording) -> None:
    content = {"remark": recording.remark, "faults": recording.operator_faults, "events": recording.operators}
    text = json.dumps(content, separators=(",", ":"))
    (folder / "operators.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def write_programs(folder: pathlib.Path, recording: Recording) -> None:
    def row(of: Peaks | HeldOut) -> dict[str, object]:
        return {name: value for name, value in dataclasses.asdict(of).items() if value}

    def rows(programs: dict[str, Peaks]) -> dict[str, object]:
        return {name: row(peaks) for name, peaks in programs.items()}

    content = {name: getattr(recording, name) for name in ("device", "driver", "versions", "in_use")}
    content["programs"] = rows(recording.programs)
    if recording.held_out.programs:
        content["held_out"] = {**row(recording.held_out), "programs": rows(recording.held_out.programs)}
    (folder / "programs.json").write_text(json.dumps(content, indent=1) + "\n")


def read_recording(folder: pathlib.Path) -> Recording:
    made = json.loads((folder / "programs.json").read_text())
    operators = json.loads(gzip.decompress((folder / "operators.json.gz").read_bytes()))

    def peaks_of(rows: dict[str, dict[str, Any]]) -> dict[str, Peaks]:
        return {name: Peaks(**row) for name, row in rows.items()}

    programs = peaks_of(made.pop("programs"))
    further = made.pop("held_out", {"programs": {}})
    held_out = HeldOut(peaks_of(further.pop("programs")), **further)
    return Recording(
        **made, programs=programs, held_out=held_out, operators=operators["events"], operator_faults=operators["faults"],
        remark=operators["remark"],
    )


def _is_part_of(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether the whole has these, in this order, among others."""
    rest = iter(whole)
    return all(each in rest for each in part)


def outcome_of(real: list[int], simulated: list[int], faults_equal: bool = True) -> Outcome:
    if real == simulated and faults_equal:
        return Outcome.EQUAL
    if not faults_equal:
        return Outcome.OTHER
    if sorted(real) == sorted(simulated):
        return Outcome.ORDER
    return Outcome.FEWER if _is_part_of(simulated, real) else Outcome.OTHER


def judge_operators(recording: Recording, simulated: dict[str, list[int]], faults: dict[str, str]) -> list[OperatorResult]:
    """Of the cases that were recorded."""
    results = []
    for family, cases in FAMILIES.items():
        for name in cases:
            if name in recording.operators:
                faults_equal = (name in faults) == (name in recording.operator_faults)
                outcome = outcome_of(recording.operators[name], simulated.get(name, []), faults_equal)
                results.append(OperatorResult(name, family, outcome))
    return results


def different(operators: Sequence[OperatorResult], programs: Sequence[ProgramResult]) -> list[str]:
    """The names of those that are not equal, and of those that may be or not from run to run."""
    names = [each.name for each in operators if each.outcome is not Outcome.EQUAL or each.name in UNORDERED]
    return names + [each.name for each in programs if each.compared and not each.equal]


def cause_of(name: str) -> str:
    for pattern, cause in CAUSES.items():
        if re.match(pattern, name):
            return cause
    return "not explained"


# --- the page


def _off(real: int, simulated: int) -> str:
    if real == simulated:
        return "equal"
    percent = f"{(simulated / real - 1) * 100:+.3f}"
    return f"{percent} %" if float(percent) else f"{simulated - real:+,} bytes"


def _program_row(result: ProgramResult) -> str:
    real, simulated = result.real, result.simulated
    if not result.compared:
        return f"| {result.name} | failed: {(real.fault or simulated.fault).replace('|', '/')} | | | | | | |"
    listed = ", ".join(f"`{name.removeprefix('aten::')}`" for name in simulated.listed)
    return (
        f"| {result.name} | {real.requested:,} | {simulated.requested:,} | {_off(real.requested, simulated.requested)} | "
        f"{real.reserved:,} | {simulated.reserved:,} | {_off(real.reserved, simulated.reserved)} | {listed} |"
    )


def _program_rows(results: Sequence[ProgramResult]) -> list[str]:
    return [
        "| program | requested: measured | simulated | error | reserved: measured | simulated | error | listed |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
        *(_program_row(each) for each in results),
    ]


def _answer(
    operators: Sequence[OperatorResult],
    programs: Sequence[ProgramResult],
    held_out: Sequence[ProgramResult],
    equal_at_first: int,
    device: str,
) -> str:
    compared = [each for each in programs if each.compared]
    plain = [each for each in compared if not each.has_convolutions]
    equal = sum(each.outcome is Outcome.EQUAL for each in operators)

    def exact(results: Sequence[ProgramResult]) -> tuple[int, int, int]:
        return len(results), sum(each.requested_equal for each in results), sum(each.reserved_equal for each in results)

    total, requested, reserved = exact(compared)
    plain_total, plain_requested, plain_reserved = exact(plain)
    further = ""
    if held_out:
        _, now, now_reserved = exact(held_out)
        found = f"had the peak of requested bytes for {equal_at_first} at first, and has it for {now} since what they showed was mended"
        if not equal_at_first:
            found = f"has the peak of requested bytes for {now}"
        further = (
            f" Of {len(held_out)} further programs, measured only after its rules had been written, it {found}, and that of reserved bytes "
            f"for {now_reserved}."
        )
    return (
        f"The simulation without a GPU has the peak of requested bytes that was measured on the {device}, to the byte, for {requested} of "
        f"{total} training programs, and that of reserved bytes for {reserved}; of the {plain_total} without convolutions, whose workspaces "
        f"cuDNN chooses, for {plain_requested} and {plain_reserved}.{further} Of {len(operators):,} single operators, most of them forward "
        f"and backward, {equal:,} allocate and free the same bytes in the same order."
    )


def _within(programs: Sequence[ProgramResult]) -> list[str]:
    lines = ["| programs | | requested: equal | within 0.1 % | within 1 % | reserved: equal | within 0.1 % | within 1 % |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    compared = [each for each in programs if each.compared]
    groups = {
        "without convolutions": [each for each in compared if not each.has_convolutions],
        "with convolutions": [each for each in compared if each.has_convolutions],
    }
    for title, results in groups.items():
        cells = [title, str(len(results))]
        for what in ("requested", "reserved"):
            off = [abs(getattr(each.simulated, what) / getattr(each.real, what) - 1) for each in results]
            cells += [str(sum(each <= limit for each in off)) for limit in (0, 0.001, 0.01)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _family_rows(operators: Sequence[OperatorResult]) -> list[str]:
    lines = ["| operators | cases | " + " | ".join(each.value for each in Outcome) + " |", "|---|---:|" + "---:|" * len(Outcome)]
    for family in FAMILIES:
        found = [each.outcome for each in operators if each.family == family]
        counts = " | ".join(f"{found.count(outcome) or ''}" for outcome in Outcome)
        lines.append(f"| {family} | {len(found)} | {counts} |")
    return lines


def _stem(name: str) -> str:
    """Without dtypes, sizes and options."""
    return re.sub(r" (f32|bf16|f16|batch|bi |\(|\d).*", "", name)


def _lies_elsewhere(result: ProgramResult) -> bool:
    return result.name in SEGMENTS_ELSEWHERE and result.requested_equal and not result.reserved_equal


def _program_explanations(programs: Sequence[ProgramResult]) -> list[str]:
    differing = [each for each in programs if each.compared and not each.equal]
    rows = [each for each in differing if not each.has_convolutions]
    elsewhere = [each.name for each in rows if _lies_elsewhere(each)]
    lines = []
    if len(rows) < len(differing):
        lines += [
            "- With convolutions: what they take of the device besides their results, cuDNN decides by the sizes and the GPU. It is not",
            "  simulated, and the profile lists them.",
        ]
    if elsewhere:
        lines += [
            f"- {'; '.join(elsewhere)}: their segments lie elsewhere. Of two free blocks that fit equally well, the allocator takes the one with",
            "  the lower address. See [the order of addresses](#the-order-of-addresses).",
        ]
    lines += [f"- {each.name}: {PROGRAM_CAUSES.get(each.name, 'not explained')}." for each in rows if each.name not in elsewhere]
    return lines


def _order_of_addresses(results: Sequence[ProgramResult]) -> list[str]:
    if not any(_lies_elsewhere(each) for each in results):
        return []
    return [
        "## The order of addresses",
        "",
        "Of free blocks of one size, PyTorch up to 2.11 takes that with the lowest address, and later versions the oldest. So here, in the",
        "allocator's model, the addresses of segments above 2 MiB descend and those of small ones ascend, as an H200's driver mostly gives",
        "them. Were all to ascend, gpt2 b4 s512 fp32 sdpa, gemma2 bf16 autocast and albert fp32, which are equal, would differ by 20 MiB and",
        "more of reserved bytes. When the driver leaves this order is not predicted, so the programs that are named above still differ, by one",
        "segment of 2 MiB each. With the blocks and addresses of the recording, the same rules place every block where it was, and",
        "reserve what was measured.",
        "",
    ]


def _held_out(recording: Recording, results: Sequence[ProgramResult]) -> list[str]:
    if not results:
        return []
    return [
        "## Held out",
        "",
        "These programs were measured after all rules of the simulation had been written, so none of the rules was made to fit them",
        f"(`benchmarks/gpu/python/held_out_programs.py`). {recording.held_out.remark}".rstrip(),
        "",
        "`bf16` is the type of the parameters; of autocast where the name says so, and in the hand-written model. `amp` is autocast with a scaled",
        "loss, `ckpt` recomputation, `accum` three backward passes a step.",
        "",
        *_within(results),
        "",
        *_program_rows(results),
        "",
        "Why they differ:",
        "",
        *_program_explanations(results),
        "",
    ]


def _explanations(operators: Sequence[OperatorResult]) -> list[str]:
    by_cause: dict[str, list[str]] = {}
    for each in operators:
        if each.outcome is not Outcome.EQUAL:
            by_cause.setdefault(cause_of(each.name), []).append(each.name)
    return [
        f"- {', '.join(f'`{stem}`' for stem in dict.fromkeys(map(_stem, names)))} ({len(names)}): {cause}."
        for cause, names in by_cause.items()
    ]


def _in_use(recording: Recording) -> list[str]:
    lines = ["| after | bytes | more than before |", "|---|---:|---:|"]
    before = 0
    for what, size in recording.in_use.items():
        lines.append(f"| {what} | {size:,} | {size - before:,} |" if before else f"| {what} | {size:,} | |")
        before = size
    return lines


def document(
    recording: Recording,
    operators: Sequence[OperatorResult],
    programs: Sequence[ProgramResult],
    held_out: Sequence[ProgramResult],
    versions: dict[str, str],
    folder: str,
) -> str:
    """The page, in Markdown."""

    def text_of(versions: dict[str, str]) -> str:
        return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))

    device = recording.device.removeprefix("NVIDIA ")
    script = "benchmarks/gpu/python/gpu_runs.py"
    commands = (f"{script} record {folder}", f"{script} compare {folder} docs/accuracy_h200.md")
    missing = [name for cases in FAMILIES.values() for name in cases if name not in recording.operators]
    lines = [
        f"# Beside a GPU: {recording.device}",
        "",
        _answer(operators, programs, held_out, recording.held_out.equal_at_first, device),
        "",
        f"Recorded with the driver {recording.driver}: {text_of(recording.versions)}.",
        f"Simulated as `{preset_of(recording.device)}`: {text_of(versions)}.",
        "",
        "```",
        f"{commands[0]:{len(commands[1])}}    # on a GPU, without memprof",
        f"{commands[1]}    # without a GPU: this page",
        "```",
        "",
        "## Programs",
        "",
        *_within(programs),
        "",
        "Requested is PyTorch's `requested_bytes`, reserved its `reserved_bytes`, both at their peak, in bytes; simulated is the peak of `cuda:0`,",
        "and what [the model of the allocator](caching_allocator.md) reserves without a limit. Listed is what the profile of the simulation",
        "calls an estimate: its table `approximations`. The programs are in `benchmarks/python_models/model_programs.py` and",
        "`benchmarks/gpu/python/gpu_programs.py`: `b` is the batch, `s` the length; `bf16` is autocast in timm's and GPT-2's, and the",
        "parameters in others; in `benchmark`, cuDNN tries all algorithms, each with the workspace that it asks for.",
        "",
        *_program_rows(programs),
        "",
        "Why they differ:",
        "",
        *_program_explanations(programs),
        "",
        *_held_out(recording, held_out),
        *_order_of_addresses([*programs, *held_out]),
        "## Single operators",
        "",
        "Each case is compared allocation by allocation and free by free, with the bytes that were requested",
        f"(`benchmarks/gpu/python/operator_cases.py`). Those that differ are named in `{folder}/different.txt`, which a test checks",
        "(`python/tests/test_gpu_accuracy.py`).",
        "",
        *_family_rows(operators),
        "",
        "Why they differ:",
        "",
        *_explanations(operators),
    ]
    if missing:
        stems = ", ".join(f"`{stem}`" for stem in dict.fromkeys(map(_stem, missing)))
        lines += ["", f"{len(missing):,} cases have no record: {stems}. {recording.remark}".rstrip()]
    if recording.in_use:
        lines += [
            "",
            "## What the device holds besides",
            "",
            "What `cudaMemGetInfo` says is in use, less what the allocator reserved, in one process: context, kernels and libraries, which are loaded",
            "when they are first used. It is not simulated: add it to the reserved bytes to know what a device must have.",
            "",
            *_in_use(recording),
        ]
    return "\n".join(lines) + "\n"
