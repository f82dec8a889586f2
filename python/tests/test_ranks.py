"""`memprof merge` of the processes that torchrun starts."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

PROGRAM = """
    import os, sys
    import torch, torch.distributed as distributed
    import memprof

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    with memprof.capture(trace_file=os.path.join(sys.argv[1], "train_rank%r.memtrace")):
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
        memprof.snapshot("MODEL_CREATION")
        for step in range(4):
            rows = 4096 if rank == 2 and step >= 1 else 32  # one rank has longer batches from the second step on
            loss = model(torch.randn(rows, 64)).square().mean()
            memprof.snapshot("FORWARD_PASS")
            loss.backward()
            memprof.snapshot("BACKWARD_PASS")
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad)
                parameter.data.add_(parameter.grad, alpha=-0.01)
            model.zero_grad()
            memprof.snapshot("OPTIMIZER_STEP")
            del loss
    distributed.destroy_process_group()
"""


def merged(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "memprof", "merge", *arguments], capture_output=True, text=True)


def test_the_rank_of_torchrun_that_differs_is_named(tmp_path: pathlib.Path) -> None:
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    if importlib.util.find_spec("torch.distributed.run") is None:
        pytest.skip("this torch has no torchrun")
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "job").mkdir()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    done = subprocess.run([*torchrun, "train.py", "job"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    printed = merged(str(tmp_path / "job"), "--json")
    assert (printed.returncode, printed.stderr) == (0, "")
    of = json.loads(printed.stdout)
    assert (of["ranks"], of["world_size"], of["missing"], of["standing_out"]) == (4, 4, [], 1)
    (finding,) = of["findings"]
    assert finding["run"]["rank"] == 2
    assert finding["since_step"] == 1
    # The output of the ReLU, which the backward pass needs: 4,096 rows of 256 floats.
    held = {owner["operation"]: owner["bytes"] for owner in finding["owners"]}
    assert held["Sequential/1/aten::relu"] == 4096 * 256 * 4
    assert sum(owner["change_bytes"] for owner in finding["owners"]) + finding["other_change_bytes"] == finding["change_bytes"]
    text = " ".join(merged(str(tmp_path / "job")).stdout.split())
    assert text.startswith("Ranks rank 2 peaks ") and "since step 2 (FORWARD_PASS)" in text

    # A rank whose file is lost.
    (tmp_path / "job" / "train_rank3.memtrace").unlink()
    assert "rank 3 of 4 left no recording" in merged(str(tmp_path / "job")).stdout
