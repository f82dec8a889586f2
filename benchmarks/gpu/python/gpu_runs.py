#!/usr/bin/env python3
"""Records on a GPU what single operators and training programs allocate, and compares the simulation without a GPU with it.

gpu_runs.py record FOLDER            needs a GPU and a torch with CUDA; the programs also need transformers, timm and others
gpu_runs.py compare FOLDER PAGE.md   needs memprof's Python package and torch, but no GPU; writes the page, and FOLDER/different.txt

Each program has a process of its own, and so has each family of operators on the GPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

import gpu_page
import gpu_programs
import operator_cases
import torch
from gpu_page import OperatorResult, Peaks, ProgramResult, Recording, Simulated
from gpu_programs import PROGRAMS, Run
from held_out_programs import HELD_OUT

Result = TypeVar("Result")

#: For the allocator's model: more than any program takes.
NO_LIMIT = 1 << 50
#: Events that PyTorch keeps: more than a family of operators has.
MOST_EVENTS = 2_000_000


class Failed(Exception):
    """What went wrong in a process of its own."""


def _send(work: Callable[[], Result], results: multiprocessing.connection.Connection) -> None:
    try:
        results.send((work(), ""))
    except Exception as fault:  # of packages whose code is anybody's
        traceback.print_exc()
        results.send((None, " ".join("".join(traceback.format_exception_only(fault)).split())[:300]))
    results.close()


def apart(work: Callable[[], Result], seconds: float = 600) -> Result:
    """What `work` returns in a process of its own, forked from this one. Raises `Failed`."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            process.kill()
            raise Failed(f"not done after {seconds:g} s")
        made: Result
        made, fault = receiver.recv()
    except EOFError:
        process.join()
        raise Failed(f"its process ended with {process.exitcode}") from None
    finally:
        process.join()
    if fault:
        raise Failed(fault)
    return made


def versions(*more: str) -> dict[str, str]:
    names = {"torch", *more} | {package for each in (*PROGRAMS.values(), *HELD_OUT.values()) for package in each.packages}
    return {each.metadata["Name"]: each.version for each in importlib.metadata.distributions() if each.metadata["Name"] in names}


# --- on a GPU


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _begin() -> None:
    """Initialises CUDA, with nothing in the allocator."""
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def record_in_use() -> dict[str, int]:
    _begin()
    found = {}
    for what in gpu_programs.first_uses("cuda"):
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        found[what] = total - free - torch.cuda.memory_reserved()
    return found


def record_program(run: Run) -> Peaks:
    _begin()
    run("cuda")
    torch.cuda.synchronize()
    found = torch.cuda.memory_stats()
    return Peaks(found["requested_bytes.all.peak"], found["reserved_bytes.all.peak"])


def record_operators(names: Iterable[str]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """The events of each case, and what went wrong in it."""
    _begin()
    operator_cases.warm_up()
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=MOST_EVENTS)
    faults = operator_cases.run_cases(names)
    torch.cuda.synchronize()
    sign = {"alloc": 1, "free_requested": -1}
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    return operator_cases.split(sign[each["action"]] * each["size"] for each in trace if each["action"] in sign), faults


def record(options: argparse.Namespace) -> None:
    """This process never initialises CUDA: its children could not use it then."""
    made = Recording(device=apart(torch.cuda.get_device_name), driver=_driver(), versions=versions())
    options.folder.mkdir(parents=True, exist_ok=True)
    for family, cases in operator_cases.FAMILIES.items():
        try:
            events, faults = apart(lambda: record_operators(cases))
        except Failed as fault:  # as after an assertion on the device
            made.remark += f" Of {family}, as it failed: {fault}."
            print(f"{family}: {fault}", file=sys.stderr)
            continue
        made.operators.update(events)
        made.operator_faults.update(faults)
        print(f"{family}: {len(events)} cases, {len(faults)} with a fault", flush=True)
    made.remark = made.remark.strip()
    gpu_page.write_operators(options.folder, made)
    made.in_use = apart(record_in_use)
    for programs, peaks in ((PROGRAMS, made.programs), (HELD_OUT, made.held_out.programs)):
        for name, program in programs.items():
            try:
                run = program.prepare()
                peaks[name] = apart(lambda: record_program(run))
            except (Failed, ImportError) as fault:
                peaks[name] = Peaks(fault=str(fault))
            print(f"{name}: {peaks[name]}", flush=True)
            gpu_page.write_programs(options.folder, made)


