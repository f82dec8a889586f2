"""What a program takes from the heap, as `memprof run` and valgrind's DHAT see it: every block, and what code asked for it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess


@dataclasses.dataclass
class Recording:
    """One run under one tool. `sizes` counts blocks by their bytes, `live_at_peak` those that were live at the first greatest sum."""

    peak: int
    count: int
    total: int
    sizes: collections.Counter[int]
    live_at_peak: collections.Counter[int]
    callers: dict[int, collections.Counter[str]]  # by the bytes of a block, how many blocks each code asked for


class _Heap:
    """Follows allocations and frees."""

    def __init__(self) -> None:
        self.sizes: collections.Counter[int] = collections.Counter()
        self.live_at_peak: collections.Counter[int] = collections.Counter()
        self.peak = 0
        self._sum = 0
        self._blocks: dict[int, int] = {}
        self._is_rising = False

    def free(self, address: int) -> None:
        if self._is_rising and self._sum > self.peak:
            self.peak = self._sum
            self.live_at_peak = collections.Counter(self._blocks.values())
        self._is_rising = False
        self._sum -= self._blocks.pop(address, 0)

    def allocate(self, address: int, size: int) -> None:
        self.sizes[size] += 1
        self._blocks[address] = size
        self._sum += size
        self._is_rising = True

    def end(self) -> None:
        self.free(0)

    def recording(self, callers: dict[int, collections.Counter[str]]) -> Recording:
        total = sum(size * count for size, count in self.sizes.items())
        return Recording(self.peak, self.sizes.total(), total, self.sizes, self.live_at_peak, callers)


_HOOKS = re.compile(r"\(in .*/(vgpreload|libmemprof_preload)|: \?\?\? \(in .*vgpreload|^(operator new|malloc|calloc|realloc)\b")


def _caller(frames: list[str], depth: int = 3) -> str:
    """The innermost functions, innermost first, without the hook's and operator new."""
    names = [re.sub(r"^0x[0-9A-Fa-f]+: ", "", each) for each in frames]
    kept = [each for each in names if not _HOOKS.search(each)][:depth]
    return " < ".join(re.sub(r" \((in .*/)?([^/()]*)\)$", r" (\2)", each) for each in kept)


def _callers(document: dict) -> list[tuple[int, int, str]]:
    """Blocks, bytes and the code of each program point of a file in DHAT's format."""
    texts = document["ftbl"]
    return [(point["tbk"], point["tb"], _caller([texts[frame] for frame in point["fs"]])) for point in document["pps"]]


# --- memprof ----------------------------------------------------------------------------------------------------------


def by_memprof(tool: pathlib.Path, command: list[str], variables: dict[str, str], folder: pathlib.Path) -> Recording:
    """The numbers are of a run without stacks. Another one, with stacks, says who asked for blocks of which size."""
    plain = _memprof_run(tool, command, variables, folder / "plain.memtrace")
    stacks = _memprof_run(tool, command, variables, folder / "stacks.memtrace", "--stacks=all")
    heap, blocks = _read_trace(tool, plain)
    _, blocks_with_stacks = _read_trace(tool, stacks)
    points = folder / "points.json"
    subprocess.run([tool, "export", stacks, "--format", "dhat", "-o", points], check=True, capture_output=True)
    texts = _callers(json.loads(points.read_text(encoding="utf-8")))
    by_label: dict[int, list[int]] = {}
    for label, size in (block for thread in blocks_with_stacks.values() for block in thread):
        by_label.setdefault(label, []).append(size)
    callers: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    # The program points come in the order in which the stacks were first seen.
    if sorted((len(sizes), sum(sizes)) for sizes in by_label.values()) != sorted(each[:2] for each in texts):
        raise RuntimeError("the exported program points are not those of the trace")
    text_of = dict(zip(sorted(by_label), (text for _, _, text in texts)))
    for thread, own in blocks.items():
        with_stacks = blocks_with_stacks.get(thread, [])
        is_same = len(own) == len(with_stacks)  # then its blocks came in the same order, though some may be larger
        for (_, size), (label, size_with_stack) in zip(own if is_same else with_stacks, with_stacks):
            callers[size if is_same else size_with_stack][text_of[label]] += 1
    made = heap.recording(callers)
    profile = json.loads((folder / "plain.json").read_text(encoding="utf-8"))
    space = next(each for each in profile["spaces"] if each["name"] == "cpu")
    if (space["cumulative_peak"], space["allocation_count"], space["allocations"]) != (made.peak, made.count, made.total):
        raise RuntimeError("the profile and the events differ")
    if not profile["exact"] or space["anomalies"]["unmatched_frees"]["count"] != 0:
        raise RuntimeError("memprof lost an event or saw a free of an unknown block")
    return made


