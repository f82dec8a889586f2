"""Streams, CUDA graphs and memory pools of a CUDA device that is not there."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import time
import weakref

import torch

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What a program knows a pool by: the first number is of a graph's own, the second of one that the program has made.
PoolId = tuple[int, int]

_CAPTURING = "CUDA error: operation not permitted when stream is capturing"
_UNJOINED = "CUDA error: capturing stream has unjoined work"
_INVALIDATED = "CUDA error: operation failed due to a previous error during capture"

# --- streams


def _current_stream() -> Any:
    return torch.cuda.current_stream()


def _set_stream(stream: Any) -> None:
    torch.cuda.set_stream(stream)


class Stream(torch.Stream):
    #: PyTorch hands out the same 32 streams of each priority in turn.
    _numbers = (itertools.cycle(range(1, 33)), itertools.cycle(range(33, 65)))

    def __new__(cls, device: Any = None, priority: int = 0, **rest: Any) -> Stream:
        stream = super().__new__(cls, device="cuda:0")
        known = rest.get("stream_ptr", rest.get("stream_id"))
        stream._number = next(Stream._numbers[priority < 0]) if known is None else int(known)
        stream._outer = []
        return stream

    _number: int
    _outer: list[Any]  # of streams that were current before `with`

    @property
    def cuda_stream(self) -> int:
        return self._number

    @property
    def stream_id(self) -> int:  # type: ignore[override]
        return self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._number == self._number

    def __ne__(self, other: object) -> bool:  # the base has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self._number)

    def __enter__(self) -> Stream:
        self._outer.append(_current_stream())
        _set_stream(self)
        return self

    def __exit__(self, *args: object) -> None:
        _set_stream(self._outer.pop())

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        _core._join_claimed_capture(self._number, getattr(event, "_capture", 0), getattr(event, "_mark", 0))

    def wait_stream(self, stream: Any) -> None:
        number = getattr(stream, "_number", 0)
        _core._join_claimed_capture(self._number, _core._claimed_capture_of(number), _core._mark_claimed_stream(number))

    def synchronize(self) -> None:
        if _core._claimed_capture_of(self._number) != 0:
            synchronize()

    def query(self) -> bool:
        self.synchronize()
        return True

    def is_capturing(self) -> bool:
        return _core._claimed_capture_of(self._number) != 0

    @property
    def priority(self) -> int:
        return -1 if 32 < self._number <= 64 else 0

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:0 cuda_stream={self._number:#x}>"

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._number)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._number


class ExternalStream(Stream):
    """One that another library has made; or PyTorch, whose stream it is then."""

    def __new__(cls, stream_ptr: int, device: Any = None, **rest: Any) -> Any:
        return super().__new__(cls, device, stream_ptr=stream_ptr)


class Event(torch.Event):
    _capture = 0  # of the stream that recorded it last
    _mark = 0  # how far that stream was
    _time: float | None = None  # in seconds
    _is_timed = False

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **rest: Any) -> Event:
        event = super().__new__(cls, device="cuda:0", enable_timing=enable_timing)
        event._is_timed = enable_timing
        return event

    def record(self, stream: Any = None) -> None:
        stream = _current_stream() if stream is None else stream
        number = getattr(stream, "_number", 0)
        self._capture, self._mark = _core._claimed_capture_of(number), _core._mark_claimed_stream(number)
        self._time = time.perf_counter()
        super().record(stream)

    @property
    def cuda_event(self) -> int:
        """0 until it is recorded, as in PyTorch, which makes it then."""
        return 0 if self._time is None else id(self)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"

    def wait(self, stream: Any = None) -> None:
        (_current_stream() if stream is None else stream).wait_event(self)

    def elapsed_time(self, end_event: Any) -> float:
        """What the simulation took; more than nothing, since programs divide by it."""
        if not (self._is_timed and end_event._is_timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        milliseconds: float = (end_event._time - self._time) * 1e3
        return max(milliseconds, 1e-3)


class Streams(threading.local):
    """The current stream of each thread."""

    def __init__(self, default: Stream) -> None:
        self.current = default

    def use(self, stream: Any) -> None:
        if stream is not None:
            self.current = stream
            _core._use_claimed_stream(getattr(stream, "_number", 0))


def synchronize(device: Any = None) -> None:
    """No stream can be waited for while one is captured."""
    if _core._fail_claimed_captures():
        raise RuntimeError(_CAPTURING)


def is_current_stream_capturing() -> bool:
    return _core._claimed_capture_of(_current_stream()._number) != 0


# --- pools

_last_pools = [0, 0]


def new_pool(is_of_program: bool) -> PoolId:
    _last_pools[is_of_program] += 1
    return (0, _last_pools[1]) if is_of_program else (_last_pools[0], 0)


def graph_pool_handle() -> PoolId:
    return new_pool(is_of_program=True)


def _retain(pool: PoolId, whole: bool = False) -> None:
    if not _core._retain_claimed_pool(pool, whole):
        raise RuntimeError(f"it->second->use_count > 0 INTERNAL ASSERT FAILED: the graphs of pool {pool} are gone, and it still holds memory")


def begin_to_pool(pool: PoolId, stream: int | None = None) -> int:
    """Of a stream that is captured, or of this thread. Returns the capture's number."""
    _retain(pool)
    if _core._is_claimed_pool_used(pool):
        raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
    if stream is not None:
        return _core._begin_claimed_capture(pool, stream)
    _core._begin_claimed_use(pool)
    return 0


