"""`torch.cuda` of a CUDA device that is not there: what a program finds on it in a simulation."""

from __future__ import annotations

import functools
import os
import sys
import types

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from .. import _core
from . import _claimed_graphs, _claimed_runtime, _claimed_types, _storages
from ._copy_warning import warn_of_copy
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

    def __init__(self, preset: str, capacity: int, is_limited: bool, patches: Patches) -> None:
        self._name, self._capability, self._multiprocessors, self._cache = _known_devices.get(
            preset, (f"memprof {preset}", (8, 0), 108, 40)
        )
        self._total = capacity or _bytes_without_limit
        self._is_limited = is_limited
        self._patches = patches
        self._process = os.getpid()
        _begin_allocator(capacity if is_limited else 0)
        self._claim_device()
        self._claim_memory()
        self._claim_runtime()
        self._streams = _claimed_graphs.begin_run()
        self._claim_streams()
        self._claim_pools()
        self._claim_tensors()
        if torch.distributed.is_available():
            self._claim_data_parallel()

    def forget_defaults(self) -> None:
        """The program's default type is no longer one of the device."""
        self._default_type.forget()

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
            is_initialized=lambda: not self._is_forked(),
            _is_in_bad_fork=self._is_forked,
            _lazy_init=self._check_process,
            init=self._check_process,
            device_count=lambda: 1,
            current_device=lambda: 0,
            set_device=lambda device: _check_device(device),
            get_device_properties=get_properties,
            can_device_access_peer=lambda device, peer_device: False,
            get_arch_list=lambda: [f"sm_{self._capability[0]}{self._capability[1]}"],
            synchronize=_claimed_graphs.synchronize,
            ipc_collect=lambda: None,
            _exchange_device=lambda device: 0,
            _maybe_exchange_device=lambda device: 0,
            _sleep=lambda cycles: None,
            default_generators=(_Generator(device="cuda"),),
        )
        # Recurrent layers are then computed without cuDNN, as by a torch without CUDA.
        self._set(torch.backends.cudnn, is_acceptable=lambda tensor: False)
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
            reset_peak_memory_stats=lambda device=None: _core._reset_claimed_device_peaks(),
            reset_accumulated_memory_stats=lambda device=None: _core._reset_claimed_device_sums(),
            mem_get_info=lambda device=None: self._info(),
            empty_cache=_core._empty_claimed_device_cache,
            memory_snapshot=_claimed_graphs.memory_snapshot,
            get_allocator_backend=lambda: "native",
            host_memory_stats=lambda: {},
            _record_memory_history=lambda *args, **kwargs: None,
            _snapshot=lambda *args, **kwargs: {"segments": _claimed_graphs.memory_snapshot(), "device_traces": []},
        )
        accelerator = getattr(torch, "accelerator", None)
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats"):
            self._set(accelerator, **{name: _distinct(getattr(torch.cuda, name))})
        self._set(
            accelerator,
            empty_cache=_core._empty_claimed_device_cache,
            reset_peak_memory_stats=lambda device=None: _core._reset_claimed_device_peaks(),
            reset_accumulated_memory_stats=lambda device=None: _core._reset_claimed_device_sums(),
            get_memory_info=lambda device=None: self._info(),
        )

    def _claim_runtime(self) -> None:
        runtime = _claimed_runtime.Runtime(self._info)
        self._set_in_cuda(_cudart=runtime, cudart=lambda: runtime)
        calls = _claimed_runtime.calls_of_binding(runtime, _claimed_runtime.RawBlocks(), self._set_memory_fraction, self._total)
        for name, call in calls.items():
            self._patches.set(torch._C, name, call)
        profiler: Any = torch.autograd.profiler
        supported = profiler._supported_activities() | {torch.profiler.ProfilerActivity.CUDA}
        self._patches.set(profiler, "_supported_activities", lambda: supported)
        self._set(profiler.emit_nvtx, __enter__=lambda ranges: ranges, __exit__=lambda ranges, *fault: None)
        self._set(profiler.profile, __init__=_claimed_runtime.without_device_times(profiler.profile.__init__))

    def _set_memory_fraction(self, fraction: float) -> None:
        _core._set_claimed_memory_fraction(fraction)
        if fraction < 1 and not self._is_limited:
            print(
                f"memprof: set_per_process_memory_fraction({fraction}): the program goes on beyond it, as beyond the device's memory; with "
                "raise_out_of_memory it runs out there",
                file=sys.stderr,
            )

    def _is_forked(self) -> bool:
        return os.getpid() != self._process

    def _check_process(self) -> None:
        if self._is_forked():
            raise RuntimeError(
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"
            )

    def _info(self) -> tuple[int, int]:
        """What is free, and what there is."""
        return max(self._total - _core._claimed_device_stats()["reserved_bytes.all.current"], 0), self._total

    def _stats(self) -> dict[str, Any]:
        if self._is_forked():
            return {}
        stats = _core._claimed_device_stats()

        parts = ("current", "peak", "allocated", "freed")

        def by_pool(name: str) -> dict[str, dict[str, int]]:
            return {pool: {part: stats[f"{name}.{pool}.{part}"] for part in parts} for pool in ("all", "large_pool", "small_pool")}

        allocation = by_pool("allocation")
        none = dict.fromkeys(parts, 0)
        return {
            "allocation": allocation,
            "active": allocation,
            "segment": by_pool("segment"),
            "inactive_split": {"all": none, "large_pool": none, "small_pool": none},
            "allocated_bytes": by_pool("allocated_bytes"),
            "requested_bytes": by_pool("requested_bytes"),
            "active_bytes": by_pool("active_bytes"),
            "reserved_bytes": by_pool("reserved_bytes"),
            "inactive_split_bytes": by_pool("inactive_split_bytes"),
            "oversize_allocations": none,
            "oversize_segments": none,
            "max_split_size": -1,
            "num_sync_all_streams": 0,
            **{name: stats[name] for name in ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free")},
        }

    def _claim_streams(self) -> None:
        streams = self._streams
        default = streams.current
        self._make_instead(torch.cuda.Stream, _claimed_graphs.Stream)
        self._make_instead(torch.cuda.Event, _claimed_graphs.Event)
        self._make_instead(torch.cuda.ExternalStream, _claimed_graphs.ExternalStream)
        self._set_in_cuda(
            Stream=_claimed_graphs.Stream,
            Event=_claimed_graphs.Event,
            ExternalStream=_claimed_graphs.ExternalStream,
            current_stream=lambda device=None: streams.current,
            default_stream=lambda device=None: default,
            set_stream=streams.use,
        )
        accelerator = getattr(torch, "accelerator", None)
        self._set(accelerator, current_stream=lambda device=None: streams.current, set_stream=lambda stream: streams.use(stream))

    def _make_instead(self, original: type, claimed: type) -> None:
        """The program may have a name of its own for the class."""
        self._patches.set(original, "__new__", staticmethod(lambda cls, *args, **rest: claimed(*args, **rest)))

    def _claim_pools(self) -> None:
        graphs = _claimed_graphs
        self._set_in_cuda(
            is_current_stream_capturing=graphs.is_current_stream_capturing,
            _cuda_isCurrentStreamCapturing=graphs.is_current_stream_capturing,
            graph_pool_handle=graphs.graph_pool_handle,
            _graph_pool_handle=graphs.graph_pool_handle,
            _cuda_beginAllocateToPool=lambda device, pool: graphs.begin_to_pool(pool),
            _cuda_beginAllocateCurrentThreadToPool=lambda device, pool: graphs.begin_to_pool(pool),
            _cuda_endAllocateToPool=lambda device, pool: graphs.end_to_pool(pool),
            _cuda_releasePool=lambda device, pool: _core._release_claimed_pool(pool),
        )
        for name, made, whole in (("CUDAGraph", graphs.CapturedGraph, graphs.CapturedGraph), ("MemPool", graphs.PoolBase, graphs.MemPool)):
            if not hasattr(torch.cuda, name):
                continue
            base: Any = getattr(torch.cuda, name).__mro__[1]
            if base.__module__ != "torch._utils":
                self._make_instead(getattr(torch.cuda, name), whole)
                self._set_in_cuda(**{name: whole})
                continue
            # Without CUDA, its stand-in for a base becomes one: the program may have a name of its own for the class.
            self._patches.set(base, "__new__", lambda cls, *args, **rest: object.__new__(cls))
            for member, value in vars(made).items():
                if callable(value) or isinstance(value, (property, int)):
                    self._patches.set(base, member, value)
        self._set_in_cuda(change_current_allocator=graphs.refuse_allocator)
        self._set(torch.cuda.memory.CUDAPluggableAllocator, __init__=graphs.refuse_allocator)
        self._patches.set(torch._C, "_host_emptyCache", lambda: None)
        self._patches.set(torch._C, "_cuda_clearCublasWorkspaces", _core._clear_claimed_workspaces)

    def _claim_tensors(self) -> None:
        """What libtorch's Python binding does without the dispatcher."""
        for name in ("tensor", "as_tensor", "asarray"):
            original = getattr(torch, name)
            made = _made_on_the_cpu(original, copies=name == "tensor")
            _builtins_of_scripts[id(made)] = _builtins_of_scripts.get(id(original))
            self._set(torch, **{name: made})
        self._set(
            torch.Tensor,
            __getitem__=_with_indices_on_the_cpu(torch.Tensor.__getitem__),
            __setitem__=_with_indices_on_the_cpu(torch.Tensor.__setitem__),
        )
        self._set(torch.cuda, **_claimed_types.tensor_types())
        self._default_type = _claimed_types.DefaultType()
        self._patches.set(torch, "set_default_tensor_type", self._default_type.set)
        self._set(torch.Tensor, type=_claimed_types.knowing_types(torch.Tensor.type))
        self._set(torch.UntypedStorage, **_storages.on_a_claimed_device())
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


def _begin_allocator(capacity: int) -> None:
    settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    # Up to 2.11, the addresses that the driver hands out decide among free blocks of one size.
    descend = tuple(int(number) for number in torch.__version__.split(".")[:2]) < (2, 12)
    try:
        _core._begin_claimed_device(capacity, settings, descend)
    except _core.Error as fault:
        print(f"memprof: the claimed device has PyTorch's default allocator: {fault}", file=sys.stderr)
        _core._begin_claimed_device(capacity, "", descend)


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


def _numbers(data: Any, types: set[torch.dtype]) -> Any:
    """Lists with the values of tensors that have no dimensions in their place. Adds the types of all that they hold to `types`."""
    if isinstance(data, (list, tuple)):
        return [_numbers(one, types) for one in data]
    if not torch.is_tensor(data):
        types.add(torch.as_tensor(data, device="cpu").dtype)
        return data
    types.add(data.dtype)
    return data if data.dim() > 0 else data.item()


def _copied(data: torch.Tensor, where: torch.device, dtype: torch.dtype | None, requires_grad: bool) -> torch.Tensor:
    return data.detach().to(where, dtype, copy=True).requires_grad_(requires_grad)


def _made_on_the_cpu(original: Callable[..., torch.Tensor], copies: bool) -> Callable[..., torch.Tensor]:
    """`torch.tensor`, which `copies` tensors, `torch.as_tensor` or `torch.asarray`: they copy data to its device below the simulation, where there is no
    device."""

    def prepare(data: Any, *, dtype: torch.dtype | None = None, device: Any = None, **rest: Any) -> tuple[Any, ...]:
        if device is None:
            device = data.device if torch.is_tensor(data) else _default_device()
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        requires_grad = rest.pop("requires_grad", False)
        rest.pop("pin_memory", None)

        def required(made: torch.Tensor) -> torch.Tensor:
            return made.requires_grad_() if requires_grad else made

        if torch.is_tensor(data) and (data.is_cuda or where.type == "cuda"):
            if not copies:
                return data.to, (where, dtype or data.dtype), {"copy": bool(rest.get("copy"))}, required
            warn_of_copy("torch.tensor(sourceTensor)", stacklevel=3)
            return _copied, (data, where, dtype, requires_grad)

        def otherwise(fault: BaseException) -> torch.Tensor:
            """Of lists with tensors that have no dimensions: it takes such a tensor for a sequence, and asks for its length, while
            `Tensor.__getitem__` is not that of the class below, as it is here."""
            if not isinstance(fault, TypeError) or "0-d tensor" not in str(fault):
                raise fault
            types: set[torch.dtype] = set()
            numbers = _numbers(data, types)
            return original(numbers, dtype=dtype or functools.reduce(torch.promote_types, types), device="cpu", **rest)

        def finish(made: torch.Tensor) -> torch.Tensor:
            return required(made.to(where))

        on_cpu = "cpu" if where.type == "cuda" else where
        return original, (data,), {"dtype": dtype, "device": on_cpu, **rest}, finish, otherwise

    return functools.update_wrapper(_core._FramelessCall(prepare), original)


_script_builtins: Any = torch.jit._builtins  # functions without types
#: Under which name functions are known in functions of `torch.jit.script`, by their identity.
_builtins_of_scripts: dict[int, Any] = _script_builtins._get_builtin_table()


_parts_of_indices = (list, tuple, range, slice, torch.Tensor, type(None), type(Ellipsis))


def _tensor_of(index: Any) -> Any:
    return torch.tensor(list(index)) if isinstance(index, (list, tuple, range)) else index


def _with_indices_on_the_cpu(original: Callable[..., Any]) -> Callable[..., Any]:
    """An index that is a list, or another sequence, becomes a tensor on its tensor's device, as `torch.tensor` makes one."""

    def prepare(self: torch.Tensor, index: Any, *rest: Any) -> tuple[Any, ...]:
        if self.is_cuda and isinstance(index, (tuple, list, range)):
            # Of a list of indices, PyTorch decides whether it is a tuple of them.
            if isinstance(index, tuple):
                index = tuple(map(_tensor_of, index))
            elif any(isinstance(one, _parts_of_indices) for one in index):
                index = list(map(_tensor_of, index))
            else:
                index = _tensor_of(index)
        return original, (self, index, *rest)

    return functools.update_wrapper(_core._FramelessCall(prepare), original)


def _default_device() -> torch.device:
    open_modes: Callable[[], list[Any]] = _get_current_function_mode_stack
    mode = next((mode for mode in reversed(open_modes()) if isinstance(mode, DeviceContext)), None)
    context: Any = mode or getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return torch.device("cpu") if context is None else torch.device(context.device)


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
