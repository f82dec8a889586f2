"""The plugin for pytest: memory as something that a test can fail by.

    @pytest.mark.memprof(peak_at_most="64 MiB", grow_at_most="1 MiB")
    def test_a_step(): ...

A marked test runs in a capture of its own, which sees what libtorch, tracked arrays and memory spaces allocate while the test's
function runs: nothing of fixtures, of pytest or of other plugins. `--memprof-save FILE` keeps the peaks of all marked tests, and
`--memprof-compare FILE` fails each whose peak is greater than the one that FILE has.

    @pytest.mark.memprof(no_dispatch=True, device="gpu-24gb", peak_at_most="20 GiB")

runs the test without its memory and its kernels (`memprof.no_dispatch`), on any machine, and with the same peak each time.
"""

from __future__ import annotations

import gc
import json
import os

import pytest

from . import _capture, _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    Peaks = dict[str, int]

_PROPERTY = "memprof"
_HOLDER = "@pytest.mark.memprof captures this test already: "
_HOLDER_OF_CAPTURE = _HOLDER + "take the mark's limits in place of memprof.capture, or remove the mark"
_HOLDER_OF_SIMULATION = (
    _HOLDER + "take the mark's own no_dispatch=True and device=... in place of memprof.no_dispatch, or remove the mark"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memprof", "memory of tests marked with memprof")
    group.addoption("--memprof-save", metavar="FILE", help="write the peaks of the marked tests to FILE")
    group.addoption("--memprof-compare", metavar="FILE", help="fail the marked tests whose peak is greater than that in FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "memprof(peak_at_most=None, grow_at_most=None, space=None, no_dispatch=False, device=''): the test fails if it has more "
        "than that live at one moment, or leaves more than that behind; bytes, or text such as '64 MiB'; in each memory space, or "
        "in `space` alone. no_dispatch runs it without memory and kernels, on `device`",
    )
    config.pluginmanager.register(_Plugin(config), "memprof of this run")


class _Mark:
    """The arguments of a mark."""

    def __init__(
        self,
        peak_at_most: int | str | None = None,
        grow_at_most: int | str | None = None,
        space: str | None = None,
        no_dispatch: bool = False,
        device: str | os.PathLike[str] = "",
    ) -> None:
        self.peak = None if peak_at_most is None else _bytes_of("peak_at_most", peak_at_most)
        self.growth = None if grow_at_most is None else _bytes_of("grow_at_most", grow_at_most)
        self.space = space
        self._no_dispatch, self._device = no_dispatch, device

    def capture(self) -> _capture.Capture:
        """Begins the capture of the test, which is the only one until it ends."""
        begun = (_capture.NoDispatch if self._no_dispatch else _capture.Capture)(device=self._device)
        _capture.set_holder(_HOLDER_OF_CAPTURE, _HOLDER_OF_SIMULATION)
        return begun

    def faults(self, profile: _core.Profile) -> list[str]:
        """What is over a limit, a line each."""
        found = []
        if self.space is not None and self.space not in [*_core._space_names(), *(space.name for space in profile.spaces)]:
            known = ", ".join(_core._space_names())
            found.append(f"there is no memory space '{self.space}' after the test; there are: {known}")
        for space in profile.spaces:
            if self.space not in (None, space.name):
                continue
            if self.peak is not None and space.cumulative_peak > self.peak:
                where = f", in {space.peak_operation}" if space.peak_operation else ""
                peak = f"the peak of {space.name} is {_shown(space.cumulative_peak)}{where}"
                found.append(f"{peak}; peak_at_most is {_shown(self.peak)}")
            if self.growth is not None and space.cumulative_current > self.growth:
                found.append(f"{space.name} grew by {_shown(space.cumulative_current)}; grow_at_most is {_shown(self.growth)}")
        return found


def _marks_of(item: pytest.Item) -> list[pytest.Mark]:
    """The closest first. pytest has those of a parametrized case behind those of its function."""
    case = getattr(item, "callspec", None)
    own = [mark for mark in case.marks if mark.name == "memprof"] if case is not None else []
    return [*own, *(mark for mark in item.iter_markers("memprof") if mark not in own)]


def _mark_of(marks: list[pytest.Mark]) -> _Mark:
    """Of the marks of a test, the closest first: each option is that of the closest mark that names it."""
    import inspect

    known = list(inspect.signature(_Mark).parameters)
    options: dict[str, Any] = {}
    for mark in reversed(marks):
        unknown = [name for name in mark.kwargs if name not in known]
        if unknown:
            raise TypeError(f"unknown option '{unknown[0]}'; there are: {', '.join(known)}")
        if len(mark.args) > len(known) or set(mark.kwargs) & set(known[: len(mark.args)]):
            raise TypeError(f"an option is given twice or not by its name; there are: {', '.join(known)}")
        options.update(zip(known, mark.args), **mark.kwargs)
    return _Mark(**options)


class _Plugin:
    def __init__(self, config: pytest.Config) -> None:
        self._save: str | None = config.getoption("--memprof-save")
        self._compare: str | None = config.getoption("--memprof-compare")
        self._is_worker = hasattr(config, "workerinput")  # of pytest-xdist, whose controller writes the file
        self._peaks: dict[str, Peaks] = {}
        self._known: dict[str, Peaks] = _read(self._compare) if self._compare is not None else {}

    @pytest.hookimpl(hookwrapper=True, trylast=True)  # the innermost: what other plugins do around a test is not its own
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
        yield from self._measured(pyfuncitem)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        if type(item).__name__ == "TestCaseFunction":  # of unittest, which has no `pytest_pyfunc_call`
            yield from self._measured(item)
        else:
            yield

    def _measured(self, item: pytest.Item) -> Generator[None, Any, None]:
        marks = _marks_of(item)
        if not marks:
            yield
            return
        try:
            wanted = _mark_of(marks)
            gc.collect()  # what earlier tests left must not go during this one
            capture = wanted.capture()
        except (TypeError, ValueError, ImportError, _core.Error) as fault:
            pytest.fail(f"@pytest.mark.memprof: {fault}", pytrace=False)
        outcome = yield
        gc.collect()
        capture.end()
        _capture.set_holder("", "")
        profile = capture.profile
        peaks = {space.name: space.cumulative_peak for space in profile.spaces}
        item.user_properties.append((_PROPERTY, peaks))
        faults = wanted.faults(profile) + self._faults_by_comparison(item.nodeid, peaks)
        if faults and outcome.excinfo is None:
            try:
                pytest.fail("\n".join([*faults, "", profile.text(max_lines=20)]), pytrace=False)
            except pytest.fail.Exception as fault:
                outcome.force_exception(fault)

    def _faults_by_comparison(self, test: str, peaks: Peaks) -> list[str]:
        known = self._known.get(test)
        if known is None:
            return []
        return [
            f"the peak of {space} is {_shown(peak)}; {_shown(known.get(space, 0))} in {self._compare}"
            for space, peak in peaks.items()
            if peak > known.get(space, 0)
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == _PROPERTY and isinstance(value, dict):
                    self._peaks[report.nodeid] = value

    def pytest_sessionfinish(self) -> None:
        if self._save is None or self._is_worker:
            return
        text = json.dumps({"format": "memprof-pytest", "peaks": self._peaks}, indent=1, sort_keys=True)
        made = f"{self._save}.{os.getpid()}"
        with open(made, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(made, self._save)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._save is not None:
            terminalreporter.write_line(f"memprof: peaks of {len(self._peaks)} tests in '{self._save}'")
        if self._compare is None:
            return
        missing = sorted(test for test in self._peaks if test not in self._known)
        less = [test for test, peaks in self._peaks.items() if test in self._known and _is_less(peaks, self._known[test])]
        for test in missing:
            terminalreporter.write_line(f"memprof: '{self._compare}' has no {test}")
        if less:
            needed = f"memprof: {len(less)} tests need less than in '{self._compare}'"
            terminalreporter.write_line(needed + "; --memprof-save keeps that")


def _is_less(peaks: Peaks, known: Peaks) -> bool:
    return any(peaks.get(space, 0) < peak for space, peak in known.items())


def _read(path: str) -> dict[str, Peaks]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["format"] != "memprof-pytest":
            raise KeyError("format")
        return {test: {space: int(peak) for space, peak in peaks.items()} for test, peaks in document["peaks"].items()}
    except OSError as fault:
        raise pytest.UsageError(f"--memprof-compare: cannot read '{path}': {fault.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise pytest.UsageError(f"--memprof-compare: '{path}' was not written by --memprof-save") from None


def _bytes_of(name: str, value: int | str) -> int:
    try:
        return _core._parse_byte_size(str(value))
    except _core.Error as fault:
        raise ValueError(f"{name}: {fault}") from None


def _shown(count: int) -> str:
    short = _core._short_bytes(count)
    return short if count < 1024 else f"{short} ({count:,} B)"
