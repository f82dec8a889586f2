from __future__ import annotations

import json
import pathlib

import memprof
import pytest

FORMATS = ["chrome", "collapsed", "dhat", "massif", "perfetto", "pprof", "session", "speedscope", "torch-snapshot"]


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


def test_collapsed_stacks_add_up_to_the_peak(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.profile.export("collapsed", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("dram")) == 1500


def test_the_session_is_json_with_the_operations_of_the_run(recorded: memprof.Capture, tmp_path: pathlib.Path) -> None:
    recorded.trace.export("session", tmp_path / "out.json")
    session = json.loads((tmp_path / "out.json").read_text())
    assert session["operation_summary"]["forward"]["invocation_count"] == 1


@pytest.mark.parametrize("format", ["dhat", "torch-snapshot"])
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
