#!/usr/bin/env python3
"""check_facts.py MEMPROF: every row of a table of facts survives every way through the program.

A record of a trace holds some 64 KiB of rows, so the tables have sizes around multiples of that, with rows of several lengths. They come in by each importer whose
table can be long, and are read back from the trace, the packed trace, the unpacked one, the profile and the imported profile.
"""
import csv
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

PART = 64 * 1024


def run(*command, expected=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
    assert done.returncode == expected, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def torch_snapshot(rows, suffix):
    """`suffix` lengthens each row."""
    segments = [{"device": 0, "address": 0x7F0000000000 + (number << 21), "total_size": 1 << 21, "allocated_size": 512 + number, "active_size": 512 + number,
                 "requested_size": 512 + number, "stream": 0, "segment_type": "large" + suffix,
                 "blocks": [{"size": 512 + number, "requested_size": 512 + number, "state": "active_allocated", "frames": []}]} for number in range(rows)]
    return {"segments": segments, "device_traces": [[]], "allocator_settings": {}}


def pickled(rows, suffix, folder):
    path = folder / "made.pickle"
    path.write_bytes(pickle.dumps(torch_snapshot(rows, suffix)))
    return path, "torch_segments", [512 + number for number in range(rows)], "allocated_size"


def in_json(rows, suffix, folder):
    path = folder / "made.json"
    path.write_text(json.dumps(torch_snapshot(rows, suffix)))
    return path, "torch_segments", [512 + number for number in range(rows)], "allocated_size"


def column(text, name):
    return [int(row[name]) for row in csv.DictReader(io.StringIO(text))]


def check(memprof, source, table, expected, name, folder):
    trace, packed, unpacked, profile, direct = (folder / each for each in ("in.memtrace", "packed.memtrace", "unpacked.memtrace", "profile.json", "direct.json"))
    run(memprof, "import", "auto", source, "-o", trace)
    run(memprof, "import", "auto", source, "-o", direct)
    run(memprof, "profile", trace, "-o", profile)
    ways = [trace, profile, direct]
    packing = subprocess.run([memprof, "trace", trace, "--pack", "-o", packed], capture_output=True, text=True)
    if packing.returncode == 0:
        run(memprof, "trace", packed, "--unpack", "-o", unpacked)
        ways += [packed, unpacked]
    else:
        assert "zstd" in packing.stderr, packing.stderr
    for way in ways:
        found = column(run(memprof, "show", way, "--facts", table, "--csv").stdout, name)
        assert found == expected, f"{source.name}: {len(expected)} rows went in, {len(found)} came out of {way.name}"
    for way in (profile, direct):
        assert json.loads(way.read_text())["exact"], way.name


def main():
    memprof = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for made in (pickled, in_json):
            for suffix in ("", "x" * 500):
                # The number of rows that fill a record, as the program encodes them: found by the length of two traces.
                sizes = []
                for rows in (100, 1100):
                    source, *_ = made(rows, suffix, folder)
                    run(memprof, "import", "auto", source, "-o", folder / "size.memtrace")
                    sizes.append((folder / "size.memtrace").stat().st_size)
                per_row = (sizes[1] - sizes[0]) / 1000  # with the row's events: at most twice the row itself
                around = {1}
                for parts in (1, 2):
                    middle = int(parts * PART / per_row)
                    around |= {middle - 1, middle + 1, int(middle * 1.4)}
                for rows in sorted(around):
                    source, table, expected, column_name = made(rows, suffix, folder)
                    check(memprof, source, table, expected, column_name, folder)
        print("all rows")


main()
