"""Which line of Python asked for the tensors: `memprof.capture(stacks=...)`."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import textwrap
import threading
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")
MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not ((3, 11) <= sys.version_info < (3, 14)), reason="the frames of other versions of Python are not read"
)


def floats(mib: int) -> int:
    return mib * MIB // 4


def line_here(offset: int = 0) -> int:
    return sys._getframe(1).f_lineno + offset


def callers(trace: memprof.Trace) -> dict[str, int]:
    found = trace.peak_callers()
    assert found is not None
    assert sum(row.bytes for row in found.callers) + found.bytes_without == found.bytes
    return {row.caller: int(row.bytes) for row in found.callers}


def test_the_lines_that_asked_for_what_is_live_at_the_peak() -> None:
    def make() -> Any:
        return torch.empty(floats(3)), line_here()

    with memprof.capture(trace=True, stacks=True) as capture:
        first, inner = make()
        second = torch.empty(floats(2)); outer = line_here()  # noqa: E702
        small = torch.empty(100)
    found = callers(capture.trace)
    file = pathlib.Path(__file__).name
    function = sys._getframe().f_code.co_qualname
    assert found == {f"{function}.<locals>.make ({file}:{inner})": 3 * MIB, f"{function} ({file}:{outer})": 2 * MIB}
    whole = capture.trace.peak_callers()
    assert whole is not None
    assert str(whole) == whole.text() and re.search(rf"3.00 MiB +60.0 % +1  .*make \({file}:{inner}\)", str(whole))
    assert whole.bytes_without == 400 and capture.profile.space("cpu").cumulative_peak == 5 * MIB + 400
    del first, second, small


def test_the_size_from_which_is_chosen() -> None:
    for stacks, known in ((1, 3), (4 * MIB, 1), ("4 MiB", 1), (5 * MIB, 0), (True, 2), (False, 0), (0, 0)):
        with memprof.capture(trace=True, stacks=stacks) as capture:
            kept = [torch.empty(floats(4)), torch.empty(floats(1)), torch.empty(100)]
        found = capture.trace.peak_callers()
        if not stacks:
            assert found is None
        else:
            assert found is not None and sum(row.recorded_blocks for row in found.callers) == known, stacks
        del kept
    with pytest.raises(ValueError, match="-1"):
        memprof.capture(stacks=-1)
    with pytest.raises(memprof.Error):
        memprof.capture(stacks="a lot")
    assert not memprof.is_capturing()


def test_numbers_are_the_same_with_stacks() -> None:
    def step() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
        model(torch.ones(64, 256)).sum().backward()

    with memprof.capture() as without:
        step()
    with memprof.capture(stacks=1) as with_stacks:
        step()
    for one, other in zip(without.profile.spaces, with_stacks.profile.spaces):
        for number in ("cumulative_peak", "allocations", "deallocations", "allocation_count", "cumulative_current"):
            assert getattr(one, number) == getattr(other, number), number


def test_a_capture_without_stacks_after_one_with_has_none() -> None:
    with memprof.capture(trace=True, stacks=True) as capture:
        kept = torch.empty(floats(1))
    with memprof.capture(trace=True) as capture:
        kept = torch.empty(floats(2))
    assert capture.trace.peak_callers() is None
    del kept


def script(folder: pathlib.Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text).lstrip())


def asked_for(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """The rows "Asked for by" of a summary: the caller, and the bytes at the peak."""
    rows = done.stderr + done.stdout
    rows = rows[rows.index("Asked for by") :]
    return {name: bytes for bytes, name in re.findall(r"^ *([\d.]+ \w+) +[\d.]+ % +\d+  (.+)$", rows, re.M)}


def test_nested_modules_name_the_line_of_the_program(tmp_path: pathlib.Path) -> None:
    script(
        tmp_path,
        model="""
        import torch

        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up = torch.nn.Linear(256, 1024)

            def forward(self, x):
                hidden = self.up(x)
                return torch.nn.functional.gelu(
                    hidden)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = torch.nn.ModuleList(Block() for _ in range(1))

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return x
        """,
        train="""
        import torch
        from model import Model

        model = Model()
        x = torch.ones(2048, 256)
        y = model(x)
        """,
    )
    done = subprocess.run(
        [sys.executable, "-m", "memprof", "run", "--stacks", "--trace", "run.memtrace", "train.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = asked_for(done)
    assert found["Block.forward (model.py:9)"] == "8.00 MiB"
    assert found["Block.forward (model.py:10)"] == "8.00 MiB"
    assert found["<module> (train.py:5)"] == "2.00 MiB"
    assert found["Block.__init__ (model.py:6)"] == "1.00 MiB"
    # Nothing of memprof's own is in a stack; what is of torch is, but is not whom the report names.
    collapsed = subprocess.run(
        [sys.executable, "-m", "memprof", "export", "--format", "collapsed", "run.memtrace", "-o", "-"], cwd=tmp_path, capture_output=True, text=True
    ).stdout
    stack = next(line for line in collapsed.splitlines() if "Linear.forward" in line)
    assert "memprof/" not in collapsed and "_modules.py" not in collapsed and "run.py" not in collapsed
    assert re.search(r"<module> \(train.py:6\).*Model.forward \(model.py:20\).*Block.forward \(model.py:9\).*Linear.forward \(linear.py:\d+\)", stack)
    largest = subprocess.run([sys.executable, "-m", "memprof", "show", "--blocks", "2", "run.memtrace"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert "Block.forward (model.py:9)" in largest and "Block.forward (model.py:10)" in largest


def test_a_backward_pass_names_the_line_that_began_it_or_nothing() -> None:
    weight = torch.ones(1024, 1024, requires_grad=True)
    x = torch.ones(1024, 1024)
    loss = (x @ weight).sum()
    with memprof.capture(trace=True, stacks=True) as capture:
        loss.backward()
        backward = line_here(-1)
    file = pathlib.Path(__file__).name
    assert set(callers(capture.trace)) <= {f"{sys._getframe().f_code.co_qualname} ({file}:{backward})"}
    assert sum(callers(capture.trace).values()) >= 4 * MIB


def test_threads_have_stacks_of_their_own() -> None:
    lines: dict[int, int] = {}
    kept: list[Any] = []
    barrier = threading.Barrier(3)

    def first() -> None:
        barrier.wait()
        for _ in range(50):
            kept.append(torch.empty(floats(1)))
        lines[1] = line_here(-1)

    def second() -> None:
        barrier.wait()
        for _ in range(50):
            kept.append(torch.zeros(floats(1)))
        lines[2] = line_here(-1)

    with memprof.capture(trace=True, stacks=True) as capture:
        threads = [threading.Thread(target=each) for each in (first, second)]
        for thread in threads:
            thread.start()
        barrier.wait()
        for thread in threads:
            while thread.is_alive():  # Python runs on in the meantime
                sum(range(1000))
    file = pathlib.Path(__file__).name
    prefix = sys._getframe().f_code.co_qualname + ".<locals>."
    assert callers(capture.trace) == {f"{prefix}first ({file}:{lines[1]})": 50 * MIB, f"{prefix}second ({file}:{lines[2]})": 50 * MIB}
    kept.clear()


def test_code_that_comes_and_goes_keeps_its_lines_apart() -> None:
    """Code objects of programs made while running take each other's places in memory."""
    kept: list[Any] = []
    with memprof.capture(trace=True, stacks=True) as capture:
        for number in range(1, 60):
            names: dict[str, Any] = {"torch": torch, "kept": kept}
            exec(compile("\n" * number + f"def f{number}(): kept.append(torch.empty({floats(1)}))\nf{number}()", f"made{number % 3}.py", "exec"), names)
    assert callers(capture.trace) == {f"f{number} (made{number % 3}.py:{number + 1})": MIB for number in range(1, 60)}
    kept.clear()


