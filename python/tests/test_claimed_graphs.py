"""CUDA graphs, memory pools and streams on a CUDA device that is not there. Numbers are those of arithmetic with PyTorch's rules."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

MiB = 1 << 20
VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to torch 2.12, graphs have two numbers on the device, in a segment of 2 MiB: `test_graphs_have_seeds`."""
    monkeypatch.setattr("memprof.torch._claimed_graphs._have_seeds", False)


@pytest.fixture
def claimed() -> Iterator[memprof.Capture]:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        yield capture
        gc.collect()


def reserved() -> int:
    return torch.cuda.memory_reserved() // MiB


def allocated() -> int:
    return torch.cuda.memory_allocated() // MiB


def blocks(mebibytes: int = 12) -> Any:
    """From 10 MiB on, a block is a segment of its own."""
    return torch.empty(mebibytes * MiB // 4, device="cuda")


# --- graphs


def test_a_graph_keeps_the_memory_of_its_capture_until_it_is_gone(claimed: memprof.Capture) -> None:
    x = blocks()
    graph = torch.cuda.CUDAGraph()
    assert not torch.cuda.is_current_stream_capturing()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x + 1
        z = y * 2
        del y
        w = z + 1  # in the memory of y
    assert not torch.cuda.is_current_stream_capturing()
    assert (reserved(), allocated()) == (36, 36)
    del z, w
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (36, 12)
    other = blocks()  # another pool
    assert (reserved(), allocated()) == (48, 24)
    before = torch.cuda.memory_stats()
    for _ in range(3):
        graph.replay()
    assert torch.cuda.memory_stats() == before
    graph.reset()
    assert reserved() == 48
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (24, 24)
    del other


def test_a_graph_that_nobody_refers_to_is_gone(claimed: memprof.Capture) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        blocks()
    del graph
    torch.cuda.empty_cache()
    assert reserved() == 0


def test_what_is_cached_before_a_capture_is_given_back(claimed: memprof.Capture) -> None:
    blocks()
    assert reserved() == 12
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = blocks(20)
    assert reserved() == 20
    del kept


def test_two_graphs_share_a_pool(claimed: memprof.Capture) -> None:
    first, second, apart = (torch.cuda.CUDAGraph() for _ in range(3))
    with torch.cuda.graph(first):
        blocks()
    with torch.cuda.graph(second, pool=first.pool()):
        kept = blocks()
    assert first.pool() == second.pool() and first.pool()[0] > 0 == first.pool()[1] and reserved() == 12
    with torch.cuda.graph(apart):
        blocks()
    assert apart.pool() != first.pool() and reserved() == 24
    del kept
    first.reset()
    torch.cuda.empty_cache()
    assert reserved() == 24
    second.reset()
    torch.cuda.empty_cache()
    assert reserved() == 12


def test_a_handle_is_a_pool_as_long_as_anything_is_in_it(claimed: memprof.Capture) -> None:
    handle = torch.cuda.graph_pool_handle()
    assert handle[0] == 0 < handle[1] and handle != torch.cuda.graph_pool_handle()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=handle):
        kept = blocks()
    first.reset()
    with pytest.raises(RuntimeError, match="use_count > 0"):
        torch.cuda.graph(second, pool=handle).__enter__()
    torch.cuda.set_stream(torch.cuda.default_stream())
    assert reserved() == 12
    del kept
    with torch.cuda.graph(second, pool=handle):  # which empties the cache before
        blocks(20)
    assert reserved() == 20 and second.pool() == handle


def test_tensors_outlive_their_graph(claimed: memprof.Capture) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept, gone = blocks(), blocks(20)
    del gone
    graph.reset()
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (12, 12)
    del kept
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (0, 0)


