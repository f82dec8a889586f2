"""Calls in processes of their own, and what one costs."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import pathlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def forget_peak() -> None:
    """`peak_resident` counts from here on (proc(5), clear_refs)."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_resident() -> float:
    """The most memory that this process had, MiB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024


def _send(run: Callable[..., object], arguments: tuple[object, ...], results: multiprocessing.connection.Connection) -> None:
    import torch

    torch.set_num_threads(1)
    try:
        results.send((run(*arguments), ""))
    except Exception as fault:  # of the model, whose code is anybody's
        results.send((None, f"{type(fault).__name__}: {fault}".split("\n")[0][:200]))
    sys.stdout.flush()


def call(run: Callable[..., Result], *arguments: Any, seconds: float) -> tuple[Result | None, str]:
    """What `run` returns in a process forked from this one, or why it did not: its exception, its end, or that `seconds` were over."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(run, arguments, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            process.kill()
            return None, f"not done after {seconds:g} s"
        result: tuple[Result | None, str] = receiver.recv()
        return result
    except EOFError:
        process.join()
        return None, f"its process ended with {process.exitcode}"
    finally:
        process.join()
        receiver.close()
