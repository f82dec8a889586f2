"""`memprof waterfall --run` of Python scripts."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import memprof
import pytest

pytest.importorskip("torch")

Waterfall = Callable[..., "subprocess.CompletedProcess[str]"]

TRAINING = """
import sys
import torch

torch.manual_seed(0)
rows = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    loss = model(torch.randn(rows, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("the script's own words", flush=True)
    with open("steps.txt", "a") as file:
        file.write(".")
"""


@pytest.fixture
def waterfall(tmp_path: pathlib.Path) -> Waterfall:
    """Runs `memprof waterfall OPTIONS --run train.py ARGUMENTS`."""

    def run(text: str, *options: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "memprof", "waterfall", *options, "--run", "train.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


def columns_of(path: pathlib.Path) -> list[dict[str, Any]]:
    columns: list[dict[str, Any]] = json.loads(path.read_text())["columns"]
    return columns


def test_a_script_is_simulated_and_run_for_real(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    done = waterfall(TRAINING, "--json-out", "out.json", arguments=("512",))
    assert (done.returncode, done.stderr) == (0, "")
    assert "measured equals no dispatch, part by part to the byte" in done.stdout and "own words" not in done.stdout
    simulated, real = columns_of(tmp_path / "out.json")
    assert (simulated["title"], real["title"]) == ("no dispatch", "measured")
    # Two steps of the script alone, as a capture counts them.
    (tmp_path / "steps.txt").unlink()
    script = TRAINING.replace("range(1000)", "range(2)")
    (tmp_path / "alone.py").write_text(script)
    command = [sys.executable, "-m", "memprof", "run", "--profile", "alone.json", "alone.py", "512"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert real["peak_bytes"] == simulated["peak_bytes"] == memprof.read(tmp_path / "alone.json").space("cpu").cumulative_peak


def test_runs_end_after_the_steps_that_were_asked_for(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    assert waterfall(TRAINING, "--steps", "3", arguments=("4",)).returncode == 0
    assert (tmp_path / "steps.txt").read_text() == "." * 4  # the third of each ends before the script notes it
    done = waterfall(TRAINING, "--steps=none", arguments=("4",))
    assert (done.returncode, done.stderr) == (2, "memprof waterfall: --steps is 'none'; expected a whole number from 1 on\n")


def test_a_file_or_an_estimate_stands_before_them(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    assert waterfall(TRAINING, "--json-out", "out.json", "--config", "gpt2-124m", arguments=("4",)).returncode == 0
    assert [column["title"] for column in columns_of(tmp_path / "out.json")] == ["estimate", "no dispatch", "measured"]
    assert [column["file"] for column in columns_of(tmp_path / "out.json")] == [None] * 3  # those of the runs are temporary


def test_columns_say_how_many_steps_they_rest_on(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    done = waterfall(TRAINING, "--steps", "3", "--json-out", "out.json", arguments=("4",))
    assert "Steps     no dispatch: the first 3 optimizer steps of the script\n" in done.stdout
    assert "          measured: the first 3 optimizer steps of the script\n" in done.stdout
    columns = columns_of(tmp_path / "out.json")
    assert [(column["optimizer_steps"], column["script_ended"]) for column in columns] == [(3, False)] * 2
    decoder = ("--layers", "1", "--d-model", "8", "--n-heads", "2", "--seq-len", "8", "--batch-size", "1")
    done = waterfall(TRAINING, *decoder, "--json-out", "out.json", arguments=("4",))
    assert "Steps     estimate: one step\n          no dispatch: the first 2 optimizer steps of the script\n" in done.stdout
    assert [column["optimizer_steps"] for column in columns_of(tmp_path / "out.json")] == [1, 2, 2]


def test_a_script_that_ends_before_its_steps_is_said(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    done = waterfall(TRAINING.replace("range(1000)", "range(1)"), "--json-out", "out.json", arguments=("4",))
    assert done.returncode == 0
    assert "no dispatch: 1 optimizer step, then the script ended: 2 were asked for\n" in done.stdout
    columns = columns_of(tmp_path / "out.json")
    assert [(column["optimizer_steps"], column["script_ended"]) for column in columns] == [(1, True)] * 2
    done = waterfall("import torch\nprint(torch.ones(64).sum())\n", "--json-out", "out.json")
    assert done.returncode == 0
    assert "Steps     no dispatch: none: the script ended before an optimizer made a step\n" in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert [(column["optimizer_steps"], column["script_ended"]) for column in document["columns"]] == [(0, True)] * 2
    assert "no optimizer made a step: the peaks are those of what the script did, not of a training step" in document["caveats"]
    # Its last words are not needed for the count.
    text = TRAINING.replace("import torch\n", "import os, torch\n").replace("range(1000)", "range(1)") + "sys.stdout.flush(); os._exit(0)\n"
    assert "no dispatch: 1 optimizer step, then the script ended" in waterfall(text, arguments=("4",)).stdout


def test_what_follows_the_script_is_its_own(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\nimport torch\ntorch.ones(9)\n"
    assert waterfall(script, arguments=("--lr", "3")).returncode == 0
    done = waterfall(script, arguments=("--help",))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("usage: train.py [-h] [--lr LR]\n") and done.stderr.endswith(
        "memprof waterfall: train.py made no tensor of torch, so there is nothing to compare; "
        "--help follows the script, which got it: options of memprof waterfall stand before it\n"
    )
    done = waterfall(script, arguments=("--json",))
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == (
        "memprof waterfall: train.py ended with exit status 2 in the simulated run; "
        "--json follows the script, which got it: options of memprof waterfall stand before it"
    )


def test_the_options_before_the_script_are_checked_before_it_runs(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    with memprof.capture(trace_file=tmp_path / "own.memtrace", torch=False):
        memprof.MemorySpace("cpu").allocate(4096, 64)
    for options, complaint in [
        (("--jsn",), "unknown option '--jsn'"),
        (("--html", "kept.txt"), "cannot write 'kept.txt': it exists and is not a memprof page"),
        (("--map", "nothing"), "--map: 'nothing' is not PATTERN=PART"),
        (("--config", "gpt2-124m", "own.memtrace"), "expected one column at most beside a script's"),
        (("missing.memtrace",), "cannot read 'missing.memtrace'"),
    ]:
        done = waterfall(TRAINING, *options, arguments=("4",))
        assert done.returncode == 2 and complaint in done.stderr, done.stderr
    assert not (tmp_path / "steps.txt").exists()


def test_a_script_without_run_hears_of_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    for arguments in (["train.py"], ["train.py", "--run"]):
        done = subprocess.run([sys.executable, "-m", "memprof", "waterfall", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (2, "memprof waterfall: a script follows --run: memprof waterfall --run train.py\n")


@pytest.mark.parametrize("arguments", (["waterfall", "--help"], ["help", "waterfall"], ["waterfall", "-h", "--run", "train.py"]))
def test_the_help_has_the_options_of_scripts(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "memprof", *arguments], capture_output=True, text=True)
    assert done.returncode == 0
    for word in ("memprof waterfall [OPTIONS] --run SCRIPT.py [ARGUMENTS]", "--steps N", "--show-output", "--map PATTERN=PART"):
        assert word in done.stdout


def test_a_module_is_run_as_well(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    command = [sys.executable, "-m", "memprof", "waterfall", "--json", "--run", "-m", "train", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and len(json.loads(done.stdout)["columns"]) == 2, done.stderr


def test_a_script_that_fails_is_heard(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    done = waterfall("import torch\nprint('no such data')\nraise SystemExit(3)\n")
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr == "no such data\nmemprof waterfall: train.py ended with exit status 3 in the simulated run\n"
    done = waterfall("import torch\ndef train():\n    raise ValueError('no such data')\ntrain()\n")
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[-2:] == [
        "ValueError: no such data",
        "memprof waterfall: train.py ended with exit status 1 in the simulated run",
    ]
    assert not any("_waterfall.py" in line for line in lines)
    command = [sys.executable, "-m", "memprof", "waterfall", "--run", "missing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "memprof waterfall: cannot open 'missing.py': No such file or directory\n")


def test_a_script_that_ends_by_itself_is_compared_whole(waterfall: Waterfall, tmp_path: pathlib.Path) -> None:
    text = "import torch\nkept = [torch.ones(1 << 20) for _ in range(3)]\nraise SystemExit(0)\n"
    assert waterfall(text, "--json-out", "out.json").returncode == 0
    assert [column["peak_bytes"] for column in columns_of(tmp_path / "out.json")] == [3 << 22] * 2


def test_the_words_of_the_script_are_shown_where_that_is_asked_for(waterfall: Waterfall) -> None:
    done = waterfall(TRAINING, "--show-output", arguments=("4",))
    assert done.returncode == 0 and done.stderr == "the script's own words\n" * 2  # one of each run
    assert "own words" not in done.stdout


def test_what_the_machine_has_no_memory_for_is_not_run(waterfall: Waterfall) -> None:
    done = waterfall("import torch\nkept = torch.empty(1 << 50, dtype=torch.uint8)\n")
    assert done.returncode == 2 and done.stderr.startswith("memprof waterfall: the real run needs 1.05e+06 GiB, but only ")
