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
