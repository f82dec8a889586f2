#!/usr/bin/env python3
"""check_facts.py MEMPROF: every row of a table of facts survives every way through the program.

A record of a trace holds some 64 KiB of rows, and a chunk some 256 KiB of records, so the tables have as many rows as fill one, two and four
records, and one more or less. They come in by each importer whose table can be long and in a trace written by another program, and are read
back from the trace, the packed trace, the unpacked one, the profile and the imported profile; and from the exported file that has them.
"""
import csv
import functools
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

import check_trace_format
import check_tt_mlir
import check_xplane

PART = 64 * 1024


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


# Each of these makes a file with that many rows in a table, and returns the file, the table, and a column with its values.


def torch_snapshot(rows, suffix):
    """`suffix` lengthens each row."""
    segments = [{"device": 0, "address": 0x7F0000000000 + (number << 21), "total_size": 1 << 21, "allocated_size": 512 + number, "active_size": 512 + number,
                 "requested_size": 512 + number, "stream": 0, "segment_type": "large" + suffix,
                 "blocks": [{"size": 512 + number, "requested_size": 512 + number, "state": "active_allocated", "frames": []}]} for number in range(rows)]
    return {"segments": segments, "device_traces": [[]], "allocator_settings": {}}


def torch_pickle(folder, rows, suffix=""):
    path = folder / "made.pickle"
    path.write_bytes(pickle.dumps(torch_snapshot(rows, suffix)))
    return path, "torch_segments", "allocated_size", [512 + number for number in range(rows)]


def torch_json(folder, rows, suffix=""):
    path = folder / "made.json"
    path.write_text(json.dumps(torch_snapshot(rows, suffix)))
    return path, "torch_segments", "allocated_size", [512 + number for number in range(rows)]


def xla_programs(folder, rows):
    path = folder / "made.xplane.pb"
    programs = []
    for number in range(rows):
        program = check_xplane.Program(f"jit_step_of_a_long_name_{number:060}")
        value = program.value(1024 + number)
        program.allocation(value)
        program.live(value)
        programs.append((number + 1, f"jit_step_of_a_long_name_{number:060}", program.encode()))
    path.write_bytes(check_xplane.space_of(check_xplane.metadata_plane(*programs)))
    return path, "xla_programs", "peak", [1024 + number for number in range(rows)]


def tt_inputs(folder, rows):
    path = folder / "made.log"
    log = check_tt_mlir.Log(1)
    log.say("Always", "INFO", "MLIR Module shlo_compiler:")
    arguments = ", ".join(f"%arg{number}: tensor<{number + 1}xi8>" for number in range(rows))
    log.lines += [f"func.func @main({arguments}) -> (tensor<1xf32>) {{", "------ END OF MLIR MODULE ------"]
    log.program("main", 5)
    path.write_text("\n".join(log.lines))
    return path, "tt_inputs", "bytes", [number + 1 for number in range(rows)]


def operations(folder, rows):
    """A trace that another program has written, in records of 50 rows."""
    path = folder / "made.memtrace"
    columns = ("name", "input_shapes", "count", "cpu_time_ns", "device_time_ns", "cpu_memory", "device_memory")
    chunk = check_trace_format.Chunk().add(check_trace_format.capture({1: "1.0.0"}))
    for first in range(0, rows, 50):
        part = [(f"aten::op{number}", "[]", number, 0, 0, 0, 0) for number in range(first, min(first + 50, rows))]
        chunk.add(check_trace_format.facts("pytorch_operations", columns, part, first))
    chunk.add(check_trace_format.ring(1)).at(1).event(1, address=64, size=8, space=0).add(check_trace_format.ring(0)).event(18, space=255)
    path.write_bytes(check_trace_format.trace_file([chunk]))
    return path, "pytorch_operations", "count", list(range(rows))


def counts_around_records(memprof, make, folder, most):
    """Numbers of rows around those that fill records, from the encoded length of each row."""
    source, table, *_ = make(folder, most)
    profile = folder / "sizes.json"
    run(memprof, *(("profile", source) if source.suffix == ".memtrace" else ("import", "auto", source)), "-o", profile)
    counts, filled, records = {1}, 0, 0
    for number, row in enumerate(json.loads(profile.read_text())["facts"][table], 1):
        filled += sum(len(check_trace_format.fact(value)) for value in row.values())
        if filled < PART:
            continue
        filled, records = 0, records + 1
        if records in (1, 2, 4):
            counts |= {number - 1, number, number + 1}
    assert records > 0, f"{most} rows of {table} fill no record"
    return sorted(count for count in counts if count <= most)


def column(text, name):
    return [int(row[name]) for row in csv.DictReader(io.StringIO(text))]


def check(memprof, made, folder):
    source, table, name, expected = made
    trace, packed, unpacked, profile, direct = (folder / each for each in ("in.memtrace", "packed.memtrace", "unpacked.memtrace", "profile.json", "direct.json"))
    ways = [profile]
    if source.suffix == ".memtrace":
        trace = source
    else:
        run(memprof, "import", "auto", source, "-o", trace)
        run(memprof, "import", "auto", source, "-o", direct)
        ways += [trace, direct]
    run(memprof, "profile", trace, "-o", profile)
    packing = subprocess.run([memprof, "trace", trace, "--pack", "-o", packed], capture_output=True, text=True)
    if packing.returncode == 0:
        run(memprof, "trace", packed, "--unpack", "-o", unpacked)
        ways += [packed, unpacked]
    else:
        assert "zstd" in packing.stderr, packing.stderr
    for way in ways:
        found = column(run(memprof, "show", way, "--facts", table, "--csv").stdout, name)
        assert found == expected, f"{source.name}: {len(expected)} rows went in, {len(found)} came out of {way.name}"
    found = json.loads(profile.read_text())
    assert found["anomalies"]["missing_fact_rows"] == 0, source.name
    if table == "torch_segments":
        assert found["exact"] and json.loads(direct.read_text())["exact"], source.name
    if table == "pytorch_operations":
        run(memprof, "export", trace, "--format", "session", "-o", folder / "session.json")
        exported = [row["count"] for row in json.loads((folder / "session.json").read_text())["pytorch_operations"]]
        assert exported == expected, f"{len(expected)} rows went in, {len(exported)} came out of the session"


def main():
    memprof = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for make, most in ((torch_pickle, 4000), (torch_json, 4000), (functools.partial(torch_json, suffix="x" * 500), 600), (xla_programs, 1200),
                           (tt_inputs, 4096), (operations, 12000)):
            if make is xla_programs and "protozero" in subprocess.run([memprof, "import", "xplane", "/dev/null"], capture_output=True, text=True).stderr:
                print("skipped: profiles of XLA, which this memprof cannot read")
                continue
            for rows in counts_around_records(memprof, make, folder, most):
                check(memprof, make(folder, rows), folder)
        print("all rows")


main()
