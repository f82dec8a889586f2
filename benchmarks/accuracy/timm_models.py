"""Trains a model of timm for a few steps without memory and kernels, on a CUDA device that is not there."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Iterator

import torchvision_stand_in

#: Steps of a trial: the optimizer's state is there from the second on.
STEPS = 3
#: For the allocator's model: more than any of these runs takes.
NO_LIMIT = 1 << 50
MIB = 1 << 20


@dataclasses.dataclass
class Prediction:
    """What a run would take of a device without a limit. Sizes are MiB."""

    model: str
    batch: int
    #: The most in tensors at one moment, and of that the parameters, the gradients, the optimizer's state and the model's buffers.
    live: float = 0
    parameters: float = 0
    gradients: float = 0
    optimizer_state: float = 0
    buffers: float = 0
    #: The most that PyTorch's allocator reserves, by memprof's model of it.
    reserved: float = 0
    #: Whether the model has convolutions besides one that cuts the image into patches: workspaces depend on the algorithms that cuDNN chooses.
    has_convolutions: bool = False
    #: Whether the profile calls its numbers exact.
    exact: bool = False
    seconds: float = 0
    #: Why there is no prediction; empty: there is one.
    fault: str = ""


def _train(name: str, batch: int) -> Prediction:
    import memprof
    import memprof.torch
    import timm
    import torch

    made = Prediction(name, batch)
    begin = time.monotonic()
    with memprof.no_dispatch(device="cuda", trace=True) as capture:
        model = timm.create_model(name).to("cuda").train()
        made.has_convolutions = sum(isinstance(each, torch.nn.modules.conv._ConvNd) for each in model.modules()) > 1
        # The measurements' script is not published. With small batches the peak of models without convolutions is that of four times the
        # parameters: in the optimizer's step, of gradients with weight decay and one buffer. With large ones the gradients are live, too.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=2e-5)
        shape = model.default_cfg["input_size"]
        for _ in range(STEPS):
            images = torch.randn(batch, *shape, device="cuda")
            labels = torch.zeros(batch, dtype=torch.long, device="cuda")
            output = model(images)
            if isinstance(output, (tuple, list)):
                output = output[0]
            loss = torch.nn.functional.cross_entropy(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        del model, optimizer, images, labels, output, loss
    space = capture.profile.space("cuda:0")
    parts = {row.owner: row.bytes / MIB for row in space.live_at_peak.by_category}
    made.live = space.cumulative_peak / MIB
    made.parameters, made.gradients = parts.get("parameter", 0), parts.get("gradient", 0)
    made.optimizer_state, made.buffers = parts.get("optimizer_state", 0), parts.get("buffer", 0)
    made.reserved = capture.trace.fit(NO_LIMIT).reserved / MIB
    made.exact = capture.profile.exact
    made.seconds = time.monotonic() - begin
    return made


def _predict(name: str, batches: list[int], results: multiprocessing.connection.Connection) -> None:
    import torch

    torch.set_num_threads(1)
    for batch in batches:
        try:
            results.send(_train(name, batch))
        except Exception as fault:  # of the model, whose code is anybody's
            results.send(Prediction(name, batch, fault=f"{type(fault).__name__}: {fault}".split("\n")[0][:200]))
    results.close()


def predict(wanted: dict[str, list[int]], jobs: int, most_seconds: float) -> Iterator[Prediction]:
    """What each model takes with each batch, in the order in which they are done. Each model has a process of its own, that was
    forked from this one after the imports, and `most_seconds` for each batch."""
    torchvision_stand_in.install()
    import memprof.torch  # noqa: F401  (the children have these)
    import timm  # noqa: F401
    import torch._dynamo  # noqa: F401  (which optimizers import at their first step)

    context = multiprocessing.get_context("fork")
    waiting = list(reversed(wanted.items()))
    running: dict[multiprocessing.connection.Connection, tuple[multiprocessing.process.BaseProcess, str, list[int], float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, batches = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_predict, args=(name, batches, sender), daemon=True)
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
                    yield Prediction(name, batch, fault=f"its process ended with {process.exitcode}")
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
                    yield Prediction(name, batch, fault=f"not done after {most_seconds:g} s")
