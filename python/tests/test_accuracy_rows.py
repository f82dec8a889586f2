"""benchmarks/accuracy: published runs of language models. What needs litgpt and torchtune is skipped without them."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import pathlib
import stat
import sys
import time

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks/accuracy"
if not FOLDER.exists():
    pytest.skip("the benchmark is not there", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

import estimated_runs  # noqa: E402
import in_process  # noqa: E402
import litgpt_runs  # noqa: E402
import torchtune_ladder  # noqa: E402

HEAD = ",".join(litgpt_runs.COLUMNS) + "\n"
RUN = litgpt_runs.Run("A100", "phi-1_5", "lora", 1, 1044, 8, "qv", 4.82e9)
PREDICTION = litgpt_runs.Prediction(4_820_000_000, 5_000_000_000, 4_800_000_000, 1_000_000_000, 1_000_000, True, 1, 0.5, 300)


def need(package: str) -> None:
    pytest.importorskip("torch")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: scripts/python_rows_packages.txt")


def test_the_published_table_is_read() -> None:
    runs = litgpt_runs.read()
    assert len(runs) == 37 and sum(run.measured is None for run in runs) == 7
    assert RUN in runs


@pytest.mark.parametrize(
    "text, fault",
    [
        ("gpu\n", "expected the columns"),
        (HEAD + "V100,phi-2,lora,1,512,8,qv,4\n", "line 2: V100 is none of A100, A10G"),
        (HEAD + "A100,phi-2,dora,1,512,8,qv,4\n", "line 2: dora is none"),
        (HEAD + "A100,phi-2,lora,0,512,8,qv,4\n", "line 2: a batch"),
        (HEAD + "A100,phi-2,lora,1,512,8,qv,nan\n", "line 2: a batch"),
        (HEAD + "A100,phi-2,lora,1,512,8,qv,oom\n", "line 2"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_line(tmp_path: pathlib.Path, text: str, fault: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=fault):
        litgpt_runs.read(path)


def report_of(*rows: tuple[litgpt_runs.Run, litgpt_runs.Prediction | None, str]) -> str:
    return "\n".join(litgpt_runs.report(rows, "PREFACE"))


def test_errors_and_verdicts_are_counted() -> None:
    lost = dataclasses.replace(RUN, config="lost", measured=None)
    text = report_of(
        (RUN, PREDICTION, ""),
        (dataclasses.replace(RUN, config="off", measured=1e9), dataclasses.replace(PREDICTION, allocated=1_100_000_000, fits=False), ""),
        (lost, dataclasses.replace(PREDICTION, fits=False), ""),
        (dataclasses.replace(lost, config="fits"), PREDICTION, ""),
    )
    assert "Of 2 runs that trained: median error 5.0%, 90th percentile 10.0%; 50% within 1%, 50% within 2%, 50% within 5%." in text
    assert "Of 4 verdicts, 2 are right; 2 of these runs ended out of memory." in text
    assert "| 4.82 | 4.82 | +0.0 % | fits: right |" in text and "| 1.00 | 1.10 | +10.0 % | out of memory: wrong |" in text
    assert "| out of memory | 4.82 | | out of memory: right |" in text and "| out of memory | 4.82 | | fits: wrong |" in text


def test_what_cannot_have_been_is_not_judged() -> None:
    full = dataclasses.replace(RUN, script="full", measured=8e9 - 1)
    trained = dataclasses.replace(PREDICTION, trained=1_000_000_000)
    assert litgpt_runs.is_impossible(full, trained)
    assert not litgpt_runs.is_impossible(dataclasses.replace(full, measured=8e9), trained)
    assert not litgpt_runs.is_impossible(dataclasses.replace(full, script="lora"), trained)
    text = report_of((RUN, PREDICTION, ""), (full, trained, ""), (dataclasses.replace(RUN, config="dead"), None, "its process ended with -9"))
    assert "Of 1 runs that trained" in text and "| not judged | fits: not judged |" in text
    assert "dead, lora, batch 1 failed: its process ended with -9" in text


def test_nothing_to_judge_is_a_fault() -> None:
    with pytest.raises(ValueError, match="no run of litgpt"):
        report_of((RUN, None, "x"))
    with pytest.raises(ValueError, match="no step of torchtune"):
        torchtune_ladder.report([(torchtune_ladder.STEPS[0], None, "")], "PREFACE")


def test_a_ladder_says_what_is_not_simulated() -> None:
    made = torchtune_ladder.Prediction(61 << 30, 62 << 30, 400)
    rows = [(torchtune_ladder.STEPS[0], None, ""), (torchtune_ladder.STEPS[1], made, ""), (torchtune_ladder.STEPS[4], None, "ValueError: x")]
    text = "\n".join(torchtune_ladder.report(rows, "PREFACE"))
    assert "| baseline | 25.5 | – | | not simulated: the lengths" in text
    assert "| + packed data | 60.0 | 61.0 | +1.7 % |  |" in text
    assert "failed: ValueError: x" in text


def test_calls_have_a_process_and_a_limit() -> None:
    pytest.importorskip("torch")

    def dies() -> None:
        os.kill(os.getpid(), 9)

    def fails() -> None:
        raise KeyError("gone")

    assert in_process.call(lambda value: value + 1, 2, seconds=60) == (3, "")
    assert in_process.call(dies, seconds=60) == (None, "its process ended with -9")
    assert in_process.call(fails, seconds=60) == (None, "KeyError: 'gone'")
    assert in_process.call(time.sleep, 1000, seconds=1) == (None, "not done after 1 s")


def program_that(tmp_path: pathlib.Path, text: str) -> pathlib.Path:
    path = tmp_path / "memprof"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_estimate_that_fails_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="memprof estimate: no such model"):
        estimated_runs.peak(program_that(tmp_path, "echo no such model >&2; exit 2\n"), estimated_runs.RUNS[0])


def test_estimates_are_of_the_greatest_phase(tmp_path: pathlib.Path) -> None:
    program = program_that(tmp_path, """echo '{"step": {"phases": [{"peak_bytes": 5}, {"peak_bytes": 85899345920}, {"peak_bytes": 7}]}}'\n""")
    full = dataclasses.replace(estimated_runs.RUNS[0], measured=100)
    assert "| 100.0 GiB | 80.0 | -20.0 % |" in "\n".join(estimated_runs.report(program, [full], "PREFACE"))


#: The program of the package knows every option that the table uses.
def test_the_program_estimates_megatrons_run() -> None:
    import memprof

    program = pathlib.Path(memprof.__file__).parent / "bin/memprof"
    if not program.exists():
        pytest.skip("the package has no program")
    states = 6_738_415_616 // 2 * 15 // 2  # of half of the model: weights, gradients, and an eighth of the moments and the copy
    assert states < estimated_runs.peak(program, estimated_runs.RUNS[-1]) < 80e9


def test_the_program_estimates_parts_of_long_sequences() -> None:
    import memprof

    program = pathlib.Path(memprof.__file__).parent / "bin/memprof"
    if not program.exists():
        pytest.skip("the package has no program")
    long = [run for run in estimated_runs.RUNS if "CP" in run.settings]
    whole, *parts = [estimated_runs.peak(program, run) for run in long]
    positions = 32768  # of each device, whose activations are as many
    for count, peak in zip((2, 4, 8), parts, strict=True):
        # Keys and values of 8 heads of 128 numbers and their gradients; of the rotary tables, 64 cosines and sines.
        gathered = count * positions * 2 * 1024 * 2
        tables = (count - 1) * positions * 2 * 64 * 2
        assert tables <= peak - whole <= tables + 2 * gathered


PUBLISHED = [
    ("A100", "phi-1_5", "lora", 4),
    ("A100", "Llama-2-13b-hf", "lora", 1),
    ("A100", "Llama-2-7b-hf", "adapter_v2", 1),
    ("A10G", "Gemma-2b", "lora", 2),
]


@pytest.mark.parametrize("gpu, config, script, batch", PUBLISHED)
def test_litgpts_measurements_are_predicted(gpu: str, config: str, script: str, batch: int) -> None:
    need("litgpt")
    run = next(run for run in litgpt_runs.read() if (run.gpu, run.config, run.script, run.batch) == (gpu, config, script, batch))
    _, made, fault = litgpt_runs.predict([run], 600)[0]
    assert fault == "" and made is not None and made.fits
    assert made.allocated == pytest.approx(run.measured, rel=0.005)


def test_what_litgpt_could_not_train_does_not_fit() -> None:
    need("litgpt")
    run = next(run for run in litgpt_runs.read() if run.config == "Gemma-7b")
    _, made, fault = litgpt_runs.predict([run], 600)[0]
    assert fault == "" and made is not None and not made.fits


def test_torchtunes_measurement_is_predicted() -> None:
    need("torchtune")
    step = torchtune_ladder.STEPS[6]
    _, made, fault = torchtune_ladder.predict([step], 600)[0]
    assert fault == "" and made is not None
    assert made.active / torchtune_ladder.GIB == pytest.approx(step.measured, rel=0.02)
