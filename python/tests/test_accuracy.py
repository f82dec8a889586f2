"""benchmarks/accuracy, on numbers that are made up and models that are small."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import types

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks/accuracy"
if not FOLDER.exists():
    pytest.skip("the benchmark is not there", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

import accuracy  # noqa: E402
import measured  # noqa: E402
import report  # noqa: E402
import timm_models  # noqa: E402
from measured import Kind, MeasuredRun  # noqa: E402
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

    def predict(wanted: dict[str, list[int]], jobs: int, most_seconds: float, capacity: float = 0) -> list[Prediction]:
        asked.append(wanted)
        return [Prediction(model, batch, reserved=1.5, fits=False) for model, batches in wanted.items() for batch in batches[:1]]

    monkeypatch.setattr(timm_models, "predict", predict)
    for _ in range(3):
        monkeypatch.setattr(sys, "argv", ["accuracy.py", "predict", str(table), str(predicted)])
        assert accuracy.main() == 0
    assert asked == [{"a": [8, 16], "b": [8]}, {"a": [16]}, {}]  # dictionaries are equal in any order
    made = accuracy.read_predictions(predicted)
    assert sorted((each.model, each.batch, each.reserved, each.fits) for each in made) == [("a", 8, 1.5, False), ("a", 16, 1.5, False), ("b", 8, 1.5, False)]


def test_half_of_the_models_are_held_out() -> None:
    held_out = sum(measured.is_held_out(f"model_{index}") for index in range(2000))
    assert 900 < held_out < 1100


def kinds(*runs: tuple[int, float, float]) -> list[Kind]:
    """Of runs of one model: batch, measured, FakeTensor's number."""
    found = measured.kinds_of(MeasuredRun("a", *run) for run in reversed(runs))
    return [found["a", batch] for batch, _, _ in runs]


def test_what_a_measurement_says_is_decided_without_a_prediction() -> None:
    # Room is left, but there is less than the tensors and 1,600 MiB: as published of vit_base_patch16_siglip_512, and the same three times.
    assert kinds((8, 3301, 5157), (16, 3301, 9963), (32, 3301, 19_576)) == [Kind.IMPOSSIBLE] * 3
    # With 8, 20,000 MiB were enough; 32 has 24,000 more in tensors alone.
    assert kinds((8, 20_000, 10_000), (32, 7000, 34_000)) == [Kind.TRAINED, Kind.OUT_OF_MEMORY]
    assert kinds((8, 20_000, 10_000), (16, 7000, 18_000)) == [Kind.TRAINED, Kind.IMPOSSIBLE]
    assert kinds((8, 21_949, 75_098), (16, 21_949, 148_842)) == [Kind.OUT_OF_MEMORY] * 2
    assert kinds((8, 39_000, 30_000)) == [Kind.AT_THE_LIMIT]
    assert kinds((8, 7243, 814), (16, 3973, 1583), (32, 5899, 3120)) == [Kind.CONTRADICTED, Kind.TRAINED, Kind.TRAINED]
    # The optimizer's step decides: it takes as much with any batch, but for the order of the blocks.
    assert kinds((8, 3249, 576), (16, 3233, 600)) == [Kind.TRAINED] * 2
    # An early end of a smaller batch says nothing of a larger one.
    assert kinds((8, 1995, 600), (16, 4119, 2164)) == [Kind.IMPOSSIBLE, Kind.TRAINED]


def test_a_quantile_is_one_of_the_values() -> None:
    assert report.quantile([5, 1, 4, 2, 3], 0.9) == 5
    assert report.quantile([float(value) for value in range(1, 11)], 0.9) == 9
    assert report.quantile([7], 0.5) == 7


def models(held_out: bool, count: int) -> list[str]:
    names = (f"model_{index}" for index in range(10_000))
    return [name for name, _ in zip((name for name in names if measured.is_held_out(name) == held_out), range(count))]


def predicted(name: str, reserved: float, has_convolutions: bool = False, live: float = 0) -> Prediction:
    return Prediction(name, 8, reserved=reserved, live=live, has_convolutions=has_convolutions, classes=1000, seconds=1)


def test_constants_are_chosen_on_some_models_and_judged_on_the_others() -> None:
    chosen, others = models(False, 5), models(True, 2)
    runs = [MeasuredRun(name, 8, 3000, 1000) for name in chosen] + [MeasuredRun(name, 8, mib, 1000) for name, mib in zip(others, (3100, 4000))]
    # Without convolutions 1,700 MiB are missing, in the median; with them 100 more.
    made = [predicted(name, mib) for name, mib in zip(chosen[:3], (1000, 1300, 1400))]
    made += [predicted(name, 1200, True) for name in chosen[3:]] + [predicted(name, 1200, True) for name in others]
    both = report.judge(runs, made)
    besides = report.besides_of(both)
    assert (besides.context, besides.workspaces, besides.interval) == (1700, 100, (100, 100))
    text = report.document(both, made, {}, "torch 1", "VERSIONS")
    # 3,000 for 3,100, and 3,000 for 4,000.
    assert text.startswith("torch 1\n")
    assert "| memprof, all | 2 | 14.1 % | 25.0 % | -14.1 % | 0.0 % | 50.0 % | 50.0 % |" in text
    assert f"| {others[1]} | 8 | 4,000 | 3,000 | -25.0 % | 1,000 MiB, 125 an image, as workspaces of convolutions |" in text
    assert "memprof, without convolutions" not in text


