#!/usr/bin/env python3
"""Runs programs of public Python packages for real and simulated, and compares their peaks. Needs memprof's Python package and torch.

python_models.py RESULTS.json PAGE.md [--only NAME...] [--traces FOLDER]

Each run has a process of its own, forked after the program's imports. Without --only, RESULTS.json begins anew; with it, only the named
programs are replaced in it. The page names the programs that have no result.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import sys
import tempfile
import time
import traceback

import models_page
from models_page import Measured, ModelResult
from model_programs import PROGRAMS, Run

MODES = ("real", "simulated", "claimed")
DEVICE = "gpu-80gb"


def _resident_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _fault(fault: BaseException) -> str:
    return " ".join("".join(traceback.format_exception_only(fault)).split())[:300]


def run_here(run: Run, mode: str, trace: str = "") -> Measured:
    """What a prepared program takes in this process."""
    import memprof
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    made = Measured(resident_before=_resident_peak())
    if mode == "real":
        capture = memprof.capture(trace_file=trace)
    else:
        capture = memprof.no_dispatch(device=DEVICE if mode == "claimed" else "", trace_file=trace)
    begin = time.process_time()
    with capture:
        run("cuda" if mode == "claimed" else "cpu")
        made.seconds = time.process_time() - begin
    made.resident_peak = _resident_peak()
    profile = capture.profile
    space = profile.space("cuda:0" if mode == "claimed" else "cpu")
    made.peak, made.allocated = space.cumulative_peak, space.allocations
    for table, name in models_page.LISTED.items():
        made.listed += [f"{name} `{row['name']}`" for row in profile.facts.get(table, [])]
    return made


def _send(run: Run, mode: str, trace: str, results: multiprocessing.connection.Connection, errors: int) -> None:
    os.dup2(errors, 2)
    try:
        made = run_here(run, mode, trace)
    except Exception as fault:  # of packages whose code is anybody's
        traceback.print_exc()
        made = Measured(fault=_fault(fault))
    results.send(made)
    results.close()


def run_apart(run: Run, mode: str, seconds: float = 600, trace: str = "") -> Measured:
    """What a prepared program takes in a process of its own. What goes wrong there is the result's `fault`."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as errors:
        process = context.Process(target=_send, args=(run, mode, trace, sender, errors.fileno()))
        process.start()
        sender.close()
        try:
            if not receiver.poll(seconds):
                process.kill()
                return Measured(fault=f"not done after {seconds:g} s")
            made: Measured = receiver.recv()
            return made
        except EOFError:
            process.join()
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["nothing was printed"])[-1]
            return Measured(fault=f"its process ended with {process.exitcode}: {last}"[:300])
        finally:
            process.join()


def measure(name: str, seconds: float = 600, traces: pathlib.Path | None = None) -> ModelResult:
    """The three runs of a program. Where traces are kept, the third leaves none."""
    import torch._dynamo  # noqa: F401  (which optimizers import at their first step)
    from memprof.torch._library import load

    for no_dispatch in (False, True):
        load(no_dispatch)  # once for all children, and compiled before their times are taken
    measured: dict[str, Measured] = {}
    for mode in MODES:
        trace = "" if traces is None or mode == "claimed" else str(traces / f"{models_page.file_name(name)}.{mode}.memtrace")
        try:
            measured[mode] = run_apart(PROGRAMS[name].prepare(), mode, seconds, trace)
        except Exception as fault:  # a package that is not there, or not as expected
            measured[mode] = Measured(fault=_fault(fault))
    return ModelResult(name=name, **measured)


def versions() -> dict[str, str]:
    names = {"memprof", "torch"} | {package for each in PROGRAMS.values() for package in each.packages}
    return {each.metadata["Name"]: each.version for each in importlib.metadata.distributions() if each.metadata["Name"] in names}


def run_all(options: argparse.Namespace) -> int:
    names = [name for name in PROGRAMS if not options.only or any(word.lower() in name.lower() for word in options.only)]
    if not names:
        raise ValueError(f"no program is named {' or '.join(options.only)}; there are: {'; '.join(PROGRAMS)}")
    results: dict[str, ModelResult] = {}
    if options.only and options.results.exists():
        results = models_page.read_results(options.results)
    if options.traces:
        options.traces.mkdir(parents=True, exist_ok=True)
    for name in names:
        results[name] = measure(name, options.seconds, options.traces)
        print(models_page.line_of(results[name]), flush=True)
        models_page.write_results(options.results, results)
    in_order = [results[name] for name in PROGRAMS if name in results]
    options.page.write_text(models_page.document(in_order, versions(), [name for name in PROGRAMS if name not in results]))
    print(f"{options.page} is written")
    unexplained = [name for name in names if models_page.is_unexplained(results[name])]
    if unexplained:
        print(f"without an explanation: {'; '.join(unexplained)}", file=sys.stderr)
    return 1 if unexplained else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, metavar="RESULTS.json")
    parser.add_argument("page", type=pathlib.Path, metavar="PAGE.md")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs whose name has one of these words in it")
    parser.add_argument("--seconds", type=float, default=600, metavar="S", help="of a run, at most (default: 600)")
    parser.add_argument("--traces", type=pathlib.Path, metavar="FOLDER", help="leave the traces of both runs on the CPU there")
    options = parser.parse_args()
    try:
        return run_all(options)
    except (OSError, ValueError) as fault:
        print(f"python_models.py: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
