"""NO_DISPATCH of storages that programs resize, as FSDP does to free parameters and gather them anew."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

MiB = 1 << 20

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def peak(capture: memprof.Capture, space: str) -> int:
    return int(capture.profile.space(space).cumulative_peak)


def resize(device: str) -> list[int]:
    """The sizes of a storage, and the bytes that a tensor over it reads as."""
    tensor = torch.full((1000, 250), 3.0, device=device)
    storage = tensor.untyped_storage()
    sizes = []
    for size in (0, 3 * MiB, 5 * MiB, MiB):
        storage.resize_(size)
        assert tensor.shape == (1000, 250)
        sizes.append(storage.nbytes())
    small = torch.arange(4, device=device)
    small.untyped_storage().resize_(64)
    small.untyped_storage().resize_(16)
    return sizes + small[:2].tolist()


def test_a_storage_frees_and_takes_what_it_does_in_a_real_run() -> None:
    with memprof.capture() as real:
        expected = resize("cpu")
    with memprof.no_dispatch() as simulated:
        assert resize("cpu") == expected
    with memprof.no_dispatch(device="gpu-24gb") as claimed:
        assert resize("cuda") == expected
        assert torch.cuda.memory_allocated() == 0
    assert expected == [0, 3 * MiB, 5 * MiB, MiB, 0, 1]
    # The former block is freed once the new one has its bytes.
    assert peak(real, "cpu") == peak(simulated, "cpu") == peak(claimed, "cuda:0") == 8 * MiB


def test_a_storage_that_cannot_grow_raises() -> None:
    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True):
        storage = torch.empty(1000, device="cuda").untyped_storage()
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 24.00 GiB"):
            storage.resize_(24 << 30)
        assert storage.nbytes() == 4000
        with pytest.raises(RuntimeError, match="Requested storage size"):
            storage.resize_(-1)


@contextlib.contextmanager
def processes(count: int) -> Iterator[None]:
    """This is the first one of so many, of which the others do not exist."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed = torch.distributed
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def flat_parameters(model: Any, device: str, count: int, halves: bool) -> Any:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision

    types = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if halves else None
    where = torch.device(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one process, and of what is deprecated
        inner = FullyShardedDataParallel(model, device_id=where, mixed_precision=types)
        return FullyShardedDataParallel(torch.nn.Sequential(inner), device_id=where, mixed_precision=types)


def sharded_parameters(model: Any, device: str, count: int, halves: bool) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    types = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if halves else MixedPrecisionPolicy()
    mesh = init_device_mesh(device, (count,))
    for layer in model.children():
        fully_shard(layer, mesh=mesh, mp_policy=types)
    return fully_shard(model, mesh=mesh, mp_policy=types)


def layers() -> Any:
    """Their kernels take the same memory on both devices."""
    wide, narrow = torch.nn.Linear(256, 512, bias=False), torch.nn.Linear(512, 256, bias=False)
    return torch.nn.Sequential(wide, torch.nn.ReLU(), narrow, torch.nn.ReLU(), torch.nn.Linear(256, 16, bias=False))


def train(device: str, shard: Callable[..., Any], count: int, halves: bool) -> None:
    torch.manual_seed(0)
    with processes(count):
        model = shard(layers().to(device), device, count, halves)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(64, 256, device=device)).float().sum().backward()
            optimizer.step()
        del model, optimizer


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("shard", [flat_parameters, sharded_parameters])
def test_a_sharded_training_peaks_as_in_a_real_run(shard: Callable[..., Any], count: int, halves: bool) -> None:
    pytest.importorskip("torch.distributed.fsdp")
    if not torch.distributed.is_available() or not hasattr(torch.distributed.fsdp, "fully_shard"):
        pytest.skip("this torch has no fully_shard")
    with memprof.capture() as real:
        train("cpu", shard, count, halves)
    with memprof.no_dispatch() as simulated:
        train("cpu", shard, count, halves)
    assert peak(simulated, "cpu") == peak(real, "cpu")
    with memprof.no_dispatch(device="gpu-24gb") as claimed:
        train("cuda", shard, count, halves)
    if halves:  # the CPU's kernels have scratch memory of their own for products of halves
        return
    workspaces = sum(row["bytes"] for row in claimed.profile.facts["library_workspaces"])
    mesh = 4 * count if shard is sharded_parameters else 0  # the ranks, on the CPU in either case
    assert peak(claimed, "cuda:0") == peak(real, "cpu") - mesh + workspaces
