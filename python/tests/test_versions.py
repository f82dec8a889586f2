"""A capture, a simulation and torch's own profiler count the same bytes in whichever torch is installed."""

from __future__ import annotations

from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

Numbers = tuple[int, int, int]


def program() -> list[float]:
    """Two steps of a model with convolution, normalisation, embedding, attention, and an optimizer on lists."""
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(100, 64)
    block = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    head = torch.nn.Sequential(torch.nn.Conv1d(64, 32, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(32 * 14, 10))
    parameters = [parameter for part in (embedding, block, head) for parameter in part.parameters()]
    optimizer = torch.optim.AdamW(parameters, foreach=True)
    losses = []
    for _ in range(2):
        words, labels = torch.randint(0, 100, (8, 16)), torch.randint(0, 10, (8,))
        result = head(block(embedding(words)).transpose(1, 2))
        loss = torch.nn.functional.cross_entropy(result, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def counted(capture: memprof.Capture) -> Numbers:
    space = capture.profile.space("cpu")
    return space.cumulative_peak, space.allocations, space.allocation_count


def independently_counted() -> tuple[Numbers, list[float]]:
    """From each report of torch's allocator to its profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        losses = program()
    live = peak = allocated = allocations = 0

    def visit(events: Any) -> Any:
        for event in events:
            if event.typed[0] == torch._C._profiler._EventType.Allocation:
                yield event.start_time_ns, event.extra_fields.alloc_size
            yield from visit(event.children)

    results: Any = profiler.profiler
    for _, size in sorted(visit(results.kineto_results.experimental_event_tree()), key=lambda event: event[0]):
        live += size
        peak = max(peak, live)
        if size > 0:
            allocated, allocations = allocated + size, allocations + 1
    return (peak, allocated, allocations), losses


def test_capture_simulation_and_an_independent_counter_agree_to_the_byte() -> None:
    torch.set_num_threads(1)
    program()  # what is made once in a process
    with memprof.capture() as capture:
        captured = program()
    with memprof.no_dispatch() as simulation:
        program()
    expected, losses = independently_counted()
    assert counted(capture) == counted(simulation) == expected
    assert captured == losses
