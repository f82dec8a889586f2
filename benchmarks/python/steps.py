"""What a capture costs a training step in Python, and a call of a module.

    build/python/environment/bin/python3 benchmarks/python/steps.py [--rounds N] [--quick] [--output FILE]

A GPT-2 with 124 M parameters makes steps of AdamW on one thread: without a capture, in one without module names, and in one with
them, in turn. Times are of the process's CPU clock; each ratio is of steps of one round, and the noise is that of two plain steps.

That noise exceeds what is measured on most machines. So the same model also makes steps with narrow layers: as many modules,
operators and allocations, which decide what a capture adds, in a hundredth of the time. What it adds to them, divided by the time
of the wide model's step, is the share that the last rows have.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator

import memprof
import torch

Captures = dict[str, Callable[[], contextlib.AbstractContextManager[object]]]
CAPTURES: Captures = {
    "no capture": contextlib.nullcontext,
    "capture(modules=False)": lambda: memprof.capture(modules=False),
    "capture()": memprof.capture,
    "no capture, again": contextlib.nullcontext,
}
GOALS = {"capture(modules=False)": 1.01, "capture()": 1.03, "call of a module": 3000}


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.norm, self.norm_mlp = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        attended = torch.nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_mlp(x))


class GPT(torch.nn.Module):
    def __init__(self, layers: int, width: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(length, width)
        self.h = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.tokens(x) + self.positions.weight[: x.shape[1]]
        for block in self.h:
            y = block(y)
        return self.head(self.norm(y))



Shape = tuple[int, int, int, int]  # layers, width, vocabulary, length
WIDE, NARROW, QUICK = (12, 768, 50257, 64), (12, 64, 64, 8), (2, 64, 64, 8)


def step_seconds(shape: Shape) -> Iterator[dict[str, float]]:
    """CPU seconds of a step in each capture, round after round."""
    _, _, vocabulary, length = shape
    model = GPT(*shape)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(vocabulary, (1, length))

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    while True:
        seconds = {}
        for name, capture in CAPTURES.items():
            with capture():
                step()  # the first in a capture names the modules
                begin = time.process_time()
                step()
                seconds[name] = time.process_time() - begin
        yield seconds


def call_nanoseconds(calls: int) -> float:
    """What a call of a module costs more in a capture: the median of five differences."""
    module, x = torch.nn.Identity(), torch.zeros(1)

    def one() -> float:
        module(x)
        begin = time.process_time_ns()
        for _ in range(calls):
            module(x)
        return (time.process_time_ns() - begin) / calls

    differences = []
    for _ in range(5):
        plain = one()
        with memprof.capture():
            differences.append(one() - plain)
    return statistics.median(differences)


def share(name: str) -> str:
    return f"{GOALS[name] - 1:.0%}" if name in GOALS else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="check that everything runs; its numbers mean nothing")
    parser.add_argument("--output", help="also write every number to this file, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = 2 if options.quick else options.rounds
    rounds = list(itertools.islice(step_seconds(QUICK if options.quick else WIDE), count))
    narrow = list(itertools.islice(step_seconds(QUICK if options.quick else NARROW), 20 * count))
    step = statistics.median(seconds["no capture"] for seconds in rounds)
    call = call_nanoseconds(100 if options.quick else 50_000)
    print("| beyond the plain program | measured | goal |\n|---|---:|---:|")
    for name in CAPTURES:
        if name == "no capture":
            continue
        ratios = [seconds[name] / seconds["no capture"] for seconds in rounds]
        shown = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(f"| a step of GPT-2, `{name}`: times its CPU time | {shown} | {GOALS.get(name, '')} |")
    for name in CAPTURES:
        if name == "no capture":
            continue
        added = statistics.median(seconds[name] - seconds["no capture"] for seconds in narrow)
        shown = f"{added * 1e3:.2f} ms, {added / step:+.2%}"
        print(f"| what `{name}` adds to a step, and its share of {step:.2f} s | {shown} | {share(name)} |")
    print(f"| a call of a module: nanoseconds | {call:.0f} | {GOALS['call of a module']} |")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"format": "memprof-python-bench", "steps": rounds, "narrow_steps": narrow, "call_nanoseconds": call}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
