#!/usr/bin/env python3
"""Predicts what training runs take of a GPU, beside what others measured. Needs memprof's Python package, torch and timm.

accuracy.py predict MEASURED.csv PREDICTED.csv   adds a row for each run that PREDICTED.csv lacks
accuracy.py fit MEASURED.csv PREDICTED.csv       simulates the runs near the device's limit again, with that limit: PREDICTED.csv.limited
accuracy.py report MEASURED.csv PREDICTED.csv    prints a page on how near they are
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib.metadata
import math
import os
import pathlib
import sys

import measured
import report
import timm_models


_BOOLEANS = {"True": True, "False": False}
COLUMNS = [field.name for field in dataclasses.fields(timm_models.Prediction)]


def _prediction(row: dict[str, str]) -> timm_models.Prediction:
    values: dict[str, object] = {}
    for field in dataclasses.fields(timm_models.Prediction):
        text = row[field.name]
        if field.type == "bool":
            values[field.name] = _BOOLEANS.get(text)
            if values[field.name] is None:
                raise ValueError(f"{field.name} is {text}; expected True or False")
        elif field.type == "float":
            values[field.name] = number = float(text)
            if not math.isfinite(number):
                raise ValueError(f"{field.name} is {text}; expected finite numbers")
        else:
            values[field.name] = int(text) if field.type == "int" else text
    return timm_models.Prediction(**values)  # type: ignore[arg-type]


def read_predictions(path: pathlib.Path) -> list[timm_models.Prediction]:
    return measured.read_table(path, COLUMNS, _prediction)


def predict(options: argparse.Namespace) -> None:
    runs = measured.read_timm(options.measured)
    path: pathlib.Path = options.predicted
    has_rows = path.exists() and path.stat().st_size > 0
    if has_rows and not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"the last line of {path} is cut off; remove it")
    done = {(each.model, each.batch) for each in read_predictions(path)} if has_rows else set()
    wanted: dict[str, list[int]] = {}
    for run in runs:
        if not options.batches or run.batch in options.batches:
            wanted.setdefault(run.model, []).append(run.batch)
    order = sorted(wanted, key=measured.order_of)[: options.models]
    left = {model: [batch for batch in wanted[model] if (model, batch) not in done] for model in order}
    left = {model: batches for model, batches in left.items() if batches}
    with path.open("a", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            rows.writeheader()
            file.flush()
        for made in timm_models.predict(left, options.jobs, options.seconds):
            rows.writerow(dataclasses.asdict(made))
            file.flush()


def _limited(predicted: pathlib.Path) -> pathlib.Path:
    return predicted.with_name(predicted.name + ".limited")


def fit(options: argparse.Namespace) -> None:
    predictions = read_predictions(options.predicted)
    besides = report.besides_of(report.judge(measured.read_timm(options.measured), predictions))
    rooms: dict[float, dict[str, list[int]]] = {}
    for each in predictions:
        if not each.fault and report.is_between(each, besides):
            rooms.setdefault(report.CAPACITY - besides.of(each), {}).setdefault(each.model, []).append(each.batch)
    with _limited(options.predicted).open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS)
        rows.writeheader()
        for room, wanted in rooms.items():
            for made in timm_models.predict(wanted, options.jobs, options.seconds, room):
                rows.writerow(dataclasses.asdict(made))


def print_report(options: argparse.Namespace) -> None:
    predictions = read_predictions(options.predicted)
    limited = _limited(options.predicted)
    fits = {(each.model, each.batch): each.fits for each in read_predictions(limited) if not each.fault} if limited.exists() else {}
    judged = report.judge(measured.read_timm(options.measured), predictions)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("memprof", "torch", "timm"))
    preface = (pathlib.Path(__file__).parent / "preface.md.in").read_text(encoding="utf-8")
    sys.stdout.write(report.document(judged, predictions, fits, versions, preface))


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("predict", predict), ("fit", fit), ("report", print_report)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("measured", type=pathlib.Path, metavar="MEASURED.csv")
        command.add_argument("predicted", type=pathlib.Path, metavar="PREDICTED.csv")
        if run is predict:
            command.add_argument("--models", type=_positive, metavar="N", help="so many of them, always the same (default: all)")
            command.add_argument("--batches", type=_positive, nargs="*", metavar="N", help="only these (default: all)")
        if run is not print_report:
            command.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N")
            command.add_argument("--seconds", type=_positive, default=300, metavar="S", help="of a prediction, at most (default: 300)")
    options = parser.parse_args()
    try:
        options.run(options)
    except (OSError, ValueError) as fault:
        print(f"accuracy.py: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
