from __future__ import annotations

import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys

import memprof
import pytest

FORMATS = ["chrome", "collapsed", "dhat", "heaptrack", "massif", "perfetto", "pprof", "profile", "session", "speedscope", "torch-snapshot", "trace", "packed-trace"]
TABLES = ["csv", "jsonl", "parquet"]


def test_a_saved_trace_reads_back(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.memtrace"
    recorded.trace.save(path)
    read = memprof.Trace(path)
    assert read.profile() == recorded.trace.profile() == memprof.read(path)
    assert read.profile() == read.profile()  # each reading begins at the beginning
    assert read.table("events").rows() == recorded.trace.table("events").rows()


def test_a_trace_file_is_written_as_it_happens(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.memtrace"
    with memprof.capture(trace_file=path):
        memprof.MemorySpace("dram").allocate(0x1000, 700)
        memprof.snapshot("FIRST")
        assert path.exists()
    assert memprof.Trace(path).profile().space("dram").cumulative_peak == 700


def test_a_file_that_is_no_trace_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "text"
    path.write_text("no trace")
    with pytest.raises(memprof.Error, match="not a trace"):
        memprof.Trace(path)


def test_lifetimes_are_for_the_asking(recorded: memprof.Capture) -> None:
    kept = recorded.trace.profile().space("dram").facets.lifetimes
    asked = recorded.trace.profile(lifetimes=True).space("dram").facets.lifetimes
    assert kept != asked


@pytest.mark.parametrize("format", FORMATS)
def test_a_trace_exports_to_every_format(recorded: memprof.Capture, tmp_path: pathlib.Path, format: str) -> None:
    assert isinstance(recorded.trace.export(format, tmp_path / "out"), list)
    assert (tmp_path / "out").stat().st_size > 0


@pytest.fixture(scope="module")
def with_stacks(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A program's heap with the stack of every block."""
    path = tmp_path_factory.mktemp("stacks") / "run.memtrace"
    call = [sys.executable, "-m", "memprof", "run", "--stacks=all", "--trace", str(path), "--", sys.executable, "-S", "-c", "kept = bytearray(1 << 22)"]
    done = subprocess.run(call, capture_output=True, text=True)
    if not path.exists():
        pytest.skip(f"memprof run cannot record here: {done.stderr}")
    return path


def exported(path: pathlib.Path, format: str, output: pathlib.Path) -> None:
    """What the command line writes."""
    subprocess.run([sys.executable, "-m", "memprof", "export", str(path), "--format", format, "-o", str(output)], check=True, capture_output=True)


def content(path: pathlib.Path) -> bytes:
    written = path.read_bytes()
    return gzip.decompress(written) if written.startswith(b"\x1f\x8b") else written


@pytest.mark.parametrize("format", [*FORMATS, *TABLES])
def test_an_export_is_that_of_the_command_line(recorded: memprof.Capture, with_stacks: pathlib.Path, tmp_path: pathlib.Path, format: str) -> None:
    recorded.trace.save(tmp_path / "run.memtrace")
    for trace in (tmp_path / "run.memtrace", with_stacks):
        mine, other = tmp_path / "mine", tmp_path / "other"
        memprof.Trace(trace).export(format, mine, run="run")
        exported(trace, format, other)
        for name in ("runs", "labels", "segments", "operations", "blocks", "events") if format in TABLES else ("",):
            suffix = f"{name}.{format}" if name else ""
            assert content(mine / suffix if suffix else mine) == content(other / suffix if suffix else other), suffix
        for made in (mine, other):
            shutil.rmtree(made) if made.is_dir() else made.unlink()


def test_a_trace_with_stacks_names_the_calls(with_stacks: pathlib.Path, tmp_path: pathlib.Path) -> None:
    trace = memprof.Trace(with_stacks)
    callers = trace.peak_callers(largest_blocks=1)
    assert callers is not None and callers.largest[0].bytes >= 1 << 22
    name = callers.largest[0].caller.split(" (")[0].split("+")[0].split(" in ")[-1]
    assert name in callers.text(rows=100)
    for format in ("collapsed", "speedscope", "heaptrack", "pprof"):
        trace.export(format, tmp_path / format)
        assert name.encode() in content(tmp_path / format), format


def test_a_packed_trace_reads_back(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.export("packed-trace", tmp_path / "packed.memtrace")
    packed = memprof.Trace(tmp_path / "packed.memtrace")
    assert packed.profile() == recorded.trace.profile() == memprof.read(tmp_path / "packed.memtrace")
    packed.export("trace", tmp_path / "whole.memtrace")
    assert memprof.Trace(tmp_path / "whole.memtrace").table("events").rows() == recorded.trace.table("events").rows()
    with pytest.raises(memprof.Error, match="the trace itself"):
        packed.export("trace", tmp_path / "packed.memtrace")
    assert memprof.Trace(tmp_path / "packed.memtrace").profile() == recorded.trace.profile()


def test_labels_and_the_counted_bytes_are_for_the_asking(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.export("csv", tmp_path / "tables", run="first", labels={"commit": "3f2c1e"})
    assert '"first",-1,"commit","3f2c1e"' in (tmp_path / "tables" / "labels.csv").read_text()
    for of, total in (("peak", 1500), ("end", 1000), ("all", 1500)):
        recorded.trace.export("collapsed", tmp_path / "out", of=of)
        assert sum(int(line.rsplit(" ", 1)[1]) for line in (tmp_path / "out").read_text().splitlines() if line.startswith("dram")) == total
    with pytest.raises(memprof.Error, match="peak, end, all"):
        recorded.trace.export("collapsed", tmp_path / "out", of="most")


def test_collapsed_stacks_add_up_to_the_peak(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.profile.export("collapsed", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("dram")) == 1500


def test_the_session_is_json_with_the_operations_of_the_run(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.export("session", tmp_path / "out.json")
    session = json.loads((tmp_path / "out.json").read_text())
    assert session["operation_summary"]["forward"]["invocation_count"] == 1


@pytest.mark.parametrize("format", ["dhat", "heaptrack", "torch-snapshot", "trace", "packed-trace"])
def test_what_needs_events_is_refused_to_a_profile(recorded: memprof.Capture, tmp_path: pathlib.Path, format: str) -> None:
    with pytest.raises(memprof.Error, match="trace=True"):
        recorded.profile.export(format, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_format_is_refused_by_name(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    with pytest.raises(memprof.Error, match="speedscope"):
        recorded.profile.export("flame", tmp_path / "out")


def test_pages_are_written(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.profile.write_html(tmp_path / "profile.html")
    recorded.trace.write_html(tmp_path / "trace.html", title="two phases")
    for name in ("profile.html", "trace.html"):
        page = (tmp_path / name).read_text()
        assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")


def test_the_allocators_model_says_whether_it_fits() -> None:
    gpu = memprof.MemorySpace("cuda:0")
    with memprof.capture(trace=True) as capture:
        gpu.allocate(0x10000000, 100 << 20)
        with memprof.track_operation("forward"):
            gpu.allocate(0x20000000, 100 << 20)
    # A request of 10 MiB or more gets a segment of its own size.
    enough = capture.trace.fit(200 << 20)
    assert enough and enough.fits and (enough.reserved, enough.allocated) == (200 << 20, 200 << 20)
    assert enough.fails_at == "" and enough.requested == 0
    short = capture.trace.fit((200 << 20) - 1)
    assert not short and (short.fails_at, short.requested) == ("forward", 100 << 20)
    assert short.reserved == 200 << 20
    assert "forward" in str(short)
    with pytest.raises(memprof.Error, match="max_split"):
        capture.trace.fit(0, alloc_conf="max_splits:1")


def test_a_trace_says_where_it_is_and_how_large(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    def events_of(blocks: int) -> int:
        memory = memprof.MemorySpace("dram")
        with memprof.capture(trace=True) as capture:
            for block in range(blocks):
                memory.allocate(0x1000 + 64 * block, 64)
        found = re.fullmatch(r"<memprof\.Trace in memory, (\d+) events>", repr(capture.trace))
        assert found is not None
        return int(found[1])

    assert events_of(105) - events_of(5) == 100
    path = tmp_path / "run.memtrace"
    recorded.trace.save(path)
    trace = memprof.Trace(path)
    assert repr(trace) == f"<memprof.Trace '{path}', {path.stat().st_size} bytes>"
    path.unlink()
    assert repr(trace) == f"<memprof.Trace '{path}', gone>"
