"""benchmarks/gpu/python: the simulation beside what an H200 was recorded to do, and the page on numbers that are made up."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks/gpu/python"
if not FOLDER.exists():
    pytest.skip("the benchmark is not there", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

import gpu_page  # noqa: E402
import gpu_programs  # noqa: E402
import gpu_runs  # noqa: E402
import held_out_programs  # noqa: E402
import operator_cases  # noqa: E402
from gpu_page import HeldOut, OperatorResult, Outcome, Peaks, ProgramResult, Recording, Simulated  # noqa: E402

RECORDED = FOLDER / "h200"
PROGRAMS = {**gpu_programs.PROGRAMS, **held_out_programs.HELD_OUT}

#: Prints the names of what differs, of all operators and of the programs that need no package beside torch.
COMPARE = """
import json, pathlib, sys
import gpu_page, gpu_programs, gpu_runs, held_out_programs
all_programs = {**gpu_programs.PROGRAMS, **held_out_programs.HELD_OUT}
recording = gpu_page.read_recording(pathlib.Path(sys.argv[1]))
operators = gpu_runs.compare_operators(recording)
programs = [gpu_runs.compare_program(recording, name) for name, program in all_programs.items() if not program.packages]
faults = [f"{each.name}: {each.simulated.fault}" for each in programs if each.simulated.fault]
print(json.dumps({"different": gpu_page.different(operators, programs), "faults": faults}))
"""


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason=f"what differs is known for torch 2.13, not {torch.__version__}")
@pytest.mark.skipif(torch.version.cuda is not None, reason="a torch with CUDA")
def test_operators_and_programs_allocate_as_on_an_h200() -> None:
    # In a process that has not run autograd, whose threads do not survive a fork.
    done = subprocess.run([sys.executable, "-c", COMPARE, RECORDED], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == []
    known = (RECORDED / "different.txt").read_text().splitlines()
    compared = {*operator_cases.CASES, *(name for name, program in PROGRAMS.items() if not program.packages)}
    assert [name for name in found["different"] if name not in known] == [], "these were equal to the H200's"
    assert [name for name in known if name in compared and name not in found["different"]] == [], "equal now: `compare` shortens the list"


def test_what_was_recorded_has_a_case_or_a_program() -> None:
    recording = gpu_page.read_recording(RECORDED)
    assert set(recording.operators) <= set(operator_cases.CASES) and len(recording.operators) > 1000
    assert set(recording.programs) <= set(gpu_programs.PROGRAMS)
    assert list(recording.held_out.programs) == list(held_out_programs.HELD_OUT)
    assert len(PROGRAMS) == len(gpu_programs.PROGRAMS) + len(held_out_programs.HELD_OUT)
    known = (RECORDED / "different.txt").read_text().splitlines()
    assert len(known) == len(set(known)) and set(known) <= {*recording.operators, *recording.programs, *recording.held_out.programs}
    assert gpu_page.preset_of(recording.device) == "gpu-141gb"
    with pytest.raises(ValueError, match="no preset stands for a GPU of paper"):
        gpu_page.preset_of("a GPU of paper")


def test_events_belong_to_the_case_behind_whose_mark_they_are() -> None:
    first, second = list(operator_cases.CASES)[:2]
    last = list(operator_cases.CASES)[-1]

    def mark(number: int) -> list[int]:
        size = operator_cases.MARK + operator_cases.STRIDE * number
        return [size, -size]

    count = len(operator_cases.CASES)
    events = [7, *mark(0), 100, -100, *mark(1), *mark(count - 1), 1 << 26, 3, -3, *mark(count), 9]
    assert operator_cases.split(events) == {first: [100, -100], second: [], last: [1 << 26, 3, -3]}


def test_events_are_equal_only_in_the_same_order() -> None:
    assert gpu_page.outcome_of([4, -4], [4, -4]) is Outcome.EQUAL
    assert gpu_page.outcome_of([4, 8, -4, -8], [4, 8, -8, -4]) is Outcome.ORDER
    assert gpu_page.outcome_of([4, 8, -8, -4], [4, -4]) is Outcome.FEWER
    assert gpu_page.outcome_of([4, -4], [4, 8, -8, -4]) is Outcome.OTHER
    assert gpu_page.outcome_of([4, -4], [4, -4], faults_equal=False) is Outcome.OTHER


def test_a_case_that_fails_on_one_side_is_different() -> None:
    name, other = "sdpa flash gqa f32", "misc cat"
    recording = Recording(operators={name: [4, -4], other: [8]}, operator_faults={name: "RuntimeError: No available kernel"})
    simulated = {name: [4, -4], other: [8]}
    results = gpu_page.judge_operators(recording, simulated, {})
    assert [(each.name, each.outcome) for each in results] == [(name, Outcome.OTHER), (other, Outcome.EQUAL)]
    assert gpu_page.different(results, []) == [name]
    assert gpu_page.judge_operators(recording, simulated, {name: "an error"})[0].outcome is Outcome.EQUAL


def test_a_process_says_what_went_wrong_in_it() -> None:
    def raises() -> None:
        raise ValueError("of\ntwo lines")

    for work, fault in ((raises, "ValueError: of two lines"), (lambda: os.kill(os.getpid(), 9), "its process ended with -9")):
        with pytest.raises(gpu_runs.Failed, match=fault):
            gpu_runs.apart(work)
    with pytest.raises(gpu_runs.Failed, match="not done after 0.1 s"):
        gpu_runs.apart(lambda: __import__("time").sleep(100), seconds=0.1)
    assert gpu_runs.apart(lambda: [1, 2]) == [1, 2]


def test_a_recording_is_read_as_it_was_written(tmp_path: pathlib.Path) -> None:
    recording = Recording(
        "NVIDIA H200", "1.2", {"torch": "2"}, {"CUDA's initialisation": 600}, {"a": Peaks(1, 2), "b": Peaks(fault="none")},
        HeldOut({"d": Peaks(3, 4)}, 1, "All were equal."), {"c": [4, -4]}, {"c": "an error"}, "Some are missing.",
    )
    for held_out in (recording.held_out, HeldOut()):
        recording.held_out = held_out
        gpu_page.write_operators(tmp_path, recording)
        gpu_page.write_programs(tmp_path, recording)
        assert gpu_page.read_recording(tmp_path) == recording


def test_what_fails_on_the_gpu_is_recorded_with_its_fault(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare() -> gpu_programs.Run:
        raise ModuleNotFoundError("No module named 'nowhere'")

    def record_program(run: gpu_programs.Run) -> Peaks:
        run("cuda")
        return Peaks(10, 20)

    def record_operators(names: dict[str, object]) -> tuple[dict[str, list[int]], dict[str, str]]:
        if "misc cat" in names:
            raise RuntimeError("an assertion on the device")
        return {name: [4, -4] for name in names}, {}

    programs = {
        "runs": gpu_programs.Program("runs", (), lambda: lambda device: None),
        "fails": gpu_programs.Program("fails", (), lambda: lambda device: [][0]),
        "lacks": gpu_programs.Program("lacks", ("nowhere",), prepare),
    }
    monkeypatch.setattr(gpu_runs, "PROGRAMS", programs)
    monkeypatch.setattr(gpu_runs, "HELD_OUT", {"held out": gpu_programs.Program("held out", (), lambda: lambda device: None)})
    monkeypatch.setattr(gpu_runs, "record_program", record_program)
    monkeypatch.setattr(gpu_runs, "record_operators", record_operators)
    monkeypatch.setattr(gpu_runs, "record_in_use", lambda: {"CUDA's initialisation": 600})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(sys, "argv", ["gpu_runs.py", "record", str(tmp_path / "new")])
    assert gpu_runs.main() == 0
    recording = gpu_page.read_recording(tmp_path / "new")
    assert recording.programs == {
        "runs": Peaks(10, 20), "fails": Peaks(fault="IndexError: list index out of range"), "lacks": Peaks(fault="No module named 'nowhere'"),
    }
    assert recording.held_out == HeldOut({"held out": Peaks(10, 20)})
    others = operator_cases.FAMILIES["others"]
    assert {*operator_cases.CASES} - {*recording.operators} == {*others}
    assert recording.remark == "Of others, as it failed: RuntimeError: an assertion on the device."
    assert (recording.device, recording.in_use) == ("NVIDIA H200", {"CUDA's initialisation": 600})


def test_the_page_hides_nothing() -> None:
    programs = [
        ProgramResult("same", Peaks(1000, 2000), Simulated(1000, 2000)),
        ProgramResult("off", Peaks(1000, 2000), Simulated(1000, 2010)),
        ProgramResult("convolves", Peaks(1000, 2000), Simulated(900, 1000, listed=["aten::convolution"])),
        ProgramResult("fails", Peaks(fault="OutOfMemoryError: all | of it"), Simulated()),
    ]
    held_out = [
        ProgramResult("new", Peaks(1000, 2000), Simulated(1000, 2000)),
        ProgramResult("new, off", Peaks(1000, 2000), Simulated(999, 2000)),
        ProgramResult("new, just off", Peaks(1_000_000, 2000), Simulated(999_999, 2000)),
        ProgramResult("new, fails", Peaks(1000, 2000), Simulated(fault="TypeError")),
    ]
    names = list(operator_cases.CASES)
    operators = [OperatorResult(name, "others", Outcome.EQUAL) for name in names[:2]]
    operators += [OperatorResult("misc trace", "others", Outcome.FEWER), OperatorResult("amp bf16", "others", Outcome.EQUAL)]
    recording = Recording(
        device="NVIDIA H200",
        in_use={"CUDA's initialisation": 600, "cuBLAS": 700},
        operators={each.name: [] for each in operators},
        remark="They were lost.",
        held_out=HeldOut(equal_at_first=1, remark="One was mended."),
    )
    text = gpu_page.document(recording, operators, programs, held_out, {"torch": "2"}, "here")
    assert "measured on the H200, to the byte, for 2 of 3 training programs, and that of reserved bytes for 1;" in text
    assert "of the 2 without convolutions, whose workspaces cuDNN chooses, for 2 and 1." in text
    assert "Of 4 further programs, measured only after its rules had been written, it had the peak of requested bytes for 1 at first, and has it for " in text
    assert "at first, and has it for 1 since what they showed was mended, and that of reserved bytes for 3." in text
    assert "| new, just off | 1,000,000 | 999,999 | -1 bytes |" in text
    assert "One was mended.\n" in text and "| new, off | 1,000 | 999 | -0.100 % |" in text and "- new, off: not explained." in text
    assert "| new, fails | failed: TypeError |" in text
    assert "Of 4 single operators, most of them forward and backward, 3 allocate" in text
    assert "| same | 1,000 | 1,000 | equal | 2,000 | 2,000 | equal |  |" in text
    assert "| off | 1,000 | 1,000 | equal | 2,000 | 2,010 | +0.500 % |  |" in text
    assert "| convolves | 1,000 | 900 | -10.000 % | 2,000 | 1,000 | -50.000 % | `convolution` |" in text
    assert "| fails | failed: OutOfMemoryError: all / of it |" in text
    assert "- off: not explained." in text and "- `misc trace` (1): not explained." in text
    assert "| others | 4 | 3 |  | 1 |  |" in text
    assert "| without convolutions | 2 | 2 | 2 | 2 | 1 | 1 | 2 |" in text
    assert f"\n{len(names) - 4:,} cases have no record: " in text and "They were lost.\n" in text
    assert "| cuBLAS | 700 | 100 |" in text
    assert "Held out" not in gpu_page.document(recording, operators, programs, [], {"torch": "2"}, "here")
    recording.held_out.equal_at_first = 0
    text = gpu_page.document(recording, operators, programs, held_out, {"torch": "2"}, "here")
    assert "it has the peak of requested bytes for 1, and that of reserved bytes for 3." in text
    # What may be equal or not from run to run is always named.
    assert gpu_page.different(operators, programs) == ["misc trace", "amp bf16", "off", "convolves"]
