"""Recordings of other tools and waterfalls, from Python: the same bytes as the command line's."""

from __future__ import annotations

import gzip
import importlib.util
import json
import pathlib
import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import memprof
import pytest

CHECKS = pathlib.Path(__file__).parents[2] / "tests/formats"


def check_module(name: str) -> ModuleType:
    """The script that tests the program on that format, for the files that it makes."""
    if str(CHECKS) not in sys.path:
        sys.path.append(str(CHECKS))
    spec = importlib.util.spec_from_file_location(name, CHECKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(*arguments: object, expected: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "memprof", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == expected, done.stderr
    return done


def said(done: subprocess.CompletedProcess[str], subcommand: str = "import") -> list[str]:
    return [line.removeprefix(f"memprof {subcommand}: ") for line in done.stderr.splitlines()]


def xplane(folder: pathlib.Path) -> bytes:
    path = check_module("check_answers").xla_profile(folder / "made.xplane.pb")
    return bytes(path.read_bytes())


def recordings(folder: pathlib.Path) -> list[tuple[str, bytes]]:
    """A recording or two of each format that the program reads."""
    found = [(form, content) for form, contents in check_module("check_hostile").samples().items() for content in contents]
    for version in (1, 3):
        found.append(("heaptrack", check_module("check_heaptrack").made(7, version)[0]))
    found.append(("heaptrack", gzip.compress(found[-1][1])))
    found.append(("xplane", xplane(folder)))
    return found


def imported(path: pathlib.Path, *arguments: Any, **options: Any) -> tuple[memprof.Trace, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = memprof.import_recording(path, *arguments, **options)
    assert all(pathlib.Path(each.filename).samefile(__file__) for each in caught)
    return trace, [str(each.message) for each in caught]


def assert_equal(trace: memprof.Trace, written: pathlib.Path, folder: pathlib.Path) -> None:
    """A trace and the one in a file: every event, block, segment, operation and fact."""
    theirs = memprof.Trace(written)
    assert json.loads(trace.profile().json()) == json.loads(theirs.profile().json())
    for name, each in (("own", trace), ("theirs", theirs)):
        each.export("csv", folder / name)
    for table in ("events", "blocks", "segments", "operations", "runs"):
        assert (folder / "own" / f"{table}.csv").read_bytes() == (folder / "theirs" / f"{table}.csv").read_bytes(), table


def assert_same(trace: memprof.Trace, folder: pathlib.Path, *command: object) -> list[str]:
    """The trace and the profile that the program writes. Returns what the program says."""
    program("import", *command, "-o", folder / "out.json")
    done = program("import", *command, "-o", folder / "out.memtrace")
    assert json.loads(trace.profile().json()) == json.loads((folder / "out.json").read_text())
    assert_equal(trace, folder / "out.memtrace", folder)
    return said(done)


def test_every_format_is_read_as_the_program_reads_it(tmp_path: pathlib.Path) -> None:
    tried = set()
    for form, content in recordings(tmp_path):
        path = tmp_path / "input"
        path.write_bytes(content)
        for asked in (form, "auto"):
            trace, remarks = imported(path, asked)
            assert trace.profile().spaces, form
            assert assert_same(trace, tmp_path, asked, path) == remarks, form
        tried.add(form)
    known = program("import", "--help").stdout
    assert tried == {"torch-snapshot", "rmm", "heaptrack", "xplane", "tt-mlir", "ttnn-graph", "session"}
    assert all(form in known for form in tried)


def test_options_are_those_of_the_program(tmp_path: pathlib.Path) -> None:
    samples = check_module("check_hostile").samples()
    graph, snapshot, profile = (tmp_path / name for name in ("graph.json", "snapshot.pickle", "made.xplane.pb"))
    graph.write_bytes(samples["ttnn-graph"][0])
    snapshot.write_bytes(samples["torch-snapshot"][0])
    xplane(tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text("[[class]]\nname = 'kv_cache'\nop_name = '^params'\ncategory = 'kv_cache'\n")
    for path, options, command in (
        (graph, {"per_core": True}, ("--per-core",)),
        (snapshot, {"frames": "all"}, ("--frames", "all")),
        (snapshot, {"operations": 1}, ("--operations", "1")),
        (profile, {"module": "jit_step"}, ("--module", "jit_step")),
        (profile, {"classes": rules}, ("--classes", rules)),
    ):
        trace, remarks = imported(path, **options)
        assert assert_same(trace, tmp_path, "auto", path, *command) == remarks
    (block,) = (each for each in imported(profile, classes=rules)[0].profile().spaces[0].live_at_peak.by_category if each.bytes == 20_000)
    assert block.owner == "kv_cache"


def test_what_cannot_be_read_is_the_programs_message(tmp_path: pathlib.Path) -> None:
    made = {name: tmp_path / name for name in ("empty", "word", "utf16", "own.memtrace", "own.json", "packed.gz", "cut.gz", "rmm")}
    made["empty"].write_bytes(b"")
    made["word"].write_bytes(b"word")
    made["utf16"].write_bytes('{"segments": []}'.encode("utf-16"))
    made["packed.gz"].write_bytes(gzip.compress(b"word"))
    made["cut.gz"].write_bytes(gzip.compress(b"v 10000 3\n" * 99)[:12])
    made["rmm"].write_bytes(check_module("check_hostile").samples()["rmm"][0])
    with memprof.capture(trace=True) as capture:
        memprof.MemorySpace("dram").allocate(0x10, 10)
    capture.trace.save(made["own.memtrace"])
    capture.profile.save(made["own.json"])
    cases: list[tuple[pathlib.Path, str]] = [(path, "auto") for name, path in made.items() if name != "rmm"]
    cases += [(tmp_path / "absent", "auto"), (tmp_path, "auto"), (pathlib.Path("/dev/zero"), "auto")]
    cases += [(made["rmm"], form) for form in ("torch-snapshot", "heaptrack", "xplane", "tt-mlir", "ttnn-graph", "session")]
    for path, form in cases:
        with pytest.raises(memprof.Error) as raised:
            memprof.import_recording(path, form)  # type: ignore[arg-type]
        (line,) = said(program("import", form, path, "-o", tmp_path / "out.memtrace", expected=2))
        assert str(raised.value) == line
    for options, command in (({"per_core": True}, ("--per-core",)), ({"module": "a"}, ("--module", "a")), ({"frames": "own"}, ("--frames", "own"))):
        with pytest.raises(memprof.Error) as raised:
            memprof.import_recording(made["rmm"], **options)  # type: ignore[arg-type]
        (line,) = said(program("import", "auto", made["rmm"], *command, "-o", tmp_path / "out.memtrace", expected=2))
        assert str(raised.value) == line
    with pytest.raises(memprof.Error, match="unknown format 'pickle'; expected one of auto, torch-snapshot, rmm"):
        memprof.import_recording(made["rmm"], "pickle")  # type: ignore[arg-type]
    with pytest.raises(memprof.Error, match="unknown frames 'mine'; expected one of own, all"):
        memprof.import_recording(made["rmm"], frames="mine")  # type: ignore[arg-type]


def test_a_damaged_recording_is_an_error_or_what_was_before_the_damage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(check_module("check_hostile").samples()["session"][0][:-30])
    done = program("import", "session", path, "-o", tmp_path / "out.memtrace", expected=2)
    (line,) = said(done)
    what = line[: line.index("; everything before that")]
    with pytest.raises(memprof.Error) as raised:
        memprof.import_recording(path)
    assert str(raised.value) == f"{what}; everything before that is in import_recording(..., keep_damaged=True)"
    trace, remarks = imported(path, keep_damaged=True)
    assert remarks == [f"{what}; everything before that was read"]
    assert_equal(trace, tmp_path / "out.memtrace", tmp_path)
    assert not trace.profile().exact


def step(forward: int, mode: str = "normal") -> memprof.Capture:
    memory = memprof.MemorySpace("dram")
    with memprof.capture(trace=True) if mode == "normal" else memprof.no_dispatch(trace=True) as capture:
        memory.allocate(0x1000, 1000, "parameter")
        with memprof.track_operation("encoder"), memprof.track_operation("attn"):
            memory.allocate(0x8000, forward, "activation")
        with memprof.track_operation("head"):
            memory.allocate(0x20000, 300, "temporary")
        memory.deallocate(0x8000)
    return capture


def test_a_waterfall_is_the_programs(tmp_path: pathlib.Path) -> None:
    for name, capture in (("a", step(500)), ("b", step(700)), ("c", step(800))):
        capture.trace.save(tmp_path / f"{name}.memtrace")
        capture.profile.save(tmp_path / f"{name}.json")
    for suffix in ("memtrace", "json"):
        for names, parts in (("ab", {}), ("abc", {}), ("abc", {"encoder/**": "mine", "head": "lm head"})):
            files = [tmp_path / f"{name}.{suffix}" for name in names]
            found = memprof.waterfall(files, parts=parts)
            rules = [text for pattern, part in parts.items() for text in ("--map", f"{pattern}={part}")]
            done = program("waterfall", *files, *rules, "--json-out", tmp_path / "out.json", "--width", 100)
            assert json.loads(found.json()) == json.loads((tmp_path / "out.json").read_text())
            assert found.text(100) == done.stdout
            (tmp_path / "out.json").unlink()
    assert found.total() == [1800, 2000, 2100]
    assert {part.name: part.bytes for part in found.parts}["mine"] == [500, 700, 800]
    assert found.verdict() == json.loads(found.json())["verdict"] and found.caveats() == json.loads(found.json())["caveats"]
    found.write_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_a_waterfall_is_of_runs_in_memory_and_of_an_estimate(tmp_path: pathlib.Path) -> None:
    titled = memprof.waterfall({"old": step(500).trace, "new": step(700).trace})
    assert [column.title for column in titled.columns] == ["old", "new"] and titled.total() == [1800, 2000]
    assert [column.title for column in memprof.waterfall([step(500).trace, step(700).profile]).columns] == ["run 1", "run 2"]
    setup = memprof.TrainingSetup(batch_size=1, seq_len=64, optimizer="sgd")
    estimate = memprof.estimate_step("gpt2-124m", setup, trace=True)
    run = step(700)
    run.trace.save(tmp_path / "run.memtrace")
    found = memprof.waterfall([estimate, run.trace], space="dram")
    assert [column.title for column in found.columns] == ["estimate", "measured"] and found.total() == [estimate.peak, 2000]
    program("waterfall", "--config", "gpt2-124m", "--batch-size", 1, "--seq-len", 64, "--optimizer", "sgd", tmp_path / "run.memtrace",
            "--json-out", tmp_path / "out.json")  # fmt: skip
    known = json.loads((tmp_path / "out.json").read_text())
    assert json.loads(found.json())["parts"] == known["parts"]


def test_what_is_no_waterfall_is_refused(tmp_path: pathlib.Path) -> None:
    run = step(500).trace
    run.save(tmp_path / "run.memtrace")
    with pytest.raises(memprof.Error, match="expected 2 or 3 columns, but got 1"):
        memprof.waterfall([run])
    with pytest.raises(memprof.Error) as raised:
        memprof.waterfall([run, run], space="l1")
    (line,) = said(program("waterfall", tmp_path / "run.memtrace", tmp_path / "run.memtrace", "--space", "l1", expected=2), "waterfall")
    assert str(raised.value) == line
    with pytest.raises(ValueError, match="first column"):
        memprof.waterfall([run, memprof.estimate_step("gpt2-124m", trace=True)])
    with pytest.raises(memprof.Error, match="trace=True"):
        memprof.waterfall([memprof.estimate_step("gpt2-124m"), run])
