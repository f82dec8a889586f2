"""Trains a model of timm for a few steps without memory and kernels, on a CUDA device that is not there."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Iterator

import in_process
import torchvision_stand_in

MIB = 1 << 20


@dataclasses.dataclass
class Prediction:
    """What a run would take of a device. Sizes are MiB."""

    model: str
    batch: int
    #: What the device has for the allocator; 0: any amount.
    capacity: float = 0
    #: The most in tensors at one moment, and the most that PyTorch's allocator reserves, by memprof's model of it.
    live: float = 0
    reserved: float = 0
    #: Whether the allocator had what was asked for.
    fits: bool = True
    #: Whether the model has convolutions besides one that cuts the image into patches: workspaces depend on the algorithms that cuDNN chooses.
    has_convolutions: bool = False
    #: Of the model's output.
    classes: int = 0
    #: Operators whose sizes are estimates, by the profile's tables `approximations` and `assumed_sizes`.
    estimated: str = ""
    #: What the prediction took: time on the clock and of the processor, and the most memory of its process.
    seconds: float = 0
    cpu_seconds: float = 0
    resident: float = 0
    #: Why there is no prediction; empty: there is one.
    fault: str = ""


def _train(name: str, batch: int, capacity: float) -> Prediction:
    import memprof
    import memprof.torch
    import timm_training
    import torch
    from memprof import _core

    made = Prediction(name, batch, capacity)
    begin, cpu_begin = time.monotonic(), time.process_time()
    in_process.forget_peak()
    with memprof.no_dispatch(device="gpu-40gb") as capture:
        # The measurements' PyTorch is older than 2.12: of free blocks of one size, the lowest address is taken.
        _core._begin_claimed_device(int(capacity * MIB), "", True)
        with timm_training.benchmarked_convolutions(torch.cuda.empty_cache):
            try:
                made.has_convolutions, made.classes = timm_training.train(name, batch)
            except torch.OutOfMemoryError:
                made.fits = False
        stats = torch.cuda.memory_stats()
    made.live = capture.profile.space("cuda:0").cumulative_peak / MIB
    made.reserved = stats["reserved_bytes.all.peak"] / MIB
    made.fits = made.fits and stats["num_ooms"] == 0
    facts = capture.profile.facts
    made.estimated = " ".join(sorted({row["name"].removeprefix("aten::") for table in ("approximations", "assumed_sizes") for row in facts.get(table) or ()}))
    made.seconds, made.cpu_seconds = time.monotonic() - begin, time.process_time() - cpu_begin
    made.resident = in_process.peak_resident()
    return made


def _predict(name: str, batches: list[int], capacity: float, results: multiprocessing.connection.Connection) -> None:
    import torch

    torch.set_num_threads(1)
    for batch in batches:
        try:
            results.send(_train(name, batch, capacity))
        except Exception as fault:  # of the model, whose code is anybody's
            results.send(Prediction(name, batch, capacity, fault=f"{type(fault).__name__}: {fault}".split("\n")[0][:200]))
    results.close()


def predict(wanted: dict[str, list[int]], jobs: int, most_seconds: float, capacity: float = 0) -> Iterator[Prediction]:
    """What each model takes with each batch of a device with `capacity` MiB for the allocator, or without a limit, in the order in which they are done. Each model has a process of its own, that was
    forked from this one after the imports, and `most_seconds` for each batch."""
    torchvision_stand_in.install()
    import memprof.torch  # noqa: F401  (the children have these)
    import timm  # noqa: F401
    import timm.loss
    import timm.optim
    import timm_training  # noqa: F401
    import torch._dynamo  # noqa: F401  (which optimizers import at their first step)

    context = multiprocessing.get_context("fork")
    waiting = list(reversed(wanted.items()))
    running: dict[multiprocessing.connection.Connection, tuple[multiprocessing.process.BaseProcess, str, list[int], float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, batches = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_predict, args=(name, batches, capacity, sender), daemon=True)
            process.start()
            sender.close()
            running[receiver] = (process, name, list(batches), time.monotonic())
        for receiver in multiprocessing.connection.wait(list(running), timeout=1):
            assert isinstance(receiver, multiprocessing.connection.Connection)
            process, name, left, _ = running[receiver]
            try:
                made: Prediction = receiver.recv()
            except EOFError:
                del running[receiver]
                process.join()
                for batch in left:
                    yield Prediction(name, batch, capacity, fault=f"its process ended with {process.exitcode}")
                continue
            left.remove(made.batch)
            running[receiver] = (process, name, left, time.monotonic())
            yield made
        for receiver, (process, name, left, since) in list(running.items()):
            if time.monotonic() - since > most_seconds:
                process.kill()
                process.join()
                del running[receiver]
                for batch in left:
                    yield Prediction(name, batch, capacity, fault=f"not done after {most_seconds:g} s")
