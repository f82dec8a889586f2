"""The APIs of pie's memory profiler and of tt-train's memory tracker."""

from __future__ import annotations

import datetime
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import memprof
import pytest
from memprof import memory_profiler
from memprof.memory_profiler import get_memory_tracker, initialize_memory_tracker, memory_checkpoint, stop_memory_tracker

MIB = 1 << 20
SEEDS = pathlib.Path(__file__).parents[3] / "shared" / "seeds"
needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python before 3.11 reads no TOML")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for variable in ("MEMPROF", "MEMPROF_CONFIG", "MEMPROF_INTERVAL", "MEMPROF_OUTPUT_DIR", "MEMPROF_TRACE"):
        monkeypatch.delenv(variable, raising=False)
    yield
    stop_memory_tracker()
    memory_profiler._tracker = None


class Model:
    """Each pass leaves one more block of 2 MiB, after one of 1 MiB that comes and goes."""

    def __init__(self) -> None:
        self.memory, self.passes = memprof.MemorySpace("dram"), 0

    def forward(self, input: object) -> object:
        self.memory.allocate(0x1000_0000, MIB)
        self.memory.allocate(0x2000_0000 + self.passes * 2 * MIB, 2 * MIB)
        self.memory.deallocate(0x1000_0000)
        self.passes += 1
        return input


def document(path: str | None = None) -> Any:
    if path is None:
        (path,) = pathlib.Path().glob("memory_profile_*.json")
    return json.loads(pathlib.Path(path).read_text())


def program(text: str, **environment: str) -> subprocess.Popen[str]:
    """A program that has `memory`, and the calls of the memory profiler."""
    head = "import memprof, os, sys, time\nfrom memprof.memory_profiler import *\nmemory = memprof.MemorySpace('dram')\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + text],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# --- pie ---


def test_the_tracker_leaves_pies_file_with_the_checkpoints(tmp_path: pathlib.Path) -> None:
    initialize_memory_tracker(output_dir="./profiles", enabled=True)
    memprof.MemorySpace("dram").allocate(0x1000, 3 * MIB)
    memprof.annotate(0x1000, name="wte", shape="[3, 262144]", dtype="float32")
    memory_checkpoint("after_model_load")
    path = stop_memory_tracker()
    assert path is not None and re.fullmatch(r"\./profiles/memory_profile_\d{8}_\d{6}\.json", path)
    assert [file.name for file in (tmp_path / "profiles").iterdir()] == [os.path.basename(path)]
    found = document(path)
    assert found["metadata"]["num_snapshots"] == 2  # and the end
    snapshot = found["snapshots"][0]
    assert snapshot["checkpoint_name"] == "after_model_load"
    assert (snapshot["total_mb"], snapshot["total_bytes"], snapshot["tensor_count"]) == (3.0, 3 * MIB, 1)
    device = snapshot["device_breakdown"]["dram"]
    assert (device["total_mb"], device["count"]) == (3.0, 1)
    (tensor,) = device["tensors"]
    assert (tensor["size_mb"], tensor["shape"], tensor["dtype"], tensor["device"]) == (3.0, [3, 262144], "torch.float32", "dram")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*", snapshot["timestamp"])


def test_operations_nest_and_have_every_call() -> None:
    initialize_memory_tracker()
    model, tracker = Model(), get_memory_tracker()
    for _ in range(3):
        with tracker.track_operation("full_inference"):
            with tracker.track_operation("preprocessing"):
                pass
            with tracker.track_operation("forward_pass"):
                model.forward(None)
    found = document(stop_memory_tracker())
    calls = found["operation_allocations"]["forward_pass"]
    assert [(call["memory_delta_mb"], call["tensor_delta"], call["pre_total_mb"], call["post_total_mb"]) for call in calls] == [
        (2.0, 1, 0.0, 2.0),
        (2.0, 1, 2.0, 4.0),
        (2.0, 1, 4.0, 6.0),
    ]
    summary = {"invocation_count": 3, "total_memory_delta_mb": 6.0, "avg_memory_delta_mb": 2.0, "max_memory_delta_mb": 2.0}
    assert found["operation_summary"]["full_inference"] == found["operation_summary"]["forward_pass"] == summary
    assert found["operation_summary"]["preprocessing"]["total_memory_delta_mb"] == 0.0
    assert sorted(found["operation_graph"]["full_inference"]["child_operations"]) == ["forward_pass", "preprocessing"]