def test_names_of_any_alphabet_and_deep_stacks() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(compile(f"def größe_тест_深い():\n    return torch.empty({floats(1)})", "模型.py", "exec"), names)

    def down(depth: int) -> Any:
        return names["größe_тест_深い"]() if depth == 0 else down(depth - 1)

    with memprof.capture(trace=True, stacks=True) as capture:
        kept = down(200)  # more than the 64 innermost calls that a stack has
    assert callers(capture.trace) == {"größe_тест_深い (模型.py:2)": MIB}
    del kept


def test_lines_of_generators_comprehensions_and_callbacks() -> None:
    file = pathlib.Path(__file__).name

    def numbers() -> Any:
        yield torch.empty(floats(1))

    with memprof.capture(trace=True, stacks=True) as capture:
        kept = [each for each in numbers()]
        generator = line_here(-4)
        kept += list(map(lambda mib: torch.empty(floats(mib)), [2]))
        callback = line_here(-1)
    lines = {re.sub(r".*<locals>\.", "", caller): size for caller, size in callers(capture.trace).items()}
    assert lines == {f"numbers ({file}:{generator})": MIB, f"<lambda> ({file}:{callback})": 2 * MIB}
    del kept


class Samples(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.ones(floats(1))


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_a_loader_name_their_line_where_they_are_made_here(workers: int) -> None:
    file = pathlib.Path(__file__).name
    loader = torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=workers)
    kept = []
    with memprof.capture(trace=True, stacks=True) as capture:
        for batch in loader:
            kept.append(batch)
        loop = line_here(-2)
    made = f"Samples.__getitem__ ({file}:{Samples.__getitem__.__code__.co_firstlineno + 1})"
    found = callers(capture.trace)
    if workers == 0:  # a batch is made of two samples, which are then gone
        assert found[made] == 2 * MIB and any(caller.endswith(f"({file}:{loop})") for caller in found)
    else:  # workers allocate in processes of their own, and batches arrive in shared memory
        assert sum(found.values()) < MIB
        assert all(caller.endswith(f"({file}:{loop})") for caller in found), found
    kept.clear()