def test_a_graph_is_captured_by_hand(claimed: memprof.Capture) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(pool=torch.cuda.graph_pool_handle())
        kept = blocks()
        with torch.cuda.stream(torch.cuda.Stream()), pytest.raises(RuntimeError, match="on the same stream"):
            graph.capture_end()
        graph.capture_end()
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
    graph.replay()
    assert reserved() == 12
    del kept
    graph.reset()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        graph.capture_end()


def test_a_workspace_of_cublas_stays_in_the_pool(claimed: memprof.Capture) -> None:
    """The first product on a stream takes 8.125 MiB, and keeps it. A segment has 20 MiB."""
    x = torch.empty(1024, 1024, device="cuda")
    torch.mm(x, x)
    assert reserved() == 20  # for two matrices and the workspace of the default stream
    graph, other = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mm(x, x)
    assert (reserved(), torch.cuda.memory_allocated()) == (40, 4 * MiB + 2 * 8_519_680)
    with torch.cuda.graph(other):  # on the same stream
        torch.mm(x, x)
    assert (reserved(), torch.cuda.memory_allocated()) == (60, 4 * MiB + 2 * 8_519_680)
    graph.reset()
    other.reset()
    torch.cuda.empty_cache()
    assert reserved() == 40
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (20, 4)


@pytest.mark.parametrize("read", ["item", "cpu", "tolist", "nonzero", "mask", "bool", "synchronize", "stream", "to"])
def test_a_captured_stream_cannot_be_waited_for(claimed: memprof.Capture, read: str) -> None:
    x = torch.ones(1, device="cuda")
    reads: dict[str, Any] = {
        "item": x.item,
        "cpu": x.cpu,
        "tolist": x.tolist,
        "nonzero": x.nonzero,
        "mask": lambda: x[x > 0],
        "bool": lambda: bool(x),
        "synchronize": torch.cuda.synchronize,
        "stream": lambda: torch.cuda.current_stream().synchronize(),
        "to": lambda: torch.ones(1).to("cuda"),
    }
    reads[read]()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="failed due to a previous error during capture") as raised:
        with torch.cuda.graph(graph):
            reads[read]()
    assert "operation not permitted when stream is capturing" in str(raised.value.__context__)
    torch.cuda.set_stream(torch.cuda.default_stream())  # as PyTorch, the context does not restore it then
    reads[read]()


def test_a_copy_that_nobody_waits_for_is_captured(claimed: memprof.Capture) -> None:
    x, y, index = torch.ones(10, device="cuda"), torch.ones(10), torch.zeros(3, dtype=torch.long, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        y.copy_(x, non_blocking=True)
        x.copy_(x + 1)
        x[index] = x[index % 2]
        x[x > 0] = 0
        torch.repeat_interleave(x, torch.ones_like(x, dtype=torch.long), output_size=10)


def test_captures_do_not_nest(claimed: memprof.Capture) -> None:
    outer, inner = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="previous error during capture"), torch.cuda.graph(outer):
        with torch.cuda.graph(inner):
            pass
    torch.cuda.set_stream(torch.cuda.default_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="present state"):
            inner.capture_begin()
        with pytest.raises(RuntimeError, match="previous error"):
            graph.capture_end()


def test_an_exception_ends_a_capture(claimed: memprof.Capture) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(KeyError), torch.cuda.graph(graph):
        kept = blocks()
        raise KeyError("x")
    graph.replay()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() and reserved() == 12
    del kept
    other = blocks()
    assert reserved() == 24
    del other


def test_another_thread_allocates_from_its_own_pool(claimed: memprof.Capture) -> None:
    made: list[Any] = []
    graph = torch.cuda.CUDAGraph()

    def work() -> None:
        assert not torch.cuda.is_current_stream_capturing() and torch.cuda.current_stream() == torch.cuda.default_stream()
        made.append(blocks())

    with torch.cuda.graph(graph):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    graph.reset()
    torch.cuda.empty_cache()
    made.clear()
    assert reserved() == 12
    torch.cuda.empty_cache()
    assert reserved() == 0


