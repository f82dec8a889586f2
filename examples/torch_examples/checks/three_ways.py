#!/usr/bin/env python3
"""Runs a program of examples/torch_examples plain, under capture and without dispatch, and compares the three.

    three_ways.py [--update] [--workers] [--known REGEX] [--libtorch VERSION] --readme README.md --scratch FOLDER PROGRAM

All end with status 0. The capture changes nothing that is printed; neither does the simulation if it read no unknown values, or in
lines that match --known. The simulation has the segments of the capture with their peaks, or the profile lists what it estimated. The
program's row in the table of the README is what was measured, unless libtorch or the processor is another than the README's;
--update writes it. With --workers the peaks are those of a run whose loop loads its own batches, and more runs, with workers, print
the same and end as well.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

# What oneDNN copies depends on the processor and on the number of threads.
FIXED = {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def run(program, folder, *arguments, **variables):
    """What the program printed. Ends this one if the program failed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMPROF")}
    ended = subprocess.run([program, *arguments], cwd=folder, env=environment | FIXED | variables, capture_output=True, text=True,
                           check=False)
    if ended.returncode != 0:
        sys.exit(f"{program} {' '.join(arguments)} ended with status {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def profile_of(program, folder, way, *arguments, **variables):
    """What the program printed, and the profile that it left."""
    profiles = folder / way
    shutil.rmtree(profiles, ignore_errors=True)
    printed = run(program, folder, *arguments, MEMPROF_OUTPUT_DIR=str(profiles), **variables)
    left = list(profiles.glob("memory_profile_*.json"))
    if len(left) != 1:
        sys.exit(f"{way}: {len(left)} profiles in {profiles}, which should be one")
    return printed, json.loads(left[0].read_text())


def cpu(profile):
    return next(space for space in profile["spaces"] if space["name"] == "cpu")


def segments_of(profile):
    return [(segment["segment"], segment["cumulative_current"], segment["segment_peak"]) for segment in cpu(profile)["segments"]]


def listed(rows):
    counts = {}
    for row in rows:
        counts[row["name"]] = counts.get(row["name"], 0) + row["count"]
    return ", ".join(f"`{name}` ×{count}" for name, count in sorted(counts.items())) or "none"


def lines_like(pattern, text):
    return [line for line in text.splitlines() if re.search(pattern, line)]


def compare(program, folder, has_workers, known):
    """The faults, and the cells of the README's row."""
    faults = []
    alone = ("--workers", "0") if has_workers else ()
    plain = run(program, folder)
    printed, real = profile_of(program, folder, "capture", *alone, MEMPROF="1")
    simulated_print, simulated = profile_of(program, folder, "no_dispatch", "--no-dispatch", *alone)
    if printed != plain:
        faults.append(f"the capture changes what is printed:\n{plain}\nbecame\n{printed}")
    if has_workers:
        beside_workers, _ = profile_of(program, folder, "capture_with_workers", MEMPROF="1")
        if beside_workers != plain:
            faults.append(f"the capture changes what is printed, with workers:\n{plain}\nbecame\n{beside_workers}")
        profile_of(program, folder, "no_dispatch_with_workers", "--no-dispatch")
    if (real["mode"], simulated["mode"]) != ("normal", "no_dispatch"):
        faults.append(f"the modes of the profiles are {real['mode']} and {simulated['mode']}")

    reads = simulated["facts"].get("unknown_reads", [])
    same = known if reads else ""  # the empty pattern matches every line
    if same is not None and (not lines_like(same, plain) or lines_like(same, plain) != lines_like(same, simulated_print)):
        faults.append(f"the simulation changes what is printed:\n{plain}\nbecame\n{simulated_print}")
    estimates = simulated["facts"].get("approximations", []) + simulated["facts"].get("assumed_sizes", [])
    differences = [f"{ours} for real, {theirs} simulated" for ours, theirs in zip(segments_of(real), segments_of(simulated))
                   if ours != theirs]
    if len(segments_of(real)) != len(segments_of(simulated)):
        differences.append(f"{len(segments_of(real))} segments for real, {len(segments_of(simulated))} simulated")
    if differences:
        print("segments that differ (name, live bytes after it, peak):", *differences, sep="\n  ")
        if not estimates:
            faults.append("the simulation takes other memory than the run, and lists no estimate")
    row = (f"{cpu(real)['cumulative_peak']:,}", f"{cpu(simulated)['cumulative_peak']:,}",
           listed(reads), listed(estimates))
    return faults, row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--known")
    parser.add_argument("--libtorch", default="")
    parser.add_argument("--readme", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("program", type=pathlib.Path)
    given = parser.parse_args()
    given.scratch.mkdir(parents=True, exist_ok=True)
    faults, cells = compare(given.program.resolve(), given.scratch.resolve(), given.workers, given.known)

    name = given.program.name
    text = given.readme.read_text()
    lines = text.splitlines()
    rows = [index for index, line in enumerate(lines) if line.startswith(f"| [{name}]({name}.cpp) |")]
    if len(rows) != 1:
        sys.exit(f"{given.readme} has {len(rows)} rows of {name}, which should be one")
    what = lines[rows[0]].split("|")[2]
    measured = f"| [{name}]({name}.cpp) |{what}| " + " | ".join(cells) + " |"
    print(measured)
    if given.update:
        lines[rows[0]] = measured
        given.readme.write_text("\n".join(lines) + "\n")
    elif f"libtorch {given.libtorch} " not in text or platform.machine() != "x86_64":
        print("skipped: the table of the README, which is of another libtorch or processor")
    elif lines[rows[0]] != measured:
        faults.append(f"{given.readme} shows something else (--update writes it):\n{lines[rows[0]]}\n{measured}")
    for fault in faults:
        print(f"FAULT: {fault}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
