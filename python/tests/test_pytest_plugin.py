from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from collections.abc import Callable

import pytest

pytest_plugins = ["pytester"]
# Not imported here: pytester forgets the modules that a test has imported, and torch cannot be imported twice.
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
Run = Callable[..., pytest.RunResult]

HEAD = """
import memprof
import pytest

memory = memprof.MemorySpace("dram")
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    def run_tests(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + text)
        # In a process of its own, since this one may have a capture. The plugin comes by its entry point.
        return pytester.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "test_it.py", *options)

    return run_tests


TWO_MIB = """
@pytest.mark.memprof({})
def test_two_mib():
    memory.allocate(0x1000000, 2 << 20)
    memory.deallocate(0x1000000)
"""


def test_a_peak_over_its_limit_fails(run: Run) -> None:
    run(TWO_MIB.format("peak_at_most='2 MiB'")).assert_outcomes(passed=1)
    failed = run(TWO_MIB.format("peak_at_most=(2 << 20) - 1"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*the peak of dram is 2.00 MiB (2,097,152 B); peak_at_most is *(2,097,151 B)*"])


def test_of_several_marks_the_closest_gives_an_option(run: Run) -> None:
    """The others' limits were lost."""
    text = """
@pytest.mark.memprof(peak_at_most="1 MiB", space="{}")
class TestOfAClass:
    @pytest.mark.memprof(grow_at_most=0)
    def test_method(self):
        memory.allocate(0x1000000, 2 << 20)
        memory.deallocate(0x1000000)
"""
    run(text.format("cpu")).assert_outcomes(passed=1)
    run(text.format("dram")).assert_outcomes(failed=1)
    run(text.format("dram").replace("grow_at_most=0", "peak_at_most='2 MiB'")).assert_outcomes(passed=1)


def test_the_mark_of_a_case_is_closer_than_that_of_its_function(run: Run) -> None:
    text = """
@pytest.mark.parametrize("size", [pytest.param(9, marks=pytest.mark.memprof(peak_at_most=8)), 9])
@pytest.mark.memprof(peak_at_most=9)
def test_case(size):
    memory.allocate(0x1000000, size)
    memory.deallocate(0x1000000)
"""
    run(text).assert_outcomes(failed=1, passed=1)


