"""benchmarks/python_models: two programs that need only torch, and the page on numbers that are made up."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks/python_models"
if not FOLDER.exists():
    pytest.skip("the benchmark is not there", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

import model_programs  # noqa: E402
import models_page  # noqa: E402
import python_models  # noqa: E402
from models_page import Measured, ModelResult  # noqa: E402


@pytest.mark.parametrize("name", ["torch: transformer encoder", "torch: convolutions"])
def test_a_program_peaks_as_in_a_real_run(name: str) -> None:
    # In a process that has not run autograd, whose threads do not survive the fork of a run.
    program = "import dataclasses, json, sys, python_models\nprint(json.dumps(dataclasses.asdict(python_models.measure(sys.argv[1]))))"
    done = subprocess.run([sys.executable, "-c", program, name], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    result = ModelResult(name, *(Measured(**rows[mode]) for mode in ("real", "simulated", "claimed")))
    assert (result.real.fault, result.simulated.fault, result.claimed.fault) == ("", "", "")
    assert result.simulated.peak == result.real.peak
    # Weights, gradients and two moments of each, in float32.
    assert result.claimed.peak > 4 * 4 * {"torch: transformer encoder": 3 * (4 * 128**2 + 2 * 128 * 512), "torch: convolutions": 9 * (32 * 64 + 64 * 128)}[name]
    assert not models_page.is_unexplained(result)


def test_what_goes_wrong_in_a_process_is_its_fault() -> None:
    def raises(device: str) -> None:
        raise ValueError("a model\nof two lines")

    def dies(device: str) -> None:
        os.write(2, b"the last words\n")
        os.kill(os.getpid(), 9)

    def waits(device: str) -> None:
        import time

        time.sleep(1000)

    assert python_models.run_apart(raises, "real").fault == "ValueError: a model of two lines"
    assert python_models.run_apart(dies, "simulated").fault == "its process ended with -9: the last words"
    assert python_models.run_apart(waits, "real", seconds=1).fault == "not done after 1 s"


def test_a_package_that_is_missing_is_a_fault_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare() -> model_programs.Run:
        raise ModuleNotFoundError("No module named 'nowhere'")

    monkeypatch.setitem(model_programs.PROGRAMS, "none", model_programs.Program("none", ("nowhere",), prepare))
    result = python_models.measure("none")
    assert result.real.fault == result.claimed.fault == "ModuleNotFoundError: No module named 'nowhere'"
    assert models_page.is_unexplained(result)


def made_up(name: str, real: int, simulated: int, **claimed: str) -> ModelResult:
    return ModelResult(name, Measured(peak=real), Measured(peak=simulated, listed=["size of `f`", "size of `f`"]), Measured(peak=7, **claimed))


def test_the_page_hides_nothing(tmp_path: pathlib.Path) -> None:
    rows = [made_up("same", 1000, 1000), made_up("near", 10_000, 10_009), made_up("off", 1000, 1010), made_up("fails", 5, 5, fault="Error: a | b")]
    text = models_page.document(rows, {"torch": "1"}, ["late", "later"])
    assert "2 programs have not been run yet: late; later." in text
    assert "Of 4 programs, 4 end both for real and simulated: 2 peak at the same byte, 3 within 0.1 %. 3 end on the claimed device." in text
    assert "| off | 1,000 | 1,010 | +1.00 % |" in text and "size of `f` ×2" in text
    assert "- off: Not explained." in text and "- fails: claimed: `Error: a \\| b` Not explained." in text
    assert "- near" not in text
    assert [models_page.is_unexplained(row) for row in rows] == [False, False, True, True]
    path = tmp_path / "results.json"
    models_page.write_results(path, {row.name: row for row in rows})
    assert list(models_page.read_results(path).values()) == rows