def end_to_pool(pool: PoolId) -> None:
    if not _core._end_claimed_use(pool):
        raise RuntimeError("endAllocatePool: not currently recording to mempool_id")


def memory_snapshot(mempool_id: PoolId | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    segments: list[dict[str, Any]] = _core._claimed_device_segments()
    return [one for one in segments if mempool_id is None or one["segment_pool_id"] == tuple(mempool_id)]


def refuse_allocator(*args: Any, **rest: Any) -> None:
    raise RuntimeError("memprof: an allocator of the program's own cannot be simulated on the claimed device: what it takes is not known")


class _HeldPool:
    """Releases a pool once nobody refers to it any more, if its device is still there."""

    def __init__(self, pool: PoolId) -> None:
        self.pool, self._run = pool, _runs[0]

    def __del__(self) -> None:
        if self._run == _runs[0]:
            _core._release_claimed_pool(self.pool)
            _core._empty_claimed_pool(self.pool)


class PoolBase:
    """`torch._C._MemPool`."""

    def __init__(
        self, allocator: Any = None, is_user_created: bool = True, use_on_oom: bool = False, no_split: bool = False, **rest: Any
    ) -> None:
        if allocator is not None:
            refuse_allocator()
        if use_on_oom:
            print("memprof: MemPool(use_on_oom=True): the simulation does not use the pool when the device is full", file=sys.stderr)
        pool = new_pool(is_user_created)
        _retain(pool, no_split)
        self._held = _HeldPool(pool)

    @property
    def id(self) -> PoolId:
        return self._held.pool

    @property
    def allocator(self) -> None:
        return None

    @property
    def device(self) -> int:
        return 0

    def use_count(self) -> int:
        return int(_core._claimed_pool_users(self._held.pool))


class MemPool(PoolBase):
    """`torch.cuda.MemPool`."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False, **rest: Any) -> None:
        super().__init__(allocator, True, use_on_oom, no_split)

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        return memory_snapshot(self.id)


# --- graphs

#: The simulations so far: what is left of an earlier one has no device any more.
_runs = [0]


def begin_run() -> Streams:
    _runs[0] += 1
    _last_pools[:] = [0, 0]
    _open_graphs.clear()
    graph: Any = torch.cuda.graphs.graph
    graph.default_capture_stream = None  # a stream of an earlier one
    Stream._numbers = (itertools.cycle(range(1, 33)), itertools.cycle(range(33, 65)))
    return Streams(Stream(stream_id=0))


#: Up to torch 2.12, a capture begins with two numbers on the device, which all graphs share.
_have_seeds = tuple(int(number) for number in torch.__version__.split(".")[:2]) < (2, 13)


class _HeldGraph:
    """What a graph holds, until nobody refers to it any more."""

    _seeds: list[torch.Tensor] = []
    _holders: set[int] = set()

    def __init__(self) -> None:
        self.pool: PoolId = (0, 0)
        self.is_captured = False
        self._run = _runs[0]

    def take_seeds(self) -> None:
        if not _have_seeds:
            return
        if not self._holders:
            self._seeds.extend(torch.empty(1, dtype=torch.long, device="cuda") for _ in range(2))
        self._holders.add(id(self))

    def reset(self) -> None:
        self._holders.discard(id(self))
        if not self._holders:
            self._seeds.clear()
        if self.is_captured and self._run == _runs[0]:
            _core._release_claimed_pool(self.pool)
        self.is_captured = False

    def __del__(self) -> None:
        self.reset()


#: The graphs whose captures are open, by the captures' numbers.
_open_graphs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_replay_observers: list[Any] = []


def observe_replays(told: Callable[[Any], None]) -> None:
    """Calls `told(graph)` after each replay of a graph."""
    _replay_observers.append(told)


def captured_graph() -> Any:
    """The graph that the calling thread's stream is captured for, if any."""
    return _open_graphs.get(_core._claimed_capture_of(_stream_number()))


def is_on_side_stream() -> bool:
    return _stream_number() != 0


def _stream_number() -> int:
    """0: the default stream, or that of a device that is not claimed."""
    return int(getattr(_current_stream(), "_number", 0)) if torch.cuda.is_available() else 0


class CapturedGraph:
    """`torch._C._CUDAGraph`: which memory a graph holds. It does nothing when it is replayed."""

    _capture = 0
    _is_instantiated = False

    def __init__(self, keep_graph: bool = False) -> None:
        self._keeps_graph = keep_graph
        self._held = _HeldGraph()
        self._stream = _current_stream()

    def capture_begin(self, pool: PoolId | None = None, capture_error_mode: str = "global", **rest: Any) -> None:
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._is_instantiated:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        stream = _current_stream()
        if stream == torch.cuda.default_stream():
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on the "
                "default stream.)"
            )
        self._held.take_seeds()
        self._stream = stream
        self._held.pool = new_pool(is_of_program=False) if pool is None or tuple(pool) == (0, 0) else (pool[0], pool[1])
        is_nested = _core._claimed_capture_of(stream._number) != 0
        capture = begin_to_pool(self._held.pool, stream._number)
        if is_nested:
            _core._fail_claimed_captures()
            raise RuntimeError("CUDA error: the operation cannot be performed in the present state")
        self._capture = capture
        _open_graphs[capture] = self

    def capture_end(self) -> None:
        stream = _current_stream()
        if stream != self._stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        if _core._has_claimed_capture_failed(self._capture):
            raise RuntimeError(_INVALIDATED)
        if self._capture == 0 or _core._claimed_capture_of(stream._number) != self._capture:
            raise RuntimeError("CUDA error: the operation cannot be performed in the present state")
        if not _core._is_claimed_capture_joined(self._capture):
            _core._fail_claimed_capture(self._capture)
            raise RuntimeError(_UNJOINED)
        _open_graphs.pop(self._capture, None)
        self._capture = 0
        end_to_pool(self._held.pool)
        self._held.is_captured = True
        self._is_instantiated = not self._keeps_graph

    def instantiate(self) -> None:
        if not self._held.is_captured:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._is_instantiated and not self._keeps_graph:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        self._is_instantiated = True

    def replay(self) -> None:
        if not self._held.is_captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self._is_instantiated = True
        for told in _replay_observers:
            told(self)

    def reset(self) -> None:
        self._held.reset()
        self._is_instantiated = False
        self._capture = 0

    def pool(self) -> PoolId:
        if not self._held.is_captured:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._held.pool

    def register_generator_state(self, generator: Any) -> None:
        pass

    def enable_debug_mode(self) -> None:
        pass

    def debug_dump(self, debug_path: str) -> None:
        pass

    def raw_cuda_graph(self) -> int:
        return self._has_no_handle()

    def raw_cuda_graph_exec(self) -> int:
        return self._has_no_handle()

    def _has_no_handle(self) -> int:
        raise RuntimeError("memprof: a graph of the claimed device has no handle")