def test_what_stays_behind_fails(run: Run) -> None:
    text = """
@pytest.mark.memprof(grow_at_most=LIMIT)
def test_leaves_100_bytes():
    memory.allocate(0x1000, 300)
    memory.deallocate(0x1000)
    memory.allocate(0x2000, 100)
"""
    run(text.replace("LIMIT", "100")).assert_outcomes(passed=1)
    failed = run(text.replace("LIMIT", "99"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["dram grew by 100 B; grow_at_most is 99 B"])


def test_a_limit_may_be_for_one_space(run: Run) -> None:
    run("sram = memprof.MemorySpace('sram')\n" + TWO_MIB.format("peak_at_most=0, space='sram'")).assert_outcomes(passed=1)
    run(TWO_MIB.format("peak_at_most=0, space='dram'")).assert_outcomes(failed=1)


def test_a_limit_for_a_space_that_is_not_there_fails(run: Run) -> None:
    failed = run(TWO_MIB.format("peak_at_most='1 GiB', space='cuda:0'"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["there is no memory space 'cuda:0' after the test; there are: cpu, dram"])


def test_fixtures_and_other_plugins_are_not_the_tests_memory(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
import memprof
import pytest

memory = memprof.MemorySpace("dram")

@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    memory.allocate(0x9000, 1 << 30)
    yield
    memory.allocate(0xa000, 1 << 30)

@pytest.fixture
def weights():
    memory.allocate(0xb000, 1 << 30)
    yield
    memory.deallocate(0xb000)
"""
    )
    text = "@pytest.mark.memprof(peak_at_most=10)\ndef test_ten_bytes(weights):\n    memory.allocate(0x1000, 10)\n"
    run(text).assert_outcomes(passed=1)


def test_a_failing_test_fails_for_its_own_reason(run: Run) -> None:
    failed = run("@pytest.mark.memprof(peak_at_most=0)\ndef test_it():\n    memory.allocate(0x1000, 1)\n    assert 1 == 2\n")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["E*assert 1 == 2"])
    failed.stdout.no_fnmatch_line("*peak_at_most is*")


def test_methods_of_unittest_are_measured(run: Run) -> None:
    text = """
import unittest

class Case(unittest.TestCase):
    @pytest.mark.memprof(peak_at_most=9)
    def test_it(self):
        memory.allocate(0x1000, 10)
"""
    run(text).assert_outcomes(failed=1)
    run(text.replace("=9", "=10")).assert_outcomes(passed=1)


SIMULATED = """
import torch

@pytest.mark.memprof(no_dispatch=True, device="gpu-24gb", space="cuda:0", peak_at_most={})
def test_a_layer():
    weights = torch.nn.Linear(4096, 4096, bias=False).to("cuda").weight
    output = weights * torch.ones(4096, 4096, device="cuda")
    assert torch.cuda.get_device_name()
"""


@needs_torch
def test_a_test_may_be_simulated(run: Run, pytester: pytest.Pytester) -> None:
    # Weights, input and output have 4096 x 4096 floats each: 192 MiB.
    saved = [run(SIMULATED.format("192 << 20"), f"--memprof-save={name}.json") for name in ("first", "second")]
    for result in saved:
        result.assert_outcomes(passed=1)
    first, second = (pathlib.Path(pytester.path, f"{name}.json").read_text() for name in ("first", "second"))
    assert first == second
    assert json.loads(first)["peaks"]["test_it.py::test_a_layer"]["cuda:0"] == 192 << 20
    failed = run(SIMULATED.format("(192 << 20) - 1"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*the peak of cuda:0 is 192 MiB (201,326,592 B)*"])


@needs_torch
def test_a_simulated_test_needs_neither_gpu_nor_memory_and_the_next_test_is_real(run: Run) -> None:
    text = """
import torch

@pytest.mark.memprof(no_dispatch=True, device="gpu-80gb", peak_at_most="70 GiB")
def test_sixty_four_gib():
    torch.empty(1 << 34, device="cuda")

def test_a_plain_one():
    assert torch.ones(3).sum().item() == 3
    assert not memprof.is_capturing()
"""
    run(text).assert_outcomes(passed=2)


def test_a_capture_within_a_marked_test_is_refused_with_what_to_do(run: Run) -> None:
    text = """
@pytest.mark.memprof
def test_it():
    with memprof.INNER():
        pass

def test_unmarked():
    with memprof.capture():
        pass
"""
    for inner, instead in (
        ("no_dispatch", "the mark's own no_dispatch=True and device=... in place of memprof.no_dispatch"),
        ("capture", "the mark's limits in place of memprof.capture"),
    ):
        refused = run(text.replace("INNER", inner))
        refused.assert_outcomes(failed=1, passed=1)
        refused.stdout.fnmatch_lines([f"E*@pytest.mark.memprof captures this test already: take {instead}, or remove the mark"])


@needs_torch
def test_a_device_that_does_not_exist_fails_its_test(run: Run) -> None:
    failed = run(TWO_MIB.format("no_dispatch=True, device='gpu-24bg'"))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*@pytest.mark.memprof: *gpu-24bg*"])


@pytest.mark.parametrize("mark", ["peak_at_most='2 Mib.'", "peak_at_most=-1", "peak_at_mots=3"])
def test_a_bad_mark_fails_its_test(run: Run, mark: str) -> None:
    failed = run(TWO_MIB.format(mark))
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*@pytest.mark.memprof: *peak_at_mo*"])


@pytest.mark.parametrize(
    "mark, fault",
    [
        ("peek_at_most=3", "unknown option 'peek_at_most'"),
        ("3, peak_at_most=3", "an option is given twice or not by its name"),
        ("1, 2, 'dram', False, '', 6", "an option is given twice or not by its name"),
    ],
)
def test_a_bad_option_is_named_with_those_there_are(run: Run, mark: str, fault: str) -> None:
    failed = run(TWO_MIB.format(mark))
    failed.assert_outcomes(failed=1)
    known = "peak_at_most, grow_at_most, space, no_dispatch, device"
    failed.stdout.fnmatch_lines([f"*@pytest.mark.memprof: {fault}; there are: {known}"])


def test_peaks_are_saved_and_compared(run: Run, pytester: pytest.Pytester) -> None:
    text = TWO_MIB.format("") + "\ndef test_unmarked():\n    memory.allocate(0x1, 1)\n"
    saved = run(text, "--memprof-save=baseline.json")
    saved.assert_outcomes(passed=2)
    peaks = json.loads(pathlib.Path(pytester.path, "baseline.json").read_text())["peaks"]
    assert peaks == {"test_it.py::test_two_mib": {"dram": 2 << 20}}
    run(text, "--memprof-compare=baseline.json").assert_outcomes(passed=2)
    more = run(text.replace("2 << 20", "(2 << 20) + 1"), "--memprof-compare=baseline.json")
    more.assert_outcomes(failed=1, passed=1)
    more.stdout.fnmatch_lines(["the peak of dram is 2.00 MiB (2,097,153 B); 2.00 MiB (2,097,152 B) in baseline.json"])
    less = run(text.replace("2 << 20", "1 << 20"), "--memprof-compare=baseline.json")
    less.assert_outcomes(passed=2)
    less.stdout.fnmatch_lines(["memprof: 1 tests need less than in 'baseline.json'*"])
    other = run(text.replace("test_two_mib", "test_new"), "--memprof-compare=baseline.json")
    other.stdout.fnmatch_lines(["memprof: 'baseline.json' has no test_it.py::test_new"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "*cannot read 'baseline.json'*"), ("{}", "*not written by --memprof-save*"), ("[", "*not written*")],
)
def test_a_bad_baseline_is_one_line(run: Run, pytester: pytest.Pytester, content: str | None, expected: str) -> None:
    if content is not None:
        pathlib.Path(pytester.path, "baseline.json").write_text(content)
    refused = run(TWO_MIB.format(""), "--memprof-compare=baseline.json")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines([expected])
