from __future__ import annotations

import gc

import memprof
import pytest

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


def test_events_are_rows(recorded: memprof.Capture) -> None:
    events = recorded.trace.table("events", run="first")
    blocks = [(row["kind"], row["space"], row["address"], row["bytes"]) for row in events.rows() if row["space"] == "dram"]
    assert blocks == [
        ("allocate", "dram", 0x1000, 1000),
        ("allocate", "dram", 0x2000, 500),
        ("deallocate", "dram", 0x2000, 500),
    ]
    assert set(events["run"]) == {"first"}
    assert len(events) == len(events.rows()) == len(events["bytes"])
    with pytest.raises(KeyError, match="colour"):
        events["colour"]


def test_operations_and_segments_are_rows(recorded: memprof.Capture) -> None:
    (operation,) = recorded.profile.table("operations").rows()
    assert (operation["path"], operation["allocated_bytes"], operation["freed_bytes"]) == ("forward", 500, 500)
    segments = recorded.profile.table("segments")
    assert list(zip(segments["name"], segments["change_bytes"])) == [
        ("MODEL_CREATION", 1000), ("FORWARD_PASS", 0), ("END_TRACE", 0)]


def test_the_timeline_has_the_peak(recorded: memprof.Capture) -> None:
    timeline = recorded.profile.table("timeline")
    assert max(timeline["peak_bytes"]) == 1500 and set(timeline["space"]) == {"dram"}


def test_facts_are_tables(recorded: memprof.Capture) -> None:
    table = recorded.profile.table("process_memory", run="first")
    assert [{"run": "first", **row} for row in recorded.profile.facts["process_memory"]] == table.rows()


def test_an_unknown_table_is_refused(recorded: memprof.Capture) -> None:
    with pytest.raises(memprof.Error, match="operations"):
        recorded.profile.table("ops")
    with pytest.raises(memprof.Error, match="of a trace"):
        recorded.profile.table("events")


def test_a_table_without_rows_is_empty() -> None:
    with memprof.capture() as capture:
        pass
    table = capture.profile.table("operations")
    assert len(table) == 0 and table.rows() == []
    assert pyarrow.table(table).num_rows == 0


@pytest.mark.parametrize("name", ["runs", "segments", "operations", "blocks", "events"])
def test_arrow_and_pandas_have_the_same_cells(recorded: memprof.Capture, name: str) -> None:
    table = recorded.trace.table(name)
    assert pyarrow.table(table).to_pylist() == table.rows()
    assert table.to_pandas().to_dict("records") == table.rows()
    assert pandas.DataFrame.from_arrow(table).to_dict("records") == table.rows()


def test_truth_values_are_packed_in_bits_for_arrow() -> None:
    memory = [memprof.MemorySpace(f"pool {number}") for number in range(19)]
    with memprof.capture() as capture:
        for number, space in enumerate(memory):
            space.allocate(0x1000 + number, 1)
    table = capture.profile.table("runs")
    truths = [name for name in table.columns if isinstance(table[name][0], bool)]
    assert len(table) == 19 and truths
    assert pyarrow.table(table).select(truths).to_pylist() == [{name: row[name] for name in truths} for row in table.rows()]


def test_a_column_outlives_the_stream_and_the_table(recorded: memprof.Capture) -> None:
    column = pyarrow.table(recorded.trace.table("blocks"))["bytes"]
    gc.collect()
    assert sorted(column.to_pylist()) == [500, 1000]


def test_a_stream_that_nobody_reads_is_released(recorded: memprof.Capture) -> None:
    stream = recorded.profile.table("segments").__arrow_c_stream__()
    del stream
    gc.collect()


def test_a_stream_may_be_read_again_from_the_table(recorded: memprof.Capture) -> None:
    table = recorded.profile.table("segments")
    assert pyarrow.table(table) == pyarrow.table(table)