def test_a_simulation_has_the_lines_of_a_real_run() -> None:
    def step() -> Any:
        x = torch.ones(1024, 1024)
        return torch.relu(x)

    with memprof.capture(trace=True, stacks=True) as real:
        kept = step()
    del kept
    with memprof.no_dispatch(trace=True, stacks=True) as simulated:
        kept = step()
    assert callers(simulated.trace) == callers(real.trace) and len(callers(real.trace)) == 2
    del kept


def test_a_claimed_device_has_them_too() -> None:
    with memprof.no_dispatch(trace=True, stacks=True, device="gpu-24gb") as capture:
        kept = torch.empty(floats(8), device="cuda")
        line = line_here(-1)
        del kept
    found = capture.trace.peak_callers()
    file = pathlib.Path(__file__).name
    assert found is not None and found.space == "cuda:0"
    assert callers(capture.trace) == {f"{sys._getframe().f_code.co_qualname} ({file}:{line})": 8 * MIB}


def test_workers_have_lines_in_traces_of_their_own(tmp_path: pathlib.Path) -> None:
    script(
        tmp_path,
        samples="""
        import torch

        class Samples(torch.utils.data.Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return torch.ones(1 << 18)
        """,
        train="""
        import torch
        from samples import Samples

        for batch in torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=2, multiprocessing_context="fork"):
            pass
        """,
    )
    run = [sys.executable, "-m", "memprof", "run", "--children", "--stacks", "--trace", "run.memtrace", "train.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [set(callers(trace)) for trace in map(memprof.Trace, tmp_path.glob("*.memtrace")) if trace.peak_callers() is not None]
    assert len([each for each in found if "Samples.__getitem__ (samples.py:8)" in each]) == 2, found


def test_a_run_whose_stacks_cannot_be_read_is_recorded_without(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memprof.run import _Recording

    real = memprof._core._Capture

    def refuse(**options: Any) -> Any:
        if options["stacks_from"]:
            raise memprof.Error("stacks of Python 3.99 cannot be read")
        return real(**options)

    monkeypatch.setattr(memprof._core, "_Capture", refuse)
    monkeypatch.setenv("RUN_BY_MEMPROF_STACKS", "sampled")
    recording = _Recording(str(tmp_path))
    recording.begin()
    kept = torch.empty(floats(1))
    recording.end()
    assert capsys.readouterr().err.splitlines() == ["memprof run: stacks of Python 3.99 cannot be read"]
    (path,) = tmp_path.glob("*.memtrace")
    assert memprof.Trace(path).peak_callers() is None and memprof.read(path).space("cpu").cumulative_peak == MIB
    del kept