@functools.cache
def _at_fixed_addresses() -> tuple[str, ...]:
    """What a command begins with so that its addresses are the same in each run, as under valgrind: cc1plus orders tables by them, and
    its peak differs by some 32 KiB from run to run. Empty where the system does not allow it."""
    command = ("setarch", "-R")
    is_allowed = shutil.which("setarch") is not None and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if is_allowed else ()


def _memprof_run(tool: pathlib.Path, command: list[str], variables: dict[str, str], trace: pathlib.Path, *options: str) -> pathlib.Path:
    subprocess.run([*_at_fixed_addresses(), tool, "run", *options, "--trace", trace, "--profile", trace.with_suffix(".json"), "--", *command], check=True,
                   capture_output=True, env={**os.environ, **variables})
    return trace


def _read_trace(tool: pathlib.Path, trace: pathlib.Path) -> tuple[_Heap, dict[int, list[tuple[int, int]]]]:
    """Also the label and the bytes of each block, by thread."""
    heap = _Heap()
    blocks: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
    with subprocess.Popen([tool, "trace", "--json", trace], stdout=subprocess.PIPE, text=True) as printed:
        assert printed.stdout is not None
        for line in printed.stdout:
            event = json.loads(line)
            if event["kind"] == "allocate":
                heap.allocate(event["address"], event.get("bytes", 0))
                blocks[event["thread"]].append((event.get("label", 0), event.get("bytes", 0)))
            elif event["kind"] == "deallocate":
                heap.free(event["address"])
    heap.end()
    return heap, blocks


# --- valgrind ---------------------------------------------------------------------------------------------------------

# Functions as valgrind prints them, `calloc(0x10,16) = 0x4A70030`; a failed call returns 0x0 or (nil).
_CALL = re.compile(r"(\w+)\(([^()]*)\)(?: = (0x[0-9A-F]+|\(nil\)))?")


def by_dhat(command: list[str], variables: dict[str, str], folder: pathlib.Path) -> Recording:
    points, log = folder / "dhat.json", folder / "dhat.log"
    subprocess.run(["valgrind", "--tool=dhat", "--trace-malloc=yes", "--num-callers=24", f"--dhat-out-file={points}", f"--log-file={log}",
                    *command], check=True, capture_output=True, env={**os.environ, **variables})
    heap = _Heap()
    said = ""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("--"):
                _follow(heap, line)
            else:
                said += line
    heap.end()
    made = heap.recording(_uniform(_callers(json.loads(points.read_text(encoding="utf-8")))))

    def number(pattern: str) -> int:
        found = re.search(pattern, said)
        if found is None:
            raise RuntimeError(f"valgrind says no {pattern}:\n{said}")
        return int(found[1].replace(",", ""))

    counted = number(r"At t-gmax: ([\d,]+) bytes"), number(r"Total: .* in ([\d,]+) blocks"), number(r"Total: +([\d,]+) bytes")
    if counted != (made.peak, made.count, made.total):
        raise RuntimeError(f"DHAT counts {counted}; its calls have {(made.peak, made.count, made.total)}")
    return made


def _follow(heap: _Heap, line: str) -> None:
    for name, words, result in _CALL.findall(line):
        numbers = [int(each, 0) for each in re.findall(r"0x[0-9A-Fa-f]+|\d+", words)]
        address = int(result, 0) if result.startswith("0x") else 0
        if name in ("free", "cfree") or name.startswith(("_Zd", "__builtin_delete", "__builtin_vec_delete")):
            heap.free(numbers[0])
        elif address == 0 or name == "malloc_usable_size":
            continue
        elif name == "realloc":
            if numbers[0] != 0:  # else it says `malloc`, too
                heap.free(numbers[0])
                heap.allocate(address, numbers[1])
        else:
            size = {"calloc": lambda: math.prod(numbers), "memalign": lambda: numbers[1]}.get(name, lambda: numbers[0])()
            heap.allocate(address, max(size, 1))  # DHAT counts an empty block as one byte


def _uniform(points: list[tuple[int, int, str]]) -> dict[int, collections.Counter[str]]:
    """Of the program points all of whose blocks are, by their mean, of one size: the format has no more."""
    callers: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for count, total, text in points:
        if total % count == 0:
            callers[total // count][text] += count
    return callers
