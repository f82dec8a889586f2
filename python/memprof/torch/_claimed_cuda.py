"""`torch.cuda` of a CUDA device that is not there: what a program finds on it in a simulation."""

from __future__ import annotations

import functools
import sys
import types

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from .. import _core
from ._patches import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Of the GPUs that the presets stand for: CUDA's name, compute capability, multiprocessors, MiB of L2 cache.
_known_devices = {
    "gpu-24gb": ("NVIDIA GeForce RTX 4090", (8, 9), 128, 72),
    "gpu-40gb": ("NVIDIA A100-SXM4-40GB", (8, 0), 108, 40),
    "gpu-80gb": ("NVIDIA A100-SXM4-80GB", (8, 0), 108, 40),
    "gpu-141gb": ("NVIDIA H200", (9, 0), 132, 50),
}
#: What a device without a limit says that it has.
_bytes_without_limit = 1 << 40


class ClaimedCuda:
    """The device of a simulation. `patches` make `torch.cuda` ask it."""

    def __init__(self, preset: str, capacity: int, patches: Patches) -> None:
        self._name, self._capability, self._multiprocessors, self._cache = _known_devices.get(
            preset, (f"memprof {preset}", (8, 0), 108, 40)
        )
        self._total = capacity or _bytes_without_limit
        self._peak_reserved = 0
        self._stream = self._default_stream = _Stream()
        self._patches = patches
        self._claim_device()
        self._claim_memory()
        self._claim_streams()
        self._claim_tensors()
        if torch.distributed.is_available():
            self._claim_data_parallel()

    def _set(self, owner: Any, **values: Any) -> None:
        for name, value in values.items():
            if hasattr(owner, name):  # versions differ
                self._patches.set(owner, name, value)

    def _set_in_cuda(self, **values: Any) -> None:
        """In each module of torch.cuda that has the name: they import from each other."""
        modules = [module for name, module in list(sys.modules.items()) if name == "torch.cuda" or name.startswith("torch.cuda.")]
        for name, value in values.items():
            for module in modules:
                if name in vars(module):
                    self._patches.set(module, name, value)

    def _claim_device(self) -> None:
        properties = types.SimpleNamespace(
            name=self._name,
            total_memory=self._total,
            major=self._capability[0],
            minor=self._capability[1],
            multi_processor_count=self._multiprocessors,
            L2_cache_size=self._cache << 20,
            warp_size=32,
            max_threads_per_block=1024,
            max_threads_per_multi_processor=2048 if self._capability != (8, 9) else 1536,
            regs_per_multiprocessor=65536,
            shared_memory_per_block=49152,
            is_integrated=False,
            is_multi_gpu_board=False,
            gcnArchName="",
            uuid="",
        )

        def get_properties(device: Any = None) -> types.SimpleNamespace:
            _check_device(device)
            return properties

        self._set_in_cuda(
            is_available=lambda: True,
            is_initialized=lambda: True,
            _lazy_init=lambda: None,
            init=lambda: None,
            device_count=lambda: 1,
            current_device=lambda: 0,
            set_device=lambda device: _check_device(device),
            get_device_properties=get_properties,
            can_device_access_peer=lambda device, peer_device: False,
            get_arch_list=lambda: [f"sm_{self._capability[0]}{self._capability[1]}"],
            cudart=lambda: types.SimpleNamespace(cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0),
            synchronize=lambda device=None: None,
            ipc_collect=lambda: None,
            is_current_stream_capturing=lambda: False,
            _exchange_device=lambda device: 0,
            _maybe_exchange_device=lambda device: 0,
            _sleep=lambda cycles: None,
            default_generators=(_Generator(device="cuda"),),
        )
        self._set(
            torch.cuda.nvtx,
            range_push=lambda message: 0,
            range_pop=lambda: 0,
            range_start=lambda message: 0,
            range_end=lambda identifier: None,
            mark=lambda message: None,
        )

    def _claim_memory(self) -> None:
        self._set_in_cuda(
            memory_stats_as_nested_dict=lambda device=None: self._stats(),
            reset_peak_memory_stats=lambda device=None: self._reset_peak(),
            reset_accumulated_memory_stats=lambda device=None: None,
            mem_get_info=lambda device=None: (self._total - self._reserved(), self._total),
            empty_cache=lambda: self._empty_cache(),
            set_per_process_memory_fraction=lambda fraction, device=None: None,
            get_per_process_memory_fraction=lambda device=None: 1.0,
            memory_snapshot=lambda *args, **kwargs: [],
            get_allocator_backend=lambda: "native",
            host_memory_stats=lambda: {},
            _record_memory_history=lambda *args, **kwargs: None,
            _snapshot=lambda *args, **kwargs: {"segments": [], "device_traces": []},
        )
        accelerator = getattr(torch, "accelerator", None)
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats"):
            self._set(accelerator, **{name: _distinct(getattr(torch.cuda, name))})
        self._set(
            accelerator,
            empty_cache=lambda: self._empty_cache(),
            reset_peak_memory_stats=lambda device=None: self._reset_peak(),
            get_memory_info=lambda device=None: (self._total - self._reserved(), self._total),
        )

    def _reserved(self) -> int:
        """A lower bound: of a caching allocator that wastes nothing and gives nothing back before `empty_cache`."""
        return _core._device_usage()[5]

    def _empty_cache(self) -> None:
        self._peak_reserved = max(self._peak_reserved, self._reserved())
        _core._reset_device_reserved()

    def _reset_peak(self) -> None:
        self._peak_reserved = 0
        _core._reset_device_peak()

    def _stats(self) -> dict[str, Any]:
        live, peak, allocated, allocations, deallocations, reserved = _core._device_usage()
        peak_reserved = max(self._peak_reserved, reserved)

        def of_all_pools(**values: int) -> dict[str, dict[str, int]]:
            return {"all": values, "large_pool": values, "small_pool": dict.fromkeys(values, 0)}

        of_bytes = of_all_pools(current=live, peak=peak, allocated=allocated, freed=allocated - live)
        blocks = allocations - deallocations
        of_blocks = of_all_pools(current=blocks, peak=blocks, allocated=allocations, freed=deallocations)
        of_reserved = of_all_pools(current=reserved, peak=peak_reserved, allocated=peak_reserved, freed=peak_reserved - reserved)
        nothing = of_all_pools(current=0, peak=0, allocated=0, freed=0)
        of_segments = of_all_pools(current=1, peak=1, allocated=1, freed=0)
        return {
            "allocation": of_blocks,
            "active": of_blocks,
            "segment": of_segments,
            "inactive_split": nothing,
            "allocated_bytes": of_bytes,
            "requested_bytes": of_bytes,
            "active_bytes": of_bytes,
            "reserved_bytes": of_reserved,
            "inactive_split_bytes": nothing,
            "oversize_allocations": nothing["all"],
            "oversize_segments": nothing["all"],
            "max_split_size": -1,
            "num_alloc_retries": 0,
            "num_ooms": 0,
            "num_sync_all_streams": 0,
            "num_device_alloc": 1,
            "num_device_free": 0,
        }

    def _claim_streams(self) -> None:
        def set_stream(stream: Any) -> None:
            if stream is not None:
                self._stream = stream

        self._set_in_cuda(
            Stream=_Stream,
            Event=_Event,
            current_stream=lambda device=None: self._stream,
            default_stream=lambda device=None: self._default_stream,
            set_stream=set_stream,
        )

    def _claim_tensors(self) -> None:
        """What libtorch's Python binding does without the dispatcher."""
        for name in ("tensor", "as_tensor"):
            self._set(torch, **{name: _made_on_the_cpu(getattr(torch, name))})
        self._set(torch.UntypedStorage, to=_storage_on(torch.UntypedStorage.to))
        self._set(
            torch.Tensor,
            pin_memory=lambda self, device=None: self,
            is_pinned=lambda self, device=None: False,
            record_stream=lambda self, stream: None,
        )

    def _claim_data_parallel(self) -> None:
        """Each process sums its gradients alone: a build without CUDA cannot send them, nor time the device."""
        from torch._C._distributed_c10d import Logger

        kind = torch.nn.parallel.DistributedDataParallel
        original: Callable[..., None] = kind.__init__

        @functools.wraps(original)
        def initialize(self: torch.nn.parallel.DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if any(parameter.is_cuda for parameter in self.parameters()):
                self.register_comm_hook(None, lambda state, bucket: _reduced_alone(bucket))

        self._set(kind, __init__=initialize)
        self._set(Logger, set_runtime_stats_and_log=lambda logger: None)


def _reduced_alone(bucket: Any) -> torch.futures.Future[torch.Tensor]:
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=["cuda:0"])
    done.set_result(bucket.buffer())
    return done


