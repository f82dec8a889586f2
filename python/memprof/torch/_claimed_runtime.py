"""CUDA's runtime, handles of its libraries and raw allocations, of a CUDA device that is not there."""

from __future__ import annotations

import ctypes
import enum
import functools
import types

import torch

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CudaError(enum.IntEnum):
    success = 0


_states: Any = vars(torch.autograd)["ProfilerState"]  # without a type
#: What `cudaStreamCreate` hands out, beyond the numbers of PyTorch's own streams.
_first_stream_of_program = 1 << 20
#: What a library's handle is: no address of anything.
_handle = 1 << 20


class Runtime:
    """What programs call of `torch.cuda.cudart()`. `memory_info` is that of `torch.cuda.mem_get_info`."""

    cudaError = CudaError

    def __init__(self, memory_info: Callable[[], tuple[int, int]]) -> None:
        self._memory_info = memory_info
        self._streams = _first_stream_of_program

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        return self._memory_info()

    def cudaGetErrorString(self, error: Any) -> str:
        return "no error" if error == CudaError.success else "unrecognized error code"

    def cudaStreamCreate(self, address: int) -> CudaError:
        """`address` is of a `cudaStream_t`, which it sets."""
        self._streams += 1
        ctypes.c_size_t.from_address(address).value = self._streams
        return CudaError.success

    def cudaStreamDestroy(self, stream: int) -> CudaError:
        return CudaError.success

    def cudaHostRegister(self, address: int, size: int, flags: int) -> CudaError:
        return CudaError.success

    def cudaHostUnregister(self, address: int) -> CudaError:
        return CudaError.success

    def cudaProfilerStart(self) -> CudaError:
        return CudaError.success

    def cudaProfilerStop(self) -> CudaError:
        return CudaError.success


class RawBlocks:
    """`torch.cuda.caching_allocator_alloc` and `caching_allocator_delete`: blocks that no tensor of the program has."""

    def __init__(self) -> None:
        self._held: dict[int, torch.Tensor] = {}

    def allocate(self, size: int, stream: int) -> int:
        if size == 0:
            return 0
        current = int(getattr(torch.cuda.current_stream(), "cuda_stream", 0))
        _core._use_claimed_stream(stream)
        try:
            block = torch.empty(size, dtype=torch.uint8, device="cuda")
        finally:
            _core._use_claimed_stream(current)
        address = block.untyped_storage().data_ptr()
        self._held[address] = block
        return address

    def delete(self, address: int) -> None:
        if address != 0 and self._held.pop(address, None) is None:
            raise RuntimeError(f"invalid device pointer: {address:#x}")


def calls_of_binding(runtime: Runtime, blocks: RawBlocks, set_fraction: Callable[[float], None], total: int) -> dict[str, Any]:
    """Functions of `torch._C`, which those of `torch.cuda` call: the program may have names of its own for the latter."""
    state = types.SimpleNamespace(is_caching=True, sync_debug_mode=0)
    return {
        "_cudart": runtime,
        "_cuda_cudaCachingAllocator_raw_alloc": blocks.allocate,
        "_cuda_cudaCachingAllocator_raw_delete": blocks.delete,
        "_cuda_cudaCachingAllocator_enable": lambda value: setattr(state, "is_caching", bool(value)),
        "_cuda_cudaCachingAllocator_is_enabled": lambda: state.is_caching,
        "_cuda_setMemoryFraction": lambda fraction, device: set_fraction(fraction),
        "_cuda_getMemoryFraction": lambda device: int(_core._claimed_memory_fraction() * total) / total,
        "_cuda_getCurrentBlasHandle": lambda: _handle,
        "_cuda_getCurrentSolverHandle": lambda: _handle + 1,
        "_cuda_set_sync_debug_mode": lambda mode: setattr(state, "sync_debug_mode", mode),
        "_cuda_get_sync_debug_mode": lambda: state.sync_debug_mode,
        "_cuda_getStreamFromExternal": lambda pointer, device: (pointer, 0, 1),
        "_cuda_getCurrentStream": lambda device: (torch.cuda.current_stream().cuda_stream, 0, 1),
        "_cuda_getCurrentRawStream": lambda device: torch.cuda.current_stream().cuda_stream,
        "_cuda_getDefaultStream": lambda device: (0, 0, 1),
        "_cuda_getDevice": lambda: 0,
        "_cuda_synchronize": lambda: torch.cuda.synchronize(),
        "_cuda_emptyCache": _core._empty_claimed_device_cache,
        "_cuda_memoryStats": lambda device: torch.cuda.memory.memory_stats_as_nested_dict(device),
        "_cuda_resetPeakMemoryStats": lambda device: _core._reset_claimed_device_peaks(),
        "_cuda_resetAccumulatedMemoryStats": lambda device: _core._reset_claimed_device_sums(),
        "_cuda_hostMemoryStats": lambda: {},
        "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
        "_cuda_resetPeakHostMemoryStats": lambda: None,
        # As `DataParallel` calls them, with the one device there is.
        "_broadcast": lambda tensor, devices: [tensor.to("cuda")],
        "_broadcast_coalesced": lambda tensors, devices, buffer_size: [[tensor.to("cuda") for tensor in tensors]],
        "_scatter": lambda tensor, devices, chunk_sizes, dim, streams: [tensor.to("cuda")],
        "_gather": lambda tensors, dim, destination: torch.cat(list(tensors), dim).to("cpu" if destination == -1 else "cuda"),
    }


def without_device_times(original: Callable[..., None]) -> Callable[..., None]:
    """`torch.autograd.profiler.profile.__init__`: there is no device that says when its kernels begin and end."""

    @functools.wraps(original)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        activities = torch.profiler.ProfilerActivity
        if getattr(self, "use_device", None) == "cuda":
            self.profiler_kind = _states.KINETO
            self.kineto_activities = (self.kineto_activities - {activities.CUDA}) or {activities.CPU}

    return initialize
