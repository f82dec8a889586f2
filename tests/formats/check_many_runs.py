#!/usr/bin/env python3
"""check_many_runs.py MANY_RUNS QUERY: the query finds what examples/many_runs has planted in 1,000 runs, and nothing else.

Exit status 4: skipped, with the reason.
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 2**20
NOISE = 200 * MIB  # by how much the example varies peaks


def main():
    program, query = sys.argv[1:]
    try:
        import duckdb
    except ImportError:
        print("skipped: duckdb of PyPI")
        sys.exit(4)
    query = pathlib.Path(query).read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([program, "runs"], check=True)
        processes = [dict(next(csv.DictReader(open(path, newline="")))) for path in pathlib.Path("runs").glob("*/*/runs.csv")]
        assert len({row["run"] for row in processes}) == 1000 and {row["rank"] for row in processes} == {"0", "1", "2", "3"}
        found = duckdb.sql(query).fetchall()
        commit, *ranks = found
        # The 24th of 40 commits: run 575 is its first.
        label = lambda run, rank: next(csv.DictReader(open(f"runs/run_{run:04}/rank_{rank}/labels.csv", newline="")))["value"]
        assert commit[:6] == ("commit", label(575, 0), None, None, None, "cuda:0"), found
        assert abs(commit[6] - 2500 * MIB) < NOISE, found
        wanted = {("rank", label(617, 2), "run_0617", 2, "node09", "cuda:0"), ("rank", label(38, 0), "run_0038", 0, "node06", "cuda:0")}
        assert {row[:6] for row in ranks} == wanted and len(ranks) == 2, found
        assert all(abs(row[6] - 6000 * MIB) < NOISE for row in ranks), found
        os.chdir("/")


main()