# --- without one


def simulate_program(run: Run, preset: str, descending_addresses: bool) -> Simulated:
    import memprof

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with memprof.no_dispatch(device=preset, trace=True) as capture:
        run("cuda")
    listed = [str(row["name"]) for row in capture.profile.facts.get("approximations", [])]
    requested = capture.profile.space("cuda:0").cumulative_peak
    fit = capture.trace.fit(NO_LIMIT, descending_addresses=descending_addresses)
    return Simulated(requested, fit.reserved, listed=listed)


def simulate_operators(preset: str) -> tuple[dict[str, list[int]], dict[str, str]]:
    import memprof

    torch.set_num_threads(1)
    with memprof.no_dispatch(device=preset, trace=True) as capture:
        operator_cases.warm_up()
        faults = operator_cases.run_cases(operator_cases.CASES)
    sign = {"allocate": 1, "deallocate": -1}
    rows = capture.trace.table("events").rows()
    events = (sign[str(row["kind"])] * int(row["bytes"]) for row in rows if row["space"] == "cuda:0" and row["kind"] in sign)
    return operator_cases.split(events), faults


def _load_simulation() -> None:
    """For all children, who import nothing and compile nothing then."""
    import torch._dynamo  # noqa: F401  (which optimizers import at their first step)
    from memprof.torch._library import load

    load(True)


def compare_operators(recording: Recording) -> list[OperatorResult]:
    _load_simulation()
    preset = gpu_page.preset_of(recording.device)
    events, faults = apart(lambda: simulate_operators(preset))
    return gpu_page.judge_operators(recording, events, faults)


def compare_program(recording: Recording, name: str) -> ProgramResult:
    _load_simulation()
    preset = gpu_page.preset_of(recording.device)
    real = {**recording.programs, **recording.held_out.programs}[name]
    if real.fault:
        return ProgramResult(name, real, Simulated())
    try:
        run = {**PROGRAMS, **HELD_OUT}[name].prepare()
        descend = gpu_page.takes_lowest_of_equal_blocks(recording)
        return ProgramResult(name, real, apart(lambda: simulate_program(run, preset, descend)))
    except (Failed, ImportError) as fault:
        return ProgramResult(name, real, Simulated(fault=str(fault)))


def _compared(recording: Recording, name: str) -> ProgramResult:
    result = compare_program(recording, name)
    state = "equal" if result.equal else result.simulated.fault or "different"
    print(f"{name}: {result.real.fault or state}", flush=True)
    return result


def compare(options: argparse.Namespace) -> None:
    recording = gpu_page.read_recording(options.folder)
    operators = compare_operators(recording)
    programs, held_out = ([_compared(recording, name) for name in names] for names in (recording.programs, recording.held_out.programs))
    names = gpu_page.different(operators, [*programs, *held_out])
    (options.folder / "different.txt").write_text("".join(f"{name}\n" for name in names))
    folder = os.path.relpath(options.folder, gpu_programs.BENCHMARKS.parent)
    options.page.write_text(gpu_page.document(recording, operators, programs, held_out, versions("memprof"), folder))
    print(f"{options.page} is written")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("record", record), ("compare", compare)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
        if run is compare:
            command.add_argument("page", type=pathlib.Path, metavar="PAGE.md")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no model is downloaded
    try:
        options.run(options)
    except (OSError, ValueError, Failed) as fault:
        print(f"gpu_runs.py: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
