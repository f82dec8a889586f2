"""Captures, and operations as `with` and as decorators."""

from __future__ import annotations

import os
import sys

from . import _core

TYPE_CHECKING = False  # the module typing takes longer to import than this package
if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Literal, TypeVar

    from .torch._modules import ModuleScopes
    from .torch._simulation import Simulation
    from .torch._steps import OptimizerSteps
    from .torch._storages import StorageCopies

    Category = Literal["", "other", "parameter", "gradient", "optimizer_state", "activation", "temporary", "input", "kv_cache"]
    Function = TypeVar("Function", bound=Callable[..., Any])
    Tracked = TypeVar("Tracked")


#: By whether the refused one simulates.
_holder = {False: "", True: ""}


def set_holder(capture: str, simulation: str) -> None:
    """What to say to who begins another capture, or simulation, while the active one lasts; "": what the library says."""
    _holder.update({False: capture, True: simulation})


def _bytes_of_stacks(stacks: bool | int | str) -> int:
    """The size of blocks from which they have stacks; 0: none has."""
    if isinstance(stacks, bool):
        return 65_536 if stacks else 0  # as C++ has it: memprof::detail::stacked_from_bytes
    size = _core._parse_byte_size(stacks) if isinstance(stacks, str) else stacks
    if size < 0:
        raise ValueError(f"stacks={size}: expected a size of blocks in bytes, or True")
    return size


class Capture:
    """A capture, from its construction to `end`: also as `with`, or for as long as the object lives.

    `device` names a preset (`memprof.device_presets`) or a file that describes a device: limits for the memory spaces it names.
    With `trace`, every event is kept in memory (`Capture.trace`); with `trace_file`, they are written to that file as they happen.
    With `torch`, by default where the program has imported torch, the tensors of libtorch are recorded, and with `modules`, modules are
    operations (`memprof.torch`). With `steps`, each step of an optimizer ends a segment, until the program makes a snapshot of its own.
    With `infer_operations`, threads without an operation work for the one that is open on the thread that begins the capture. With
    `uses`, the trace says when libtorch's operators use each block, for `memprof what-if --free-at-last-use`.
    With `stacks`, it has the lines of Python that asked for the tensors from 64 KiB on, or from a size on, as "1 MiB": `Trace.peak_callers`.
    Raises `Error` while another capture is active.
    """

    _simulates = False

    def __init__(
        self,
        *,
        device: str | os.PathLike[str] = "",
        trace: bool = False,
        trace_file: str | os.PathLike[str] = "",
        trace_limit: int = 0,
        timeline_points: int = 4096,
        largest_blocks: int = 10,
        full_segments: int = 64,
        operations: int = 4096,
        infer_operations: bool = False,
        uses: bool = False,
        stacks: bool | int | str = False,
        torch: bool | None = None,
        modules: bool = True,
        steps: bool = True,
    ) -> None:
        self._profile: _core.Profile | None = None
        self._steps: OptimizerSteps | None = None
        self._scopes: ModuleScopes | None = None
        self._storages: StorageCopies | None = None
        self._process = os.getpid()
        if _holder[self._simulates] and _core.is_capturing():
            raise _core.Error(_holder[self._simulates])
        if torch is None:
            torch = self._simulates or "torch" in sys.modules
        if torch:
            from .torch._library import load

            load(self._simulates)
        self._core = self._begin(
            device=os.fspath(device),
            trace=trace,
            trace_file=trace_file,
            trace_limit=trace_limit,
            timeline_points=timeline_points,
            largest_blocks=largest_blocks,
            full_segments=full_segments,
            operations=operations,
            infer_operations=infer_operations,
            uses=uses,
            stacks_from=_bytes_of_stacks(stacks),
            own_folder=os.path.join(os.path.dirname(os.path.abspath(__file__)), ""),
            torch=torch,
        )
        global _begun
        _begun += 1
        if torch:
            self._began_torch(modules, steps)

    def _began_torch(self, modules: bool, steps: bool) -> None:
        import weakref

        global _hooked
        earlier = None if _hooked is None else _hooked()
        if earlier is not None and earlier._process != self._process:
            earlier.end()  # of the parent, which goes on there: this process was forked with its hooks in torch
        _hooked = weakref.ref(self)
        if not self._simulates:
            from .torch import record_cuda

            record_cuda()
        if steps:
            from .torch._steps import OptimizerSteps

            self._steps = OptimizerSteps()
        if modules:
            from .torch._modules import ModuleScopes

            self._scopes = ModuleScopes(steps=self._steps)
        from .torch._storages import StorageCopies

        self._storages = StorageCopies()

    def record_torch(self, modules: bool = True, steps: bool = True) -> None:
        """Records libtorch from now on, for a capture that was begun with `torch=False` before the program imported torch."""
        from .torch._library import load

        load()
        self._core.attach_torch()
        self._began_torch(modules, steps)

    def _begin(self, **options: Any) -> _core._Capture:
        return _core._Capture(no_dispatch=False, **options)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<memprof.Capture, {'active' if self.is_active else 'ended'}>"

    @property
    def is_active(self) -> bool:
        """Whether it has neither ended nor been followed by another."""
        return self._core.is_active

    @property
    def profile(self) -> _core.Profile:
        """The profile so far, made anew by each access; once the capture has ended, the whole, which lasts."""
        return self._core.profile() if self._profile is None else self._profile

    @property
    def trace(self) -> _core.Trace:
        """Every event of the ended capture, if it was begun with `trace=True`."""
        return self._core.trace()

    def snapshot(self, name: str) -> None:
        """Ends the current segment, which gets that name, and begins the next."""
        self._core.snapshot(name)

    def end(self, name: str = "END_TRACE") -> None:
        """Ends the capture; its last segment gets that name. Does nothing if it has already ended."""
        was_active = self.is_active
        if self._steps is not None:
            if self._process != os.getpid():
                self._steps.waiting.clear()  # the step was the parent's
            self._steps.remove()
            self._steps = None
        self._core.end(name)
        if was_active:
            self._profile = self._core.profile()
        if self._scopes is not None:
            self._scopes.remove()
        if self._storages is not None:
            self._storages.remove()

    def __del__(self) -> None:
        if getattr(self, "_storages", None) is not None:
            self.end()