def test_threads_capture_one_after_the_other(claimed: memprof.Capture) -> None:
    graphs: list[Any] = []

    def capture() -> None:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], stream=torch.cuda.Stream()):
            blocks()

    for _ in range(3):
        thread = threading.Thread(target=capture)
        thread.start()
        thread.join()
    assert len({graph.pool() for graph in graphs}) == 3 and reserved() == 36


def test_a_stream_that_waits_for_a_captured_one_is_captured(claimed: memprof.Capture) -> None:
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            assert torch.cuda.is_current_stream_capturing()
            kept = blocks()
        torch.cuda.current_stream().wait_stream(side)
        event.record()
        late = torch.cuda.Stream()
        late.wait_event(event)
        with torch.cuda.stream(late):
            more = blocks(20)
    assert {one["segment_pool_id"] for one in torch.cuda.memory_snapshot()} == {graph.pool()}
    with torch.cuda.stream(side):
        assert not torch.cuda.is_current_stream_capturing()
    del kept, more


@pytest.mark.parametrize("how", ["at once", "by an event", "through another", "without work"])
def test_a_captured_stream_is_joined(claimed: memprof.Capture, how: str) -> None:
    x, side, other = torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        main = torch.cuda.current_stream()
        with torch.cuda.stream(side):
            side.wait_stream(main)
            if how == "without work":
                torch.empty(4, device="cuda").view(2, 2)
            else:
                x.add_(1)
            event = side.record_event()
        if how == "at once":
            main.wait_stream(side)
        elif how == "by an event":
            main.wait_event(event)
        elif how == "through another":
            event.wait(other)
            main.wait_stream(other)
    assert not torch.cuda.is_current_stream_capturing()


@pytest.mark.parametrize("how", ["never", "too early"])
def test_a_capture_with_work_that_nobody_waits_for_fails(claimed: memprof.Capture, how: str) -> None:
    x, side, graph = torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capturing stream has unjoined work"), torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        if how == "too early":
            main.wait_stream(side)
        with torch.cuda.stream(side):
            x.add_(1)
    torch.cuda.set_stream(torch.cuda.default_stream())
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    x.sum().item()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x + 1


def test_a_made_up_handle_is_a_pool(claimed: memprof.Capture) -> None:
    """PyTorch makes a pool for any pair of numbers."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=(7, 9)):
        blocks()
    assert graph.pool() == (7, 9) and {one["segment_pool_id"] for one in torch.cuda.memory_snapshot()} == {(7, 9)}


def test_graphed_callables(claimed: memprof.Capture) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024, bias=False), torch.nn.ReLU()).to("cuda")
    x = torch.randn(1024, 1024, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(model, (x,))
    # In the pool the output and the gradients of x and the weight; outside it x, the weight and the output's gradient; in both the
    # workspaces of a stream for the forward and the backward pass.
    pools = {one["segment_pool_id"]: 0 for one in torch.cuda.memory_snapshot()}
    for one in torch.cuda.memory_snapshot():
        pools[one["segment_pool_id"]] += one["allocated_size"]
    # From 2.14 on, it was the stream of the warm-up before.
    in_pool = 0 if VERSION >= (2, 14) else 2 * 8_519_680
    assert pools == {(0, 0): 3 * 4 * MiB + 2 * 8_519_680, (0, 1): 3 * 4 * MiB + in_pool}
    before = torch.cuda.memory_stats()
    for _ in range(3):
        y = torch.randn(1024, 1024, device="cuda")
        loss = graphed(y).sum()
        loss.backward()
        del loss
    now = torch.cuda.memory_stats()
    # Only y is new: the gradient of the weight is the one in the pool.
    assert now["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] == 4 * MiB
    address = model[0].weight.grad.untyped_storage().data_ptr()
    graphed(y).sum().backward()
    assert model[0].weight.grad.untyped_storage().data_ptr() == address
    model.eval()
    graphed(x)


def test_graphed_callables_with_mixed_precision(claimed: memprof.Capture) -> None:
    model = torch.nn.Linear(256, 256).to("cuda")
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="autocast caching"):
        torch.cuda.make_graphed_callables(model, (x,))
    with torch.autocast("cuda", cache_enabled=False):
        graphed = torch.cuda.make_graphed_callables(model, (x,))
        assert graphed(x).dtype == torch.float16
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cuda", cache_enabled=False):
        loss = graphed(x).float().sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_whole_step_is_captured(claimed: memprof.Capture) -> None:
    """PyTorch's own example of whole-network capture."""
    model = torch.nn.Sequential(torch.nn.Linear(1024, 512), torch.nn.Dropout(p=0.2), torch.nn.Linear(512, 16)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    static_input, static_target = torch.randn(64, 1024, device="cuda"), torch.randn(64, 16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(static_input), static_target).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        static_loss = torch.nn.functional.mse_loss(model(static_input), static_target)
        static_loss.backward()
        optimizer.step()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    for _ in range(3):
        static_input.copy_(torch.randn(64, 1024, device="cuda"))
        graph.replay()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] - before == 3
    assert isinstance(static_loss.item(), float)


