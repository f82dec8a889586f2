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
        "max_position_embeddings": 262144,
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
    note: str = ""


COMMON = ("--step", "--torch", "--attention", "fused", "--dtype", "bf16", "--master-weights", "--json")
_EAGER = "what the allocator reserves besides tensors, and what FSDP gathers ahead, is measured, too"
_COMPILED = _EAGER + "; compiled blocks as eager ones"
_RESERVED = _COMPILED + "; Float8 as bfloat16"
_SHARDED = ("--zero", "3", "--float32-logits")


def _titan(gpus: int, techniques: str, measured: float, note: str) -> Run:
    options = ("--batch-size", "2", "--seq-len", "8192", "--data-parallel", str(gpus), "--recompute=selective", *_SHARDED)
    return Run("torchtitan", "Llama 3.1 8B", f"{gpus} H100, {techniques}, 2 × 8,192", measured, GIB, options, note)


def _long(sequence: int, parts: int, measured: float) -> Run:
    options = ("--batch-size", "1", "--seq-len", str(sequence), "--context-parallel", str(parts), "--data-parallel", str(8 // parts))
    settings = f"8 H100, FSDP, CP {parts}, compiled, Float8, 1 × {sequence:,}"
    return Run("torchtitan", "Llama 3.1 8B", settings, measured, GIB, (*options, "--recompute", *_SHARDED), _RESERVED)


RUNS = (
    _titan(8, "FSDP", 82.4, _EAGER),
    _titan(8, "FSDP, compiled", 77.0, _COMPILED),
    _titan(8, "FSDP, compiled, Float8", 76.8, _RESERVED),
    _titan(128, "FSDP", 67.0, _EAGER),
    _titan(128, "FSDP, compiled", 62.0, _COMPILED),
    _titan(128, "FSDP, compiled, Float8", 61.8, _RESERVED),
    _long(32768, 1, 83.9),
    _long(65536, 2, 84.2),
    _long(131072, 4, 84.0),
    _long(262144, 8, 84.5),
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
        "its sequence, recomputation and distributed optimizer are not published: assumed are 4,096, none, and that it was used",
    ),
)

#: What `memprof estimate` has no option for.
LEFT_OUT = (
    "Not estimated are torchtitan's runs of the 70B and 405B models, with Float8 and asynchronous tensor parallelism beside FSDP (67.6 to 84.9 GiB)."
)


def peak(program: pathlib.Path, run: Run) -> int:
    """The bytes of the estimated step's peak. Raises `ValueError` with what the program said if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config.json"
        config.write_text(json.dumps(MODELS[run.model]), encoding="utf-8")
        ended = subprocess.run(
            [program, "estimate", "--run-config", config, *COMMON, *run.options], capture_output=True, text=True, check=False
        )
    if ended.returncode != 0:
        raise ValueError(f"memprof estimate: {ended.stderr.strip() or ended.returncode}")
    return int(max(phase["peak_bytes"] for phase in json.loads(ended.stdout)["step"]["phases"]))


def _row(program: pathlib.Path, run: Run) -> str:
    estimated = peak(program, run) / run.unit
    settings = f"| {run.source} | {run.model}, {run.settings} | {run.measured:.1f} {'GiB' if run.unit == GIB else 'GB'} |"
    return f"{settings} {estimated:.1f} | {(estimated / run.measured - 1) * 100:+.1f} % | {run.note} |"


def report(program: pathlib.Path, runs: Sequence[Run], preface: str) -> list[str]:
    """The table, in Markdown. Raises as `peak`."""
    head = ["| from | run | measured, of one GPU | estimated | error | note |", "|---|---|---:|---:|---:|---|"]
    return [preface.rstrip("\n"), "", *head, *(_row(program, run) for run in runs), "", LEFT_OUT]