def test_a_constant_needs_models_of_both_halves() -> None:
    for held_out in (False, True):
        names = models(held_out, 2)
        judged = report.judge([MeasuredRun(name, 8, 3000, 1000) for name in names], [predicted(name, 1000) for name in names])
        with pytest.raises(ValueError, match="take more models"):
            report.document(judged, [each.prediction for each in judged], {}, "torch 1", "")


ROW = "a,8,0,1,1,True,True,1000,,1,1,1,"


def test_a_row_that_is_cut_off_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "predicted.csv"
    path.write_text(",".join(accuracy.COLUMNS) + f"\n{ROW}\nb,8,0,1,1,True,Tr\n")
    with pytest.raises(ValueError, match="line 3"):
        accuracy.read_predictions(path)


def test_a_prediction_is_a_finite_number(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "predicted.csv"
    for row, fault in ((ROW.replace("0,1,1", "0,1,nan"), "finite numbers"), (ROW.replace("True", "maybe", 1), "True or False")):
        path.write_text(",".join(accuracy.COLUMNS) + f"\n{row}\n")
        with pytest.raises(ValueError, match=f"line 2: .*{fault}"):
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
    cut = ",".join(accuracy.COLUMNS) + "\na,8,0,1,1,True"
    predicted.write_text(cut)
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "predict", str(table), str(predicted)])
    assert accuracy.main() == 2
    assert "is cut off; remove it" in capsys.readouterr().err
    assert predicted.read_text() == cut


def test_whether_runs_fit_is_judged_by_a_simulation_with_the_limit() -> None:
    chosen, others = models(False, 1)[0], models(True, 4)
    runs = [MeasuredRun(chosen, 8, 2700, 1), MeasuredRun(others[0], 8, 3000, 1)]
    runs += [MeasuredRun(name, 8, 30_000, fake) for name, fake in zip(others[1:], (50_000, 50_000, 1))]
    # 38,636 MiB are left. The second has too much in tensors, the third too little, and the fourth fits only if cached memory is given back.
    made = [predicted(chosen, 1000), predicted(others[0], 1000)]
    made += [predicted(name, mib, live=live) for name, mib, live in zip(others[1:], (60_000, 30_000, 39_000), (50_000, 20_000, 30_000))]
    both = report.judge(runs, made)
    assert [report.is_between(each, report.besides_of(both)) for each in made] == [False, False, False, False, True]
    for fits, row in ((True, "| trained | 3 | 3 | 0 |"), (False, "| trained | 3 | 2 | 1 |")):
        text = report.document(both, made, {(others[3], 8): fits}, "", "")
        assert "| ended out of memory | 2 | 1 | 1 |" in text
        assert row in text
        assert f"| {others[2]} | 8 | ended out of memory | 30,000 | 20,000 | 30,000 | -21.4 % |" in text


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


#: GPUMemNet's, arXiv:2602.17817: nvidia-smi's maximum on an A100 40 GB, MiB.
PUBLISHED = [("vit_small_patch16_224", 8, 2421), ("vit_small_patch16_224", 128, 9719), ("beit_base_patch16_224", 32, 6943), ("deit3_huge_patch14_224", 8, 13_867)]
#: Context, kernels and libraries, from docs/accuracy_gpu.md.
CONTEXT = 1669


def need_timm() -> None:
    pytest.importorskip("torch")
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed: scripts/python_accuracy_packages.txt")


@pytest.mark.parametrize("model, batch, mib", PUBLISHED)
def test_published_measurements_are_predicted(model: str, batch: int, mib: float) -> None:
    need_timm()
    made = next(timm_models.predict({model: [batch]}, 1, 600))
    assert made.fault == ""
    assert made.fits
    assert made.reserved + CONTEXT == pytest.approx(mib, rel=0.01)


def test_a_device_that_is_too_small_is_full() -> None:
    need_timm()
    made = next(timm_models.predict({"vit_small_patch16_224": [8]}, 1, 600, 300))
    assert (made.fault, made.fits) == ("", False)


def stand_in_for_timm() -> types.ModuleType:
    import importlib.machinery

    def create_model(name: str) -> None:
        if name == "dies":
            os.kill(os.getpid(), 9)
        if name == "waits":
            import time

            time.sleep(1000)
        raise ValueError(f"no model {name}")

    module = types.ModuleType("timm")
    module.__spec__ = importlib.machinery.ModuleSpec("timm", None, is_package=True)
    module.__path__ = []
    module.create_model = create_model  # type: ignore[attr-defined]
    for name in ("loss", "optim"):
        setattr(module, name, types.ModuleType(f"timm.{name}"))
    return module


def put_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = stand_in_for_timm()
    for name, part in (("timm", module), ("timm.loss", module.loss), ("timm.optim", module.optim)):
        monkeypatch.setitem(sys.modules, name, part)


def test_a_model_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    put_stand_in(monkeypatch)
    found = {each.model: each.fault for each in timm_models.predict({"dies": [8], "none": [8]}, 2, 600)}
    assert found == {"dies": "its process ended with -9", "none": "ValueError: no model none"}


def test_a_model_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    put_stand_in(monkeypatch)
    assert [(each.batch, each.fault) for each in timm_models.predict({"waits": [2, 4]}, 1, 1)] == [
        (2, "not done after 1 s"),
        (4, "not done after 1 s"),
    ]