def test_reduced_overhead_runs_eagerly_and_says_so(claimed: memprof.Capture, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.compile(torch.nn.Linear(16, 16).to("cuda"), mode="reduce-overhead")
    model(torch.randn(4, 16, device="cuda")).sum().backward()
    assert "torch.compile has no effect" in capsys.readouterr().err


def test_graphs_have_seeds(claimed: memprof.Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
    for graph in graphs:
        with torch.cuda.graph(graph):
            pass
    assert reserved() == (2 if VERSION < (2, 13) else 0)


def test_an_optimizer_that_is_not_capturable_is_refused_in_a_capture(claimed: memprof.Capture) -> None:
    weight = torch.ones(4, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="capturable"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        optimizer.step()


def test_classes_from_before_the_capture_work() -> None:
    graph_class, stream_class, event_class, pool_class = torch.cuda.CUDAGraph, torch.cuda.Stream, torch.cuda.Event, torch.cuda.MemPool
    with memprof.no_dispatch(device="gpu-24gb"):
        stream, event, graph, pool = stream_class(), event_class(), graph_class(), pool_class()
        with torch.cuda.graph(graph, stream=stream):
            kept = blocks()
        event.record(stream)
        with torch.cuda.use_mem_pool(pool):
            more = blocks()
        assert reserved() == 24
        del kept, more
    assert torch.cuda.Stream is stream_class


def test_a_subclass_from_before_the_capture_works() -> None:
    class Mine(torch.cuda.CUDAGraph):  # type: ignore[misc]
        pass

    with pytest.raises(RuntimeError):
        Mine()
    with memprof.no_dispatch(device="gpu-24gb"):
        mine = Mine()
        with torch.cuda.graph(mine):
            blocks()
        assert reserved() == 12
    del mine  # after its device
    with memprof.no_dispatch(device="gpu-24gb"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kept = blocks(20)
        assert reserved() == 20
        del kept
    with pytest.raises(RuntimeError):
        torch.cuda.CUDAGraph()


# --- pools


def test_a_pool_takes_the_blocks_of_its_context(claimed: memprof.Capture) -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept, gone = blocks(), blocks(20)
        made: list[Any] = []
        thread = threading.Thread(target=lambda: made.append(blocks(30)))  # not of this thread
        thread.start()
        thread.join()
    del gone
    torch.cuda.empty_cache()
    assert (reserved(), allocated()) == (62, 42) and pool.use_count() == 1
    (first, second) = sorted(pool.snapshot(), key=lambda one: one["total_size"])
    assert (first["total_size"], first["allocated_size"], second["total_size"], second["allocated_size"]) == (
        12 * MiB,
        12 * MiB,
        20 * MiB,
        0,
    )
    assert first["segment_pool_id"] == pool.id and [one["state"] for one in second["blocks"]] == ["inactive"]
    del pool
    assert reserved() == 42  # what it had free is given back at once
    del kept
    torch.cuda.empty_cache()
    assert reserved() == 30


def test_a_backward_pass_does_not_use_the_pool(claimed: memprof.Capture) -> None:
    """PyTorch makes it on a thread of its own."""
    weight = torch.nn.Parameter(blocks())
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        (weight * 2).backward(torch.empty_like(weight))
    assert [one["total_size"] for one in pool.snapshot()] == [12 * MiB] * 2  # the product, and its gradient
    assert weight.grad is not None and reserved() == 48


def test_the_inner_pool_is_used(claimed: memprof.Capture) -> None:
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        with torch.cuda.use_mem_pool(inner):
            kept = blocks()
        more = blocks(20)
        with pytest.raises(RuntimeError, match="already recording to mempool_id"), torch.cuda.use_mem_pool(outer):
            pass
    assert [one["total_size"] for one in inner.snapshot()] == [12 * MiB]
    assert [one["total_size"] for one in outer.snapshot()] == [20 * MiB]
    del kept, more


def test_a_graph_and_a_pool_are_one(claimed: memprof.Capture) -> None:
    pool, graph = torch.cuda.MemPool(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        blocks()
    with torch.cuda.use_mem_pool(pool), torch.cuda.stream(torch.cuda.graph.default_capture_stream):
        kept = blocks()
    assert reserved() == 12 and pool.use_count() == 2
    del kept, pool
    torch.cuda.empty_cache()
    assert reserved() == 12
    graph.reset()
    torch.cuda.empty_cache()
    assert reserved() == 0


def test_a_pool_that_does_not_divide(claimed: memprof.Capture) -> None:
    if "no_split" not in torch.cuda.MemPool.__init__.__code__.co_varnames:
        pytest.skip("this torch has no such option")
    with torch.cuda.use_mem_pool(torch.cuda.MemPool(no_split=True)):
        kept = [torch.empty(100, device="cuda") for _ in range(3)]
    assert reserved() == 6
    del kept


def test_pools_that_cannot_be_simulated_are_named(claimed: memprof.Capture, capsys: pytest.CaptureFixture[str]) -> None:
    for refused in (
        lambda: torch.cuda.MemPool(object()),
        lambda: torch.cuda.memory.CUDAPluggableAllocator("alloc.so", "allocate", "free"),
        lambda: torch.cuda.memory.change_current_allocator(object()),
    ):
        with pytest.raises(RuntimeError, match="allocator of the program's own cannot be simulated"):
            refused()
    torch.cuda.MemPool(use_on_oom=True)
    assert "does not use the pool when the device is full" in capsys.readouterr().err


# --- streams


def test_streams_share_no_memory(claimed: memprof.Capture) -> None:
    blocks()
    side = torch.cuda.Stream()
    with side:
        assert torch.cuda.current_stream() == side != torch.cuda.default_stream()
        blocks()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert reserved() == 24
    streams = [torch.cuda.Stream() for _ in range(32)]
    assert streams[-1] == side and len({one.cuda_stream for one in streams}) == 32


def test_the_profile_names_streams_and_pools() -> None:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        default = blocks(40)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = blocks()
            blocks(20)
        del kept
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            blocks(30)
    rows = {(row.stream, row.pool): row for row in capture.profile.space("cuda:0").streams}
    assert rows.keys() == {("0x1", "1:0"), ("0x2", "")}
    row = rows["0x1", "1:0"]
    assert (row.reserved_peak, row.reserved_current, row.cumulative_peak, row.cumulative_current) == (
        32 * MiB,
        32 * MiB,
        32 * MiB,
        0,
    )
    assert row.allocation_count == 2 and rows["0x2", ""].reserved_peak == 30 * MiB
    assert "32.0 MiB live, on stream 0x1, private pool 1:0" in " ".join(capture.profile.text().split())
    space = capture.profile.space("cuda:0")
    assert space.reserved.peak == 102 * MiB and space.cumulative_peak == 72 * MiB
    del default


# --- scripts

SCRIPT = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=1)
batch = parser.parse_args().batch_size
weight = torch.nn.Parameter(torch.empty(5 << 20, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
weight.grad = torch.empty_like(weight)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    torch.empty(batch * 50 << 18, device="cuda")  # a warm-up, which is given back
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    kept = torch.empty(batch * 10 << 18, device="cuda")
    torch.empty(batch * 20 << 18, device="cuda")
torch.empty(batch * 40 << 18, device="cuda")  # not from the pool
for _ in range(2):
    graph.replay()
    optimizer.step()
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTORCH_")}
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


def test_fit_counts_the_pool_of_a_graph(tmp_path: pathlib.Path) -> None:
    """20 MiB each for the parameter and its gradient. Of a batch, 30 MiB are the graph's, of which 10 are in use, and 40 others'. The
    warm-up's 50 are given back before the capture."""
    (tmp_path / "train.py").write_text(SCRIPT)
    answer = run("memprof", "fit", "--device", "1000MiB", "--context", "0", "--json", tmp_path / "train.py", "--batch-size", 2)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    document = json.loads(answer.stdout)
    given, parts = document["given"], {part["part"]: part["bytes"] // MiB for part in document["given"]["parts"]}
    seeds = 2 if VERSION < (2, 13) else 0
    assert (given["live"] // MiB, given["reserved"] // MiB) == (140, 180 + seeds)
    assert parts["free in private pools"] == 40 and parts.get("rounding and fragmentation", 0) <= seeds
    # 40 + 70 * 13 of 1,000 MiB; the warm-up needs only 40 + 50 * 13.
    assert document["largest"]["value"] == 13 and document["largest"]["outcome"]["reserved"] == (950 + seeds) * MiB


def test_fit_counts_the_fraction_that_a_script_sets(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, torch\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--batch-size', type=int)\n"
        "torch.cuda.set_per_process_memory_fraction(0.5)\n"
        "kept = torch.empty(parser.parse_args().batch_size, 20 << 18, device='cuda')\n"
    )
    answer = run("memprof", "fit", "--device", "1000MiB", "--context", "0", "--json", tmp_path / "train.py", "--batch-size", 2)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert json.loads(answer.stdout)["largest"]["value"] == 25  # 20 MiB each, of 500


def test_fit_goes_on_until_a_graph_is_replayed(tmp_path: pathlib.Path) -> None:
    """PyTorch's recipe makes three steps before the capture."""
    (tmp_path / "train.py").write_text(
        "import argparse, pathlib, torch\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--batch-size', type=int)\n"
        "batch = parser.parse_args().batch_size\n"
        "model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "x = torch.randn(batch, 1024, device='cuda')\n"
        "def step():\n"
        "    optimizer.zero_grad()\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n"
        "side = torch.cuda.Stream()\n"
        "with torch.cuda.stream(side):\n"
        "    for _ in range(3): step()\n"
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph): step()\n"
        "for count in range(9):\n"
        "    graph.replay()\n"
        "    pathlib.Path(__file__).with_name(f'replayed_{count}').touch()\n"
    )
    answer = run("memprof", "fit", "--device", "1000MiB", "--context", "0", "--json", tmp_path / "train.py", "--batch-size", 1024)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    parts = {part["part"]: part["bytes"] for part in json.loads(answer.stdout)["given"]["parts"]}
    assert parts["free in private pools"] > 0
    assert sorted(path.name for path in tmp_path.glob("replayed_*")) == ["replayed_0"]  # the second ends the trial