def _check_device(device: Any) -> None:
    index = torch.cuda._utils._get_device_index(device, optional=True)
    if index not in (-1, 0):
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}; the claimed device is 0")


def _distinct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but another object: torch._dynamo refuses to know one under two names."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


def _made_on_the_cpu(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`torch.tensor` copies data to its device below the simulation, where there is no device."""

    @functools.wraps(original)
    def made(data: Any, *, device: Any = None, requires_grad: bool = False, **rest: Any) -> torch.Tensor:
        if device is None:
            device = data.device if torch.is_tensor(data) else _default_device()
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if where.type != "cuda":
            return original(data, device=where, **rest).requires_grad_(requires_grad)
        on_cpu = data.detach() if torch.is_tensor(data) else original(data, device="cpu", **rest)
        return on_cpu.to(where, rest.get("dtype")).requires_grad_(requires_grad)

    return made


def _default_device() -> torch.device:
    open_modes: Callable[[], list[Any]] = _get_current_function_mode_stack
    mode = next((mode for mode in reversed(open_modes()) if isinstance(mode, DeviceContext)), None)
    context: Any = mode or getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return torch.device("cpu") if context is None else torch.device(context.device)


def _storage_on(original: Callable[..., Any]) -> Callable[..., Any]:
    """`UntypedStorage.to`, as `torch.load` calls it: libtorch's Python binding allocates storages without the dispatcher."""

    @functools.wraps(original)
    def to(self: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if where.type != "cuda":
            return original(self, device=where, non_blocking=non_blocking)
        return torch.empty(0, dtype=torch.uint8, device=self.device).set_(self).to(where).untyped_storage()

    return to


class _Generator(torch.Generator):
    """Has the state's size of CUDA's generators."""

    def get_state(self) -> torch.Tensor:
        return torch.zeros(16, dtype=torch.uint8)

    def set_state(self, state: torch.Tensor) -> torch.Generator:
        return self

    def graphsafe_get_state(self) -> torch.Generator:
        return self

    def graphsafe_set_state(self, state: torch.Generator) -> torch.Generator:
        return self


class _Stream(torch.Stream):
    cuda_stream = 0

    def __new__(cls, device: Any = None, priority: int = 0, **rest: Any) -> _Stream:
        return super().__new__(cls, device="cuda:0")

    def record_event(self, event: Any = None) -> Any:
        event = _Event() if event is None else event
        event.record(self)
        return event


class _Event(torch.Event):
    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **rest: Any) -> _Event:
        return super().__new__(cls, device="cuda:0", enable_timing=enable_timing)

    def elapsed_time(self, end_event: Any) -> float:
        return 0.0
