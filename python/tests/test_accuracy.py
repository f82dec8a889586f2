"""benchmarks/accuracy, on numbers that are made up and models that are small."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types
from typing import Any

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks/accuracy"
if not FOLDER.exists():
    pytest.skip("the benchmark is not there", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

import accuracy  # noqa: E402
import measured  # noqa: E402
import report  # noqa: E402
import timm_models  # noqa: E402
from measured import MeasuredRun  # noqa: E402
from timm_models import Prediction  # noqa: E402

HEAD = "model,batch,measured_mib,faketensor_mib\n"


def test_a_table_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(HEAD + "resnet18,8,2000.0,250.5\nvit,16,3000,1\n")
    assert measured.read_timm(path) == [MeasuredRun("resnet18", 8, 2000, 250.5), MeasuredRun("vit", 16, 3000, 1)]


@pytest.mark.parametrize(
    "text, fault",
    [
        ("", "expected the columns"),
        ("model,batch\n", "expected the columns"),
        (HEAD, "has no rows"),
        (HEAD + "vit,8,3000\n", "line 2"),
        (HEAD + "vit,8,3000,1\nvit,many,3000,1\n", "line 3: .*many"),
        (HEAD + "vit,0,3000,1\n", "line 2"),
        (HEAD + "vit,8,nan,1\n", "line 2"),
        (HEAD + "vit,8,3000,1,5\n", "line 2: expected 4 values"),
        (HEAD + "vit,8,3000,1\nvit,8,3000,1\n", "vit with batch 8 twice"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_line(tmp_path: pathlib.Path, text: str, fault: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=fault):
        measured.read_timm(path)


def test_predictions_go_on_where_they_ended(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, predicted = tmp_path / "table.csv", tmp_path / "predicted.csv"
    table.write_text(HEAD + "a,8,2000,1\na,16,3000,1\nb,8,2500,1\n")
    predicted.touch()  # as an interrupted run may leave it
    asked = []

    def predict(wanted: dict[str, list[int]], jobs: int, most_seconds: float) -> list[Prediction]:
        asked.append(wanted)
        return [Prediction(model, batch, reserved=1.5, exact=True) for model, batches in wanted.items() for batch in batches[:1]]

    monkeypatch.setattr(timm_models, "predict", predict)
    for _ in range(3):
        monkeypatch.setattr(sys, "argv", ["accuracy.py", "predict", str(table), str(predicted)])
        assert accuracy.main() == 0
    assert asked == [{"a": [8, 16], "b": [8]}, {"a": [16]}, {}]  # dictionaries are equal in any order
    made = accuracy.read_predictions(predicted)
    assert sorted((each.model, each.batch, each.reserved, each.exact) for each in made) == [("a", 8, 1.5, True), ("a", 16, 1.5, True), ("b", 8, 1.5, True)]


def test_half_of_the_models_are_held_out() -> None:
    held_out = sum(measured.is_held_out(f"model_{index}") for index in range(2000))
    assert 900 < held_out < 1100


def test_runs_that_ended_early_show_less_than_a_smaller_batch() -> None:
    runs = [MeasuredRun("a", batch, mib, 1) for batch, mib in ((8, 2000), (16, 3000), (32, 2500), (64, 39_500), (128, 3000))]
    assert report.ran_out(runs) == {("a", 32), ("a", 64), ("a", 128)}
    assert report.ran_out(list(reversed(runs))) == report.ran_out(runs)
    assert report.ran_out([MeasuredRun("a", 8, 2000, 1), MeasuredRun("b", 16, 1000, 1)]) == set()


def test_a_quantile_is_one_of_the_values() -> None:
    assert report.quantile([5, 1, 4, 2, 3], 0.9) == 5
    assert report.quantile([float(value) for value in range(1, 11)], 0.9) == 9
    assert report.quantile([7], 0.5) == 7


def models(held_out: bool, count: int) -> list[str]:
    names = (f"model_{index}" for index in range(10_000))
    return [name for name, _ in zip((name for name in names if measured.is_held_out(name) == held_out), range(count))]


def test_a_constant_is_chosen_on_some_models_and_judged_on_the_others() -> None:
    chosen, judged = models(False, 3), models(True, 2)
    runs = [MeasuredRun(name, 8, 3000, 1000) for name in chosen] + [MeasuredRun(name, 8, mib, 1000) for name, mib in zip(judged, (3000, 4000))]
    predictions = [Prediction(name, 8, reserved=reserved, has_convolutions=True, exact=True, seconds=2) for name, reserved in zip(chosen, (900, 1200, 1300))]
    predictions += [Prediction(name, 8, reserved=1200, has_convolutions=True, exact=True, seconds=2) for name in judged]
    both = report.judge(runs, predictions)
    assert len(both) == 5
    assert report.constant_of(both, lambda run: run.prediction.reserved) == 1800
    errors = report.errors_of([each for each in both if each.measured.model in judged], lambda run: run.prediction.reserved + 1800)
    # 3,000 for 3,000, and 3,000 for 4,000.
    assert (errors.runs, errors.median, errors.p90, errors.mean) == (2, 0.125, 0.25, -0.125)
    assert errors.within == {0.02: 0.5, 0.05: 0.5, 0.1: 0.5}
    text = report.document(both, predictions, "torch 1", "./dev accuracy")
    assert "| memprof, all | 2 | 12.5 % | 25.0 % | -12.5 % | 50.0 % | 50.0 % | 50.0 % |" in text
    assert f"| {judged[1]} | 8 | 4,000 | 3,000 | -25.0 % | too low, as without the workspaces" in text
    assert "models without convolutions" not in text


def test_a_constant_needs_models_of_both_halves() -> None:
    for held_out in (False, True):
        names = models(held_out, 2)
        judged = report.judge([MeasuredRun(name, 8, 3000, 1000) for name in names], [Prediction(name, 8, reserved=1000) for name in names])
        with pytest.raises(ValueError, match="take more models"):
            report.document(judged, [each.prediction for each in judged], "torch 1", "./dev accuracy")


def test_a_row_that_is_cut_off_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "predicted.csv"
    path.write_text(",".join(accuracy.COLUMNS) + "\na,8,1,1,1,1,1,1,True,True,1,\nb,8,1,1,1,1,1,1,True,Tr\n")
    with pytest.raises(ValueError, match="line 3"):
        accuracy.read_predictions(path)


def test_a_prediction_is_a_finite_number(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "predicted.csv"
    for row in ("a,8,1,1,1,1,1,nan,True,True,1,", "a,8,1,1,1,1,1,1,True,maybe,1,"):
        path.write_text(",".join(accuracy.COLUMNS) + f"\n{row}\n")
        with pytest.raises(ValueError, match="line 2: expected finite numbers"):
            accuracy.read_predictions(path)


@pytest.mark.parametrize("option", [["--jobs", "0"], ["--models", "-1"], ["--batches", "0"], ["--seconds", "nan"]])
def test_counts_are_positive(option: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "predict", "table.csv", "predicted.csv", *option])
    with pytest.raises(SystemExit) as ended:
        accuracy.main()
    assert ended.value.code == 2


def test_nothing_is_written_behind_a_line_that_is_cut_off(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, predicted = tmp_path / "table.csv", tmp_path / "predicted.csv"
    table.write_text(HEAD + "a,8,2000,1\n")
    cut = ",".join(accuracy.COLUMNS) + "\na,8,1,1,1,1,1,1,True,True,1.5,"
    predicted.write_text(cut)
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "predict", str(table), str(predicted)])
    assert accuracy.main() == 2
    assert "is cut off; remove it" in capsys.readouterr().err
    assert predicted.read_text() == cut


def test_a_run_that_ended_out_of_memory_is_judged_by_that_alone() -> None:
    chosen, judged = models(False, 1)[0], models(True, 3)
    runs = [MeasuredRun(chosen, 8, 2000, 1), *(MeasuredRun(name, 8, mib, 1) for name, mib in zip(judged, (40_000, 40_000, 3000)))]
    predictions = [Prediction(chosen, 8, reserved=1000, seconds=1)]
    predictions += [Prediction(name, 8, reserved=mib, seconds=1) for name, mib in zip(judged, (60_000, 30_000, 2000))]
    text = report.document(report.judge(runs, predictions), predictions, "torch 1", "./dev accuracy")
    assert "Of 3 runs, 2 ended out of memory. 2 are judged right; of the 1 others 1 are predicted more than 3 %" in text
    assert "| memprof, all | 1 | 0.0 % |" in text


def test_any_name_of_torchvision_can_be_imported_and_derived_from() -> None:
    program = """
