"""Published runs on many GPUs beside `memprof estimate`, which knows dimensions alone."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Sequence

GIB = 1 << 30


def _llama(width: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int) -> dict[str, object]:
    return {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }


#: As Hugging Face's config.json has it.
MODELS = {
    "Llama 3.1 8B": _llama(4096, 14336, 32, 32, 8, 128256),
    "Llama 2 7B": _llama(4096, 11008, 32, 32, 32, 32000),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A published run on many GPUs: what one of them took, in `unit` bytes."""

    source: str
    model: str
    settings: str
    measured: float
    unit: float
    #: Of `memprof estimate`, besides those in `COMMON`.
    options: tuple[str, ...]
    #: The measured run recomputed some operations of each block: estimated are both ends, all kept and all recomputed.
    is_selective: bool
    note: str = ""


COMMON = ("--step", "--torch", "--attention", "fused", "--dtype", "bf16", "--master-weights", "--json")
_SELECTIVE = "selective checkpointing is between"
_FULL = "the loss's logits in single precision, what the allocator reserves and the context are measured, too, and not estimated"


def _titan(gpus: int, techniques: str, measured: float) -> Run:
    options = ("--batch-size", "2", "--seq-len", "8192", "--data-parallel", str(gpus), "--zero", "3")
    return Run("torchtitan", "Llama 3.1 8B", f"{gpus} H100, {techniques}, 2 × 8,192", measured, GIB, options, True, _SELECTIVE)


RUNS = (
    _titan(8, "FSDP", 82.4),
    _titan(8, "FSDP, compiled", 77.0),
    _titan(128, "FSDP", 67.0),
    _titan(128, "FSDP, compiled", 62.0),
    Run(
        "torchtitan",
        "Llama 3.1 8B",
        "8 H100, FSDP, compiled, Float8, 1 × 32,768",
        83.9,
        GIB,
        ("--batch-size", "1", "--seq-len", "32768", "--data-parallel", "8", "--zero", "3", "--recompute"),
        False,
        _FULL,
    ),
    Run(
        "Megatron-LM",
        "Llama 2 7B",
        "16 A100, DP 8, PP 2, first stage, 2 × 4,096",
        69.1,
        1e9,
        tuple(
            "--batch-size 2 --seq-len 4096 --gradient-dtype fp32 --data-parallel 8 --zero 1 "
            "--pipeline-parallel 2 --pipeline-stage 0 --micro-batches 128".split()
        ),
        False,
        "its sequence, recomputation and distributed optimizer are not published: assumed are 4,096, none, and that it was used",
    ),
)

#: What `memprof estimate` has no option for.
LEFT_OUT = (
    "Not estimated are torchtitan's runs with context parallelism (84.2, 84.0 and 84.5 GiB; and those of 405B), tensor parallelism with FSDP "
    "and Float8 of the 70B and 405B models (67.6 to 84.9 GiB), and Float8 beside bfloat16 (76.8 and 61.8 GiB): there is no option for them."
)


def peak(program: pathlib.Path, run: Run, *more: str) -> int:
    """The bytes of the estimated step's peak. Raises `ValueError` with what the program said if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config.json"
        config.write_text(json.dumps(MODELS[run.model]), encoding="utf-8")
        ended = subprocess.run(
            [program, "estimate", "--run-config", config, *COMMON, *run.options, *more], capture_output=True, text=True, check=False
        )
    if ended.returncode != 0:
        raise ValueError(f"memprof estimate: {ended.stderr.strip() or ended.returncode}")
    return int(max(phase["peak_bytes"] for phase in json.loads(ended.stdout)["step"]["phases"]))


def _row(program: pathlib.Path, run: Run) -> str:
    kept = peak(program, run) / run.unit
    settings = f"| {run.source} | {run.model}, {run.settings} | {run.measured:.1f} {'GiB' if run.unit == GIB else 'GB'} |"
    if not run.is_selective:
        return f"{settings} {kept:.1f} | {(kept / run.measured - 1) * 100:+.1f} % | {run.note} |"
    recomputed = peak(program, run, "--recompute") / run.unit
    inside = "inside" if recomputed <= run.measured <= kept else "outside"
    return f"{settings} {recomputed:.1f} to {kept:.1f} | {inside} | {run.note} |"


def report(program: pathlib.Path, runs: Sequence[Run], preface: str) -> list[str]:
    """The table, in Markdown. Raises as `peak`."""
    head = ["| from | run | measured, of one GPU | estimated | error | note |", "|---|---|---:|---:|---:|---|"]
    return [preface.rstrip("\n"), "", *head, *(_row(program, run) for run in runs), "", LEFT_OUT]