def test_calls_have_their_times_and_show_as_lanes() -> None:
    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    initialize_memory_tracker()
    tracker = get_memory_tracker()
    before = time.monotonic()
    with tracker.track_operation("full_inference"):
        wait(0.02)
        with tracker.track_operation("forward_pass"):
            memprof.MemorySpace("dram").allocate(0x1000, 1)
            wait(0.03)
    longest = time.monotonic() - before + 2e-6  # both times are cut to microseconds
    path = stop_memory_tracker()
    assert path is not None
    (call,) = document(path)["operation_allocations"]["full_inference"]
    begin, end = (datetime.datetime.fromisoformat(call[key]).timestamp() for key in ("begin_timestamp", "timestamp"))
    assert 0.05 - 2e-6 <= end - begin <= longest
    operation = converted(path).find_operation("full_inference/forward_pass")
    assert operation is not None and operation.invocations == 1


def test_without_a_tracker_its_calls_do_nothing(tmp_path: pathlib.Path) -> None:
    with get_memory_tracker().track_operation("model_forward"), get_memory_tracker().track_pytorch_ops():
        memory_checkpoint("nothing")
    with memory_checkpoint("nothing"):
        pass
    assert not get_memory_tracker().is_active and stop_memory_tracker() is None
    assert not initialize_memory_tracker(enabled=False).is_active
    assert stop_memory_tracker() is None and list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_taken_at_each_interval() -> None:
    initialize_memory_tracker(interval=0.02)
    deadline = time.monotonic() + 60
    while memprof.current_profile().checkpoint_count < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    names = [snapshot["checkpoint_name"] for snapshot in document(stop_memory_tracker())["snapshots"]]
    assert names[:2] == ["snapshot_0001", "snapshot_0002"]


def test_a_second_tracker_ends_the_first_whose_file_stays() -> None:
    first = initialize_memory_tracker()
    memory_checkpoint("first")
    second = initialize_memory_tracker()
    assert second.is_active and not first.is_active
    memory_checkpoint("second")
    path = stop_memory_tracker()
    assert stop_memory_tracker() is None
    others = [str(file) for file in pathlib.Path().glob("*.json") if str(file) != os.path.basename(str(path))]
    assert document(path)["snapshots"][0]["checkpoint_name"] == "second"
    assert [document(other)["snapshots"][0]["checkpoint_name"] for other in others] == ["first"]


def test_beside_a_capture_the_tracker_says_that_it_records_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with memprof.capture() as capture:
        assert not initialize_memory_tracker().is_active
        memprof.MemorySpace("dram").allocate(0x1000, 10)
        assert stop_memory_tracker() is None
    assert "records nothing" in capsys.readouterr().err and list(pathlib.Path().iterdir()) == []
    assert capture.profile.space("dram").cumulative_peak == 10


def test_a_folder_that_cannot_be_made_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pathlib.Path("taken").write_text("")
    assert not initialize_memory_tracker(output_dir="taken").is_active
    said = capsys.readouterr().err
    assert said.startswith("memprof: the memory tracker records nothing") and "taken" in said and said.count("\n") == 1


def test_a_program_that_ends_leaves_its_file() -> None:
    ended = program("initialize_memory_tracker()\nmemory.allocate(0x1000, 1 << 20)\nraise SystemExit(5)")
    said = ended.communicate()[1]
    assert ended.returncode == 5 and "profile in './memory_profile_" in said
    assert document()["snapshots"][-1]["total_mb"] == 1.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_program_that_leaves_its_file(number: signal.Signals) -> None:
    # A launcher may have this process ignore SIGINT and SIGHUP, which children inherit.
    text = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    text += "initialize_memory_tracker()\n"
    server = program(text + "memory.allocate(0x1000, 1 << 20)\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)")
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.send_signal(number)
    server.communicate()
    assert server.returncode == -number
    assert document()["snapshots"][-1]["total_mb"] == 1.0


def test_a_programs_own_handler_decides() -> None:
    server = program(
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "initialize_memory_tracker()\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.01)"
    )
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.terminate()
    server.communicate()
    assert server.returncode == 7 and document()["metadata"]["num_snapshots"] == 1