import torchvision_stand_in
torchvision_stand_in.install()
import torchvision
from torchvision.transforms import functional, InterpolationMode
import torchvision.ops.misc as misc
class Mode(InterpolationMode): pass
print(torchvision.__version__, InterpolationMode.BICUBIC, issubclass(misc.FrozenBatchNorm2d, object))
"""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def stand_in_for_timm() -> types.ModuleType:
    import torch

    class Linear(torch.nn.Module):
        default_cfg = {"input_size": (3, 32, 32)}

        def __init__(self, width: int) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, width, bias=False)

        def forward(self, images: Any) -> Any:
            return self.layer(images.flatten(1))

    def create_model(name: str) -> torch.nn.Module:
        if name == "dies":
            os.kill(os.getpid(), 9)
        if name == "waits":
            import time

            time.sleep(1000)
        return Linear(int(name))

    module = types.ModuleType("timm")
    module.create_model = create_model  # type: ignore[attr-defined]
    return module


def test_a_model_is_predicted_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "timm", stand_in_for_timm())
    made = list(timm_models.predict({"2048": [1, 4], "dies": [8], "none": [8]}, 2, 600))
    found = {(each.model, each.batch): each for each in made}
    assert len(made) == len(found) == 4
    for batch in (1, 4):
        run = found["2048", batch]
        assert run.fault == ""
        # At the optimizer's step: 24 MiB each, beside them gradients with the weights' decay, and cuBLAS's workspaces of 8.125 MiB.
        assert (run.parameters, run.gradients, run.optimizer_state) == (24, 24, 24)
        assert 4 * 24 + 2 * 8.125 <= run.live < 4 * 24 + 2 * 8.125 + 0.1
        assert run.live <= run.reserved <= 130
        assert not run.has_convolutions
    assert found["dies", 8].fault == "its process ended with -9"
    assert "invalid literal" in found["none", 8].fault


def test_a_model_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "timm", stand_in_for_timm())
    assert [(each.batch, each.fault) for each in timm_models.predict({"waits": [2, 4]}, 1, 1)] == [
        (2, "not done after 1 s"),
        (4, "not done after 1 s"),
    ]
