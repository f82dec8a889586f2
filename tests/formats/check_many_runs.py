#!/usr/bin/env python3
"""check_many_runs.py MANY_RUNS OUTLIERS: the query finds what examples/many_runs has planted in its runs, and nothing else, in DuckDB and,
where Python has pyspark and there is a Java, in Spark.

Exit status 4: skipped, with the reason.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MIB = 2**20
NOISE = 200 * MIB  # by how much the example varies peaks


def main():
    program, outliers = sys.argv[1:]
    try:
        import duckdb
    except ImportError:
        print("skipped: duckdb of PyPI")
        sys.exit(4)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([program, "runs", "2500"], check=True)  # the last of three files has 500
        runs, labels = (f"'{folder}/runs/*/{name}.parquet'" for name in ("runs", "labels"))
        assert duckdb.sql(f"SELECT count(*), count(DISTINCT run), min(rank), max(rank) FROM {runs}").fetchall() == [(10_000, 2500, 0, 3)]
        label = lambda run, rank: duckdb.sql(f"SELECT value FROM {labels} WHERE run = '{run}' AND rank = {rank}").fetchall()[0][0]

        def answer(engine):
            done = subprocess.run([sys.executable, outliers, engine, "runs"], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return [line.split("\t") for line in done.stdout.splitlines()]

        found = answer("duckdb")
        commit, *ranks = found
        # The 24th of 100 commits: run 575 is its first.
        assert commit[:6] == ["commit", label("run_000575", 0), "None", "None", "None", "cuda:0"], found
        assert abs(int(commit[6]) - 2500 * MIB) < NOISE, found
        wanted = {("rank", label("run_000617", 2), "run_000617", "2", "node09", "cuda:0"),
                  ("rank", label("run_000038", 0), "run_000038", "0", "node06", "cuda:0")}
        assert {tuple(row[:6]) for row in ranks} == wanted and len(ranks) == 2, found
        assert all(abs(int(row[6]) - 6000 * MIB) < NOISE for row in ranks), found
        try:
            import pyspark  # noqa: F401
        except ImportError:
            print("not tried: pyspark of PyPI")
        else:
            if shutil.which("java"):
                assert answer("spark") == found
        os.chdir("/")


main()
