"""`memprof run` of Python scripts."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable

import memprof
import pytest

HEAD = "import memprof, os, sys\nmemory = memprof.MemorySpace('dram')\nmemory.allocate(0x1000, 1 << 20)\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Run:
    """Runs `train.py`, and leaves `run.json` where the test asks for it."""

    def run_script(text: str, *options: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "memprof", "run", *options, "train.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run_script


def alone(tmp_path: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What Python does by itself."""
    return subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)


def test_a_script_is_recorded_to_its_end(run: Run, tmp_path: pathlib.Path) -> None:
    done = run(
        HEAD + "import atexit\natexit.register(lambda: memory.allocate(0x900000, 2 << 20))\nmemprof.snapshot('MODEL_CREATION')\n",
        *("--profile", "run.json", "--trace=run.memtrace", "--page", "run.html", "--json", "summary.json"),
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.startswith(f"memprof   {os.path.basename(sys.executable)} train.py: ")
    assert "3.00 MiB (3,145,728 B) of dram" in done.stderr and "#include" not in done.stderr
    profile = memprof.read(tmp_path / "run.json")
    assert profile.space("dram").cumulative_peak == 3 << 20
    assert [segment.name for segment in profile.segments] == ["MODEL_CREATION", "END_TRACE"]
    assert memprof.read(tmp_path / "run.memtrace").space("dram").cumulative_peak == 3 << 20
    assert (tmp_path / "run.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "summary.json").read_text())["spaces"][0]["peak_bytes"] == 3 << 20


def test_the_console_script_runs_scripts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(HEAD)
    script = os.path.join(sysconfig.get_path("scripts"), "memprof")
    done = subprocess.run([script, "run", "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "(1,048,576 B) of dram" in done.stderr


def test_options_behind_a_script_that_refuses_them_are_named(run: Run) -> None:
    parses = HEAD + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--json')\nparser.parse_args()\n"
    done = run(parses, arguments=("--trace", "run.memtrace"))
    hint = "memprof run: train.py ended with exit status 2; --trace follows the script, which got it: options of memprof run stand before it\n"
    assert done.returncode == 2 and done.stderr.count(hint) == 1
    done = run(parses, arguments=("--wrong",))
    assert done.returncode == 2 and "follows the script" not in done.stderr
    done = run(parses, arguments=("--json", "x"))
    assert done.returncode == 0 and "follows the script" not in done.stderr


def test_a_kept_trace_is_shown_under_the_scripts_own_command(run: Run, tmp_path: pathlib.Path) -> None:
    done = run(HEAD, "--trace", "run.memtrace", arguments=("--batch-size", "16"))
    first = f"memprof   {pathlib.Path(sys.executable).name} train.py --batch-size 16: "
    assert done.stderr.startswith(first)
    shown = subprocess.run([sys.executable, "-m", "memprof", "show", "run.memtrace"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.startswith(first)


def test_a_script_finds_what_it_would_find_alone(run: Run, tmp_path: pathlib.Path) -> None:
    text = """
    import os, sys, helper
    print(sys.argv, __name__, __file__, __spec__, sys.path[0], sys.modules["__main__"].__dict__ is globals(), helper.__name__)
    print(sorted(name for name in os.environ if "MEMPROF" in name))
    def function(): pass
    print(function.__module__)
    """
    (tmp_path / "helper.py").write_text("")
    done = run(text, arguments=("--batch-size", "16", "--profile", "x"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone(tmp_path, "train.py", "--batch-size", "16", "--profile", "x").stdout


def test_a_module_finds_what_it_would_find_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    text = "import sys\nprint(sys.argv, __name__, __package__, __spec__.name, sys.path[0])\n"
    (tmp_path / "package" / "train.py").write_text(text)
    command = ("-m", "package.train", "--batch-size", "16")
    done = subprocess.run([sys.executable, "-m", "memprof", "run", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone(tmp_path, *command).stdout


@pytest.mark.parametrize(
    "end", ["sys.exit(3)", "sys.exit('in words')", "raise SystemExit", "os._exit(4)", "raise KeyError('lost')"]
)
def test_the_exit_status_is_the_scripts_own(run: Run, tmp_path: pathlib.Path, end: str) -> None:
    done = run(HEAD + end, "--profile", "run.json")
    expected = alone(tmp_path, "train.py")
    assert done.returncode == expected.returncode
    assert done.stderr.startswith(expected.stderr)  # the traceback
    assert memprof.read(tmp_path / "run.json").space("dram").cumulative_peak == 1 << 20


def test_tracebacks_have_the_scripts_frames_alone(run: Run, tmp_path: pathlib.Path) -> None:
    done = run("def step():\n    raise ValueError('no loss')\ntry:\n    {}['key']\nexcept KeyError:\n    step()\n")
    expected = alone(tmp_path, "train.py")
    assert "During handling" in expected.stderr and done.stderr.startswith(expected.stderr)
    done = run("x = = 1\n")
    expected = alone(tmp_path, "train.py")
    assert "SyntaxError" in expected.stderr and done.stderr.startswith(expected.stderr) and done.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_that_ends_the_script_ends_the_run(run: Run, tmp_path: pathlib.Path, number: signal.Signals) -> None:
    done = run(HEAD + f"os.kill(os.getpid(), {int(number)})", "--profile", "run.json")
    assert done.returncode == -number
    assert memprof.read(tmp_path / "run.json").space("dram").cumulative_peak == 1 << 20


def test_a_script_that_is_absent_or_no_script_is_one_line(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "package").mkdir()
    for options in ((), ("--profile", "run.json")):
        done = alone(tmp_path, "-m", "memprof", "run", *options, "absent.py", "--batch-size", "16")
        assert (done.returncode, done.stdout) == (alone(tmp_path, "absent.py").returncode, "")
        assert done.stderr == "memprof run: cannot open 'absent.py': No such file or directory\n"
    for module, line in (("absent.train", "memprof run: no module named 'absent.train'\n"), ("package.train", None)):
        done = alone(tmp_path, "-m", "memprof", "run", "-m", module)
        assert done.returncode == alone(tmp_path, "-m", module).returncode == 1
        assert done.stderr == line if line else "No module named package.train" in done.stderr
    done = subprocess.run([sys.executable, "-m", "memprof", "run", "-m"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "expected a script" in done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_are_recorded_where_that_is_asked_for(run: Run, tmp_path: pathlib.Path) -> None:
    text = HEAD + "if os.fork() == 0:\n    memory.allocate(0x800000, 5 << 20)\n    sys.exit(0)\nos.wait()\n"
    done = run(text, "--profile", "run.json")
    assert done.returncode == 0 and done.stderr.count("Process ") <= 1
    assert memprof.read(tmp_path / "run.json").space("dram").cumulative_peak == 1 << 20
    done = run(text, "--children", "--trace", "run.memtrace")
    row = rf"^ *\d+  5\.00 MiB  5\.00 MiB            1  {re.escape(os.path.basename(sys.executable))} train\.py$"
    assert done.returncode == 0 and re.search(row, done.stderr, re.MULTILINE)
    (child,) = tmp_path.glob("run.*.memtrace")
    assert memprof.read(child).space("dram").cumulative_peak == 5 << 20


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_workers_find_the_scripts_functions(run: Run, tmp_path: pathlib.Path, method: str) -> None:
    text = f"""
    import multiprocessing
    def square(number): return number * number
    if __name__ == "__main__":
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(pool.map(square, [1, 2, 3]))
    """
    done = run(text)
    assert (done.returncode, done.stdout) == (0, "[1, 4, 9]\n"), done.stderr


def test_a_script_that_records_nothing_hears_how_it_could(run: Run) -> None:
    done = run("print('done')")
    assert done.returncode == 0 and done.stdout == "done\n"
    assert "No allocations recorded." in done.stderr and "memprof run -- python3 SCRIPT" in done.stderr
    assert "#include" not in done.stderr


def test_tensors_are_recorded_wherever_torch_is_imported(run: Run, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    text = """
    import importlib.util
    assert importlib.util.find_spec("torch") is not None  # as programs look whether it is there

    def train():
        import torch
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(2):
            loss = model(torch.randn(32, 64)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.isfinite().item(), torch.__spec__.loader.__class__.__name__, torch.__loader__ is torch.__spec__.loader)

    train()
    """
    done = run(text, "--profile", "run.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True SourceFileLoader True\n"
    profile = memprof.read(tmp_path / "run.json")
    assert profile.find_operation("Sequential/0/aten::linear/aten::addmm") is not None
    parameters = 4 * (64 * 256 + 256 + 256 * 8 + 8)
    categories = {owner.owner: owner.bytes for owner in profile.space("cpu").live_at_peak.by_category}
    assert categories["parameter"] == parameters


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("imported_by", ["the parent", "the child"])
def test_a_forked_child_is_recorded_as_its_parent_is(run: Run, tmp_path: pathlib.Path, imported_by: str) -> None:
    pytest.importorskip("torch")
    text = f"""
    import os
    def train():
        import torch
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(100, 50), torch.nn.Linear(50, 2))
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(5):
            model(torch.randn(8, 100)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    if {imported_by == "the parent"}:
        train()  # what its hooks wait for is not the child's
    if os.fork() == 0:
        train()
        os._exit(0)
    os.wait()
    """
    done = run(text, "--children", "--trace", "run.memtrace")
    assert done.returncode == 0 and "memprof run:" not in done.stderr, done.stderr
    (path,) = tmp_path.glob("run.*.memtrace")
    child = memprof.read(path)
    assert [segment.name for segment in child.segments] == ["OPTIMIZER_STEP"] * 5 + ["END_TRACE"]
    assert child.find_operation("Sequential/0") is not None and child.find_operation("Sequential/0/Sequential") is None
    assert child.find_operation("gradients of 1") is not None
    owners = {owner.owner: owner.bytes for owner in child.space("cpu").live_at_peak.by_category}
    parameters = 4 * (100 * 50 + 50 + 50 * 2 + 2)
    assert owners["parameter"] == parameters
    # Two moments, and the number of steps (4 B) for each of the four parameters.
    assert owners["optimizer_state"] == 2 * parameters + 4 * 4


def test_workers_of_the_open_operation_are_inferred_where_that_is_asked_for(run: Run, tmp_path: pathlib.Path) -> None:
    text = HEAD + (
        "import threading\nwith memprof.track_operation('step'):\n"
        "    worker = threading.Thread(target=memory.allocate, args=(0x900000, 3000))\n    worker.start()\n    worker.join()\n"
    )
    for options, inferred in (((), 0), (("--infer-operations",), 3000)):
        done = run(text, "--profile", "run.json", *options)
        assert done.returncode == 0, done.stderr
        step = memprof.read(tmp_path / "run.json").find_operation("step")
        assert step is not None and sum(usage.inferred for usage in step.usage if usage.space == "dram") == inferred


def test_uses_of_tensors_say_what_is_held_too_long(run: Run, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    text = """
        import torch
        first = torch.ones(1000)  # 4,000 bytes
        second = first * 2
        third = torch.ones(5000)
        third += 1
    """
    question = ("what-if", "run.memtrace", "--free-at-last-use", "--json")
    for options, status in (((), 2), (("--uses",), 0)):
        done = run(text, "--trace=run.memtrace", *options)
        assert done.returncode == 0, done.stderr
        answer = alone(tmp_path, "-m", "memprof", *question)
        assert answer.returncode == status, answer.stderr
        assert ("has no use of a block" in answer.stderr) == (status != 0)
    found = json.loads(answer.stdout)
    # Each of the first two is 4,000 bytes; the third is 20,000, made when nothing uses them any more. Beside them are a few numbers.
    assert found["saved_bytes"] == 2 * 4_000
    assert 20_000 <= found["after"]["bytes"] < 20_100


def test_the_page_of_a_trace_in_a_file_is_written(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.save(tmp_path / "run.memtrace")
    memprof.Trace(tmp_path / "run.memtrace").write_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