#: How many captures have begun.
_begun = 0

#: The capture that was the last to put hooks into torch.
_hooked: weakref.ref[Capture] | None = None

#: Begins a capture: `with memprof.capture() as c: ...`, or `c = memprof.capture()`, and later `c.end()`.
capture = Capture


class NoDispatch(Capture):
    """A capture that runs a PyTorch program without its memory and its kernels (NO_DISPATCH).

    Every tensor is in the profile with its true size and lifetime, but takes no memory. Small tensors hold what the program computes;
    what is read of others is a guess. If `device` is a GPU's preset, a file that describes one, or "cuda" for one without a limit,
    the program finds that CUDA device (`torch.cuda`). Where it is full, the program goes on, or with `raise_out_of_memory` gets
    `torch.OutOfMemoryError`. Other parameters are those of `Capture`.
    """

    _simulates = True
    _simulation: Simulation | None = None
    _at_exit: Callable[[], None] | None = None

    def __init__(self, *, device: str | os.PathLike[str] = "", raise_out_of_memory: bool = False, **options: Any) -> None:
        if raise_out_of_memory and not _core._cuda_capacity(os.fspath(device)):
            raise _core.Error("no_dispatch: raise_out_of_memory needs a device with a limit, as device='gpu-24gb'")
        self._raises = raise_out_of_memory
        super().__init__(device=device, **options)

    def _begin(self, **options: Any) -> _core._Capture:
        if options["torch"]:
            from .torch._simulation import Simulation

            self._simulation = Simulation()
            self._end_before_exit()
        begun: _core._Capture | None = None
        try:
            begun = _core._Capture(no_dispatch=True, **options)
            if self._simulation is not None:
                self._simulation.claim(options["device"], self._raises)
        except BaseException:
            if begun is not None:
                begun.end("END_TRACE")
            self._undo()
            raise
        return begun

    def _end_before_exit(self) -> None:
        """Once modules are being taken down, torch cannot be given back what the simulation has taken."""
        import atexit
        import weakref

        this = weakref.ref(self)

        def end() -> None:
            capture = this()
            if capture is not None:
                capture.end()

        self._at_exit = atexit.register(end)

    def _undo(self) -> None:
        if self._at_exit is not None:
            import atexit

            atexit.unregister(self._at_exit)
            self._at_exit = None
        if self._simulation is not None:
            self._simulation.undo()
            self._simulation = None

    def end(self, name: str = "END_TRACE") -> None:
        super().end(name)
        self._undo()

    def __del__(self) -> None:
        if self._simulation is not None:
            self.end()


#: Begins a capture without memory and kernels: `with memprof.no_dispatch() as c: ...`.
no_dispatch = NoDispatch


class real_scope:
    """In a `no_dispatch` capture, this thread's operations are executed within `with memprof.real_scope():`, and what they allocate
    is recorded: for loading data, or for a tensor that decides what the program does. Elsewhere it does nothing."""

    def __enter__(self) -> real_scope:
        _core._enter_real_scope()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        _core._leave_real_scope()


class track_operation:
    """Names what this thread does: `with memprof.track_operation("forward"):`, or as a decorator of a function.

    Allocations count for the innermost operation. They get its category, unless an inner operation sets another.
    """

    __slots__ = ("_name", "_category", "_core")

    def __init__(self, name: str, category: Category = "") -> None:
        self._name, self._category = name, category
        self._core = _core._Operation(name, category)

    def __enter__(self) -> track_operation:
        self._core.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self._core.exit()

    def __call__(self, function: Function) -> Function:
        import functools

        make, name, category = _core._Operation, self._name, self._category

        @functools.wraps(function)
        def tracked(*args: Any, **kwargs: Any) -> Any:
            operation = make(name, category)  # one for each call: it may recurse, and run on several threads
            operation.enter()
            try:
                return function(*args, **kwargs)
            finally:
                operation.exit()

        return tracked  # type: ignore[return-value]


def track(buffer: Tracked, *, space: str = "cpu", name: str = "", category: Category = "") -> Tracked:
    """Counts an object's memory as a block of `space` until the object is collected, and returns the object.

    For objects that have a buffer and can be referred to weakly, such as arrays of NumPy and of the module `array`; others, such as
    `bytes` and `bytearray`, raise `Error`. A view of a tracked object adds nothing: its memory counts until the object is collected.
    """
    _core._buffer_of(buffer)
    if not getattr(type(buffer), "__weakrefoffset__", 0):
        kind = type(buffer).__name__
        raise _core.Error(
            f"track: Python does not say when an object of type '{kind}' is collected, since it cannot be referred to weakly; "
            "track a memoryview of it, for as long as that is kept, or call MemorySpace.allocate and deallocate"
        )
    from ._tracked import record

    address = record(buffer, space, category, _begun)
    if address is None:
        return buffer
    shape, dtype = getattr(buffer, "shape", None), getattr(buffer, "dtype", None)
    if name or shape is not None:
        _core.annotate(
            address, name=name, shape="" if shape is None else str(list(shape)), dtype="" if dtype is None else str(dtype)
        )
    return buffer