def test_a_killed_program_leaves_its_trace() -> None:
    server = program(
        "initialize_memory_tracker()\nmemory.allocate(0x1000, 1 << 20)\nmemory_checkpoint('loaded')\n"
        "print('ready', flush=True)\nwhile True: time.sleep(0.01)"
    )
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.kill()
    server.communicate()
    (trace,) = pathlib.Path().glob("memory_profile_*.memtrace")
    assert [point.name for point in memprof.read(trace).checkpoints] == ["loaded"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_leaves_no_file_of_its_parent() -> None:
    parent = program(
        "initialize_memory_tracker()\n"
        "memory.allocate(0x1000, 1 << 20)\n"
        "if os.fork() == 0:\n"
        "    memory.allocate(0x9000, 1 << 20)\n"
        "    assert not get_memory_tracker().is_active and stop_memory_tracker() is None\n"
        "    sys.exit(0)\n"
        "status = os.wait()[1]\n"
        "assert status == 0, status"
    )
    said = parent.communicate()[1]
    assert parent.returncode == 0, said
    assert document()["snapshots"][-1]["total_mb"] == 1.0


def test_a_child_may_have_a_tracker_of_its_own() -> None:
    parent = program(
        "initialize_memory_tracker('parent')\n"
        "if os.fork() == 0:\n"
        "    initialize_memory_tracker('child')\n"
        "    memory.allocate(0x1000, 1 << 20)\n"
        "    sys.exit(0)\n"
        "os.wait()"
    )
    said = parent.communicate()[1]
    assert parent.returncode == 0, said
    for folder, total in (("parent", 0), ("child", 1.0)):
        (path,) = pathlib.Path(folder).glob("memory_profile_*.json")
        assert document(str(path))["snapshots"][-1]["total_mb"] == total


@needs_toml
def test_the_backends_configuration_enables_the_tracker() -> None:
    backend = pathlib.Path("backend.toml")
    backend.write_text('[[backend]]\nname = "python"\n[[backend]]\nenable_memory_profiling = true\n')
    assert initialize_memory_tracker(enabled=False, config=backend).is_active
    backend.write_text("[[backend]]\nenable_memory_profiling = false\n")
    assert not initialize_memory_tracker(config=backend).is_active


def test_the_command_line_switches_the_tracker_of_a_file() -> None:
    from memprof import _config

    def update(enabled: str, file: str = "backend.toml") -> subprocess.CompletedProcess[str]:
        command = ["config", "update", "--backend-enable-memory-profiling", enabled, "--config", file]
        return subprocess.run([sys.executable, "-m", "memprof", *command], capture_output=True, text=True)

    backend = pathlib.Path("backend.toml")
    assert update("true").returncode == 0
    assert backend.read_text() == "[[backend]]\nenable_memory_profiling = true\n"
    rest = 'name = "a"  # first\n[[backend]]\nname = "b"\n[other]\nenable_memory_profiling = 1\n'
    backend.write_text("# ours\n[[backend]]\n" + rest)
    _config.set_enabled("backend.toml", True)
    _config.set_enabled("backend.toml", False)
    assert backend.read_text() == "# ours\n[[backend]]\nenable_memory_profiling = false\n" + rest
    refused = update("true", "absent/backend.toml")
    assert refused.returncode == 1
    assert refused.stderr == "memprof config: cannot change 'absent/backend.toml': No such file or directory\n"


@needs_toml
def test_the_command_line_leaves_what_is_no_toml() -> None:
    from memprof import _config

    backend = pathlib.Path("backend.toml")
    backend.write_text("[[backend]\n")
    with pytest.raises(ValueError):
        _config.set_enabled("backend.toml", True)
    assert backend.read_text() == "[[backend]\n"


@needs_toml
def test_a_file_of_settings_overrides_the_program_and_the_environment_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pathlib.Path("settings.toml").write_text('[memprof]\noutput_dir = "from_file"\ntrace = true\ninterval = 30\n')
    monkeypatch.setenv("MEMPROF_CONFIG", "settings.toml")
    initialize_memory_tracker(output_dir="from_program")
    path = stop_memory_tracker()
    assert path is not None and path.startswith("from_file/") and os.path.exists(path[: -len("json")] + "memtrace")
    monkeypatch.setenv("MEMPROF_OUTPUT_DIR", "from_environment")
    monkeypatch.setenv("MEMPROF_TRACE", "0")
    initialize_memory_tracker()
    assert str(stop_memory_tracker()).startswith("from_environment/")
    monkeypatch.setenv("MEMPROF", "0")
    assert not initialize_memory_tracker().is_active


@needs_toml
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[memprof", "is ignored"),
        ("[memprof]\ninterval = 0\n", "interval = 0 is ignored; use seconds, more than 0"),
        ("[memprof]\nouput_dir = 'x'\n", "unknown key 'ouput_dir'"),
        ("[[backend]]\nenable_memory_profiling = 3\n", "enable_memory_profiling = 3 is ignored; use 1 or 0"),
        (None, "No such file"),
    ],
)
def test_a_bad_setting_is_one_line(text: str | None, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text is not None:
        pathlib.Path("settings.toml").write_text(text)
    assert initialize_memory_tracker(config="settings.toml").is_active
    said = capsys.readouterr().err
    assert "'settings.toml'" in said and expected in said and said.count("\n") == 1


def test_a_bad_interval_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPROF_INTERVAL", "never")
    assert initialize_memory_tracker().is_active
    assert capsys.readouterr().err == "memprof: environment: MEMPROF_INTERVAL = never is ignored; use seconds, more than 0\n"


def test_tensors_of_a_torch_that_is_imported_later_and_its_operators_are_recorded() -> None:
    pytest.importorskip("torch")
    done = program(
        "initialize_memory_tracker()\n"
        "import torch\n"
        "torch.set_num_threads(1)\n"
        "model, input = torch.nn.Linear(512, 2048), torch.randn(8, 512)\n"
        "memory_checkpoint('loaded')\n"
        "with get_memory_tracker().track_operation('model_forward'), get_memory_tracker().track_pytorch_ops():\n"
        "    for _ in range(3): model.forward(input)\n"
    )
    said = done.communicate()[1]
    assert done.returncode == 0, said
    found = document()
    assert found["metadata"]["pytorch_ops_tracking_enabled"]
    (loaded,) = (snapshot for snapshot in found["snapshots"] if snapshot["checkpoint_name"] == "loaded")
    assert loaded["total_bytes"] == 4 * (512 * 2048 + 2048 + 8 * 512) and loaded["tensor_count"] == 3
    assert loaded["top_allocations"][0]["shape"] == [2048, 512] and loaded["top_allocations"][0]["requires_grad"]
    (product,) = [row for row in found["pytorch_operations"] if row["op_name"] == "aten::addmm"]
    assert product["count"] == 3 and product["input_shapes"][:3] == [[2048], [8, 512], [512, 2048]]
    assert product["cpu_memory_mb"] == 3 * 8 * 2048 * 4 / MIB
    assert found["operation_summary"]["model_forward"]["invocation_count"] == 1


def converted(path: str | os.PathLike[str]) -> memprof.Profile:
    """What `show`, `report` and `convert` read."""
    for command in (("show", path), ("report", path, "-o", "page.html"), ("convert", path, "-o", "run.memtrace")):
        done = subprocess.run([sys.executable, "-m", "memprof", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert pathlib.Path("page.html").read_text().startswith("<!DOCTYPE html>")
    return memprof.read("run.memtrace")


def test_the_trackers_file_is_shown_reported_and_converted() -> None:
    initialize_memory_tracker()
    memory = memprof.MemorySpace("dram")
    memory.allocate(0x1000, 3 * MIB)
    memory_checkpoint("loaded")
    memory.deallocate(0x1000)
    path = stop_memory_tracker()
    assert path is not None
    found = converted(path)
    assert [(point.name, point.live_bytes) for point in found.checkpoints] == [("loaded", 3 * MIB), ("END_TRACE", 0)]
    assert found.space("dram").cumulative_peak == 3 * MIB


def test_a_file_of_pies_has_its_totals_as_checkpoints() -> None:
    sample = SEEDS.parent / "data" / "pie" / "memory_profile_sample.json"
    if not sample.exists():
        pytest.skip("pie's own file is not there")
    found = converted(sample)
    keys = ("checkpoint_name", "total_bytes", "tensor_count")
    totals = [tuple(snapshot[key] for key in keys) for snapshot in document(str(sample))["snapshots"]]
    assert [(point.name, point.live_bytes, point.live_blocks) for point in found.checkpoints] == totals
    names = {entry["name"] for entry in document(str(sample))["operation_log"]}
    assert names <= {operation.name for operation in found.operations}


def test_a_session_file_is_read_in_python_as_the_program_reads_it() -> None:
    tracker = initialize_memory_tracker()
    memory = memprof.MemorySpace("dram")
    memory.allocate(0x1000, 3 * MIB)
    memory_checkpoint("loaded")
    with tracker.track_operation("forward"):
        memory.allocate(0x800000, MIB)
        memory.deallocate(0x800000)
    path = stop_memory_tracker()
    assert path is not None and not list(pathlib.Path(path).parent.glob("*.memtrace"))  # no trace was asked for
    read = memprof.read(path)
    assert read == converted(path)
    assert {row["operation"]: row["invocations"] for row in read.facts["session_operations"]}["forward"] == 1
    assert memprof.check(path, peak_at_most=3 * MIB) and memprof.compare(path, path).is_equal()


def test_the_seeds_own_json_is_read() -> None:
    text = next(SEEDS.glob("001_*")).read_text() if SEEDS.exists() else pytest.skip("the seeds are not there")
    (block,) = [each for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"snapshots"' in each]
    pathlib.Path("seed.json").write_text(block)
    read = memprof.read("seed.json")
    (point,) = [point for point in read.checkpoints if point.name == "model_forward_pre"]
    # Its one device has 2000.0 MB: the largest tensor of 512 MB, and all others together. (The total beside it has other numbers.)
    (device,) = point.spaces
    assert (device.space, device.live_bytes) == ("mps", 2000 * MIB)
    assert [block.bytes for block in device.largest_blocks] == [1488 * MIB, 512 * MIB]
    sums = {row["operation"]: row["invocations"] for row in read.facts["session_operations"]}
    assert sums == {"model_forward": 20, "preprocessing": 20}


def test_a_profile_without_a_trace_serves_the_seeds_json_and_lanes() -> None:
    memory = memprof.MemorySpace("dram")
    with memprof.capture() as capture:
        for _ in range(3):
            with memprof.track_operation("forward"):
                memory.allocate(0x1000, MIB)
                memprof.memory_checkpoint("inside")
                memory.deallocate(0x1000)
    capture.profile.export("session", "own.json")
    text = next(SEEDS.glob("001_*")).read_text() if SEEDS.exists() else pytest.skip("the seeds are not there")
    (block,) = [each for each in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"snapshots"' in each]
    seed, own = json.loads(block), document("own.json")
    assert set(seed) <= set(own) and set(seed["snapshots"][0]) <= set(own["snapshots"][0])
    assert own["operation_summary"]["forward"]["invocation_count"] == 3
    assert set(seed["operation_summary"]["model_forward"]) <= set(own["operation_summary"]["forward"])
    assert set(seed["operation_allocations"]["model_forward"][0]) <= set(own["operation_allocations"]["forward"][0])


# --- tt-train ---


def test_the_tracker_prints_each_phase(capsys: pytest.CaptureFixture[str]) -> None:
    import memprof.ttml as ttml

    MemoryUsageTracker = ttml.core.utils.MemoryUsageTracker
    memory = memprof.MemorySpace("dram")
    guard = MemoryUsageTracker.begin_capture()
    memory.allocate(0x100_0000, 4 * MIB)
    MemoryUsageTracker.snapshot("MODEL_CREATION")
    memory.allocate(0x200_0000, 8 * MIB)
    MemoryUsageTracker.snapshot("OPTIMIZER_CREATION")
    memory.allocate(0x300_0000, 2 * MIB)
    MemoryUsageTracker.snapshot("FORWARD_PASS")
    memory.allocate(0x400_0000, 5 * MIB)
    memory.deallocate(0x300_0000)
    MemoryUsageTracker.snapshot("BACKWARD_PASS")
    MemoryUsageTracker.end_capture("ITERATION_COMPLETE")
    MemoryUsageTracker.print_memory_usage()
    printed = capsys.readouterr().out
    phases = re.findall(r"--- (\w+) ---\n((?:  .*\n)*)", printed)
    assert [name for name, _ in phases] == [
        "MODEL_CREATION",
        "OPTIMIZER_CREATION",
        "FORWARD_PASS",
        "BACKWARD_PASS",
        "ITERATION_COMPLETE",
    ]
    assert (
        "Segment Peak 5.00 MB, Allocations 5.00 MB, Deallocations 2.00 MB, Segment Change +3.00 MB" in phases[3][1]
        and "Cumulative Peak 19.00 MB, Cumulative Current 17.00 MB" in phases[3][1]
    )
    MemoryUsageTracker.clear()
    guard.release()
    MemoryUsageTracker.print_memory_usage()
    assert capsys.readouterr().out == "WARNING: No traces captured\n"


def test_a_guard_that_goes_ends_and_discards_the_capture() -> None:
    from memprof.ttml.core.utils import MemoryUsageTracker

    guard = MemoryUsageTracker.begin_capture()
    MemoryUsageTracker.snapshot("FIRST")
    del guard
    gc.collect()
    assert not memprof.is_capturing() and memprof.current_profile().segments == []


def test_a_released_guard_leaves_the_capture_and_so_does_a_with_block() -> None:
    from memprof.ttml.core.utils import MemoryUsageTracker

    MemoryUsageTracker.begin_capture().release()
    assert memprof.is_capturing()
    MemoryUsageTracker.clear()
    with MemoryUsageTracker.begin_capture():
        MemoryUsageTracker.snapshot("FIRST")
    gc.collect()
    assert memprof.is_capturing()
    MemoryUsageTracker.end_capture()
    assert [segment.name for segment in memprof.current_profile().segments] == ["FIRST", "END_TRACE"]
    MemoryUsageTracker.clear()


def test_a_guard_of_an_earlier_capture_leaves_the_next_one() -> None:
    from memprof.ttml.core.utils import MemoryUsageTracker

    first = MemoryUsageTracker.begin_capture()
    MemoryUsageTracker.end_capture()
    second = MemoryUsageTracker.begin_capture()
    del first
    gc.collect()
    assert memprof.is_capturing()
    del second
    gc.collect()
    assert not memprof.is_capturing()


def test_a_second_capture_raises() -> None:
    from memprof.ttml.core.utils import MemoryUsageTracker

    guard = MemoryUsageTracker.begin_capture()
    with pytest.raises(RuntimeError, match="capture"):
        MemoryUsageTracker.begin_capture()
    MemoryUsageTracker.snapshot("STILL")
    del guard
    gc.collect()
    assert not memprof.is_capturing()


def test_no_dispatch_is_a_mode_of_the_tracker() -> None:
    from memprof import ttnn
    from memprof.ttml.core.utils import MemoryUsageTracker

    if not hasattr(memprof, "no_dispatch"):
        with pytest.raises(memprof.Error, match="RunMode.NORMAL"):
            MemoryUsageTracker.begin_capture(ttnn.graph.RunMode.NO_DISPATCH)
        return
    pytest.importorskip("torch")
    guard = MemoryUsageTracker.begin_capture(ttnn.graph.RunMode.NO_DISPATCH)
    MemoryUsageTracker.end_capture()
    assert memprof.current_profile().mode == "no_dispatch"
    del guard


# --- the documents ---


def blocks_of(document: str) -> list[str]:
    """The Python programs of a seed, with memprof's modules for its own."""
    paths = list(SEEDS.glob(document))
    if not paths:
        pytest.skip("the documents of the seeds are not there")
    blocks = re.findall(r"```python\n(.*?)```", paths[0].read_text(), re.DOTALL)
    for theirs, ours in (
        ("from memory_profiler import", "from memprof.memory_profiler import"),
        ("import ttml\n", "import memprof.ttml as ttml\n"),
        ("import ttnn\n", "import memprof.ttnn as ttnn\n"),
    ):
        blocks = [block.replace(theirs, ours) for block in blocks]
    return blocks


def test_the_programs_of_pies_document_run() -> None:
    names: dict[str, Any] = {"model": Model(), "input": 1, "preprocess": lambda each: each, "postprocess": lambda each: each}
    basic, operations, pytorch, options = blocks_of("001_*.txt")
    exec(basic, names)
    (path,) = pathlib.Path("profiles").glob("memory_profile_*.json")
    assert document(str(path))["snapshots"][0]["checkpoint_name"] == "after_model_load"
    initialize_memory_tracker()
    exec(operations, names)
    exec(pytorch, names)
    found = document(stop_memory_tracker())
    assert found["operation_summary"]["model_forward"]["total_memory_delta_mb"] == 2.0
    assert found["operation_graph"]["full_inference"]["child_operations"] == ["forward_pass", "postprocessing", "preprocessing"]
    exec(options, names)
    assert get_memory_tracker().is_active


def test_the_programs_of_tt_trains_document_run(capsys: pytest.CaptureFixture[str]) -> None:
    basic, no_dispatch = blocks_of("002_*.txt")
    names: dict[str, Any] = {}
    exec(basic, names)
    assert "--- ITERATION_COMPLETE ---" in capsys.readouterr().out and not memprof.is_capturing()
    if not hasattr(memprof, "no_dispatch"):
        pytest.skip("this memprof has no no_dispatch")
    pytest.importorskip("torch")
    exec(no_dispatch, names)
    assert memprof.current_profile().mode == "no_dispatch"
    del names["guard"]
