#!/usr/bin/env python3
"""outliers.py duckdb|spark FOLDER: runs outliers.sql over the tables that many_runs has written to FOLDER.

Prints a row for each commit and rank that stands out; on stderr, how long the engine took to start and to answer.
"""
import pathlib
import sys
import time


def with_duckdb(tables):
    import duckdb

    for name, files in tables.items():
        duckdb.sql(f"CREATE VIEW {name} AS SELECT * FROM '{files}'")
    return lambda query: duckdb.sql(query).fetchall()


def with_spark(tables):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for name, files in tables.items():
        session.read.parquet(files).createOrReplaceTempView(name)
    return lambda query: [tuple(row) for row in session.sql(query).collect()]


def main():
    engines = {"duckdb": with_duckdb, "spark": with_spark}
    if len(sys.argv) != 3 or sys.argv[1] not in engines:
        sys.exit("usage: outliers.py duckdb|spark FOLDER")
    tables = {name: f"{sys.argv[2]}/*/{name}.parquet" for name in ("runs", "labels")}
    query = pathlib.Path(__file__).with_name("outliers.sql").read_text()
    begin = time.monotonic()
    ask = engines[sys.argv[1]](tables)
    ready = time.monotonic()
    rows = ask(query)
    end = time.monotonic()
    for row in rows:
        print(*row, sep="\t")
    print(f"{sys.argv[1]}: {ready - begin:.1f} s to start, {end - ready:.1f} s for {len(rows)} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
