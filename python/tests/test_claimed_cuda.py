"""NO_DISPATCH on a CUDA device that is not there: what programs do with it."""

from __future__ import annotations

import copy
import io
import os
import pathlib
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

from test_no_dispatch import OPTIMIZERS, Mixer, two_steps

MiB = 1 << 20
#: Of the preset gpu-24gb.
CAPACITY = 24_207 * MiB
#: 256 x 512 and 512 x 256 with biases, 256 x 10 with a bias, a norm of 256.
PARAMETERS = 256 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10 + 2 * 256

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def claimed() -> Iterator[memprof.Capture]:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        yield capture


def live(capture: memprof.Capture) -> int:
    return next((space.cumulative_current for space in capture.profile.spaces if space.name == "cuda:0"), 0)


def requested() -> int:
    return int(torch.cuda.memory_stats()["requested_bytes.all.current"])


def step(model: Any, optimizer: Any, batch: int = 64) -> Any:
    optimizer.zero_grad()
    loss = model(torch.randn(batch, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss


# --- the device


def test_the_device_is_there_only_within_the_capture() -> None:
    assert not torch.cuda.is_available()
    with memprof.no_dispatch(device="gpu-24gb"):
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
        assert torch.accelerator.is_available() and torch.accelerator.device_count() == 1
    assert not torch.cuda.is_available() and not torch.accelerator.is_available()
    with memprof.no_dispatch():
        assert not torch.cuda.is_available()


@pytest.mark.parametrize(
    ("preset", "name", "capability", "mebibytes"),
    [("gpu-24gb", "RTX 4090", (8, 9), 24_207), ("gpu-80gb", "A100", (8, 0), 81_050), ("gpu-141gb", "H200", (9, 0), 143_156)],
)
def test_its_properties_are_those_of_the_preset(preset: str, name: str, capability: tuple[int, int], mebibytes: int) -> None:
    with memprof.no_dispatch(device=preset):
        properties = torch.cuda.get_device_properties(0)
        assert properties.total_memory == mebibytes * MiB
        assert name in torch.cuda.get_device_name() and name in properties.name
        assert torch.cuda.get_device_capability("cuda") == capability
        assert torch.cuda.is_bf16_supported() and torch.cuda.mem_get_info() == (mebibytes * MiB, mebibytes * MiB)


def test_there_is_one_device(claimed: memprof.Capture) -> None:
    torch.cuda.set_device(0)
    torch.cuda.set_device("cuda:0")
    with torch.cuda.device(0):
        assert torch.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.cuda.set_device(1)


def test_a_device_without_a_limit() -> None:
    with memprof.no_dispatch(device="cuda") as capture:
        x = torch.empty(1 << 40, device="cuda")
        assert torch.cuda.memory_allocated() == live(capture) == 4 << 40
        del x


def test_lists_and_arrays_of_the_device_are_read_from_a_copy(claimed: memprof.Capture) -> None:
    np = pytest.importorskip("numpy")
    numbers = torch.rand(300, 300, device="cuda")

    def cpu() -> tuple[int, int]:
        space = next((space for space in claimed.profile.spaces if space.name == "cpu"), None)
        return (0, 0) if space is None else (space.allocations, space.cumulative_current)

    def copied(read: Any) -> tuple[Any, int]:
        allocations, current = cpu()
        found = read()
        assert cpu()[1] == current or isinstance(found, np.ndarray)
        return found, cpu()[0] - allocations

    one = float(np.float32(numbers[2, 3].item()))
    assert 0 < one < 1
    assert copied(numbers.tolist) == ([[one] * 300] * 300, 300 * 300 * 4)
    for read in (lambda: numbers.numpy(force=True), lambda: numbers.cpu().numpy()):
        array, taken = copied(read)
        assert (array == one).all() and taken == 300 * 300 * 4
    with pytest.raises(TypeError, match="cuda:0 device type tensor"):
        numbers.numpy()
    rows = claimed.profile.table("unknown_reads").rows()
    found = {(row["name"], row["count"]) for row in rows if not row["name"].startswith("comparison of ")}  # of the test itself
    assert found == {("aten::item", 1), ("Tensor.tolist", 1), ("Tensor.numpy", 2)}


# --- its memory


def test_memory_numbers_are_the_profiles_at_any_moment(claimed: memprof.Capture) -> None:
    assert torch.cuda.memory_allocated() == 0
    x = torch.empty(MiB, device="cuda")
    assert torch.cuda.memory_allocated() == live(claimed) == 4 * MiB
    y = torch.empty(2 * MiB, device="cuda")
    assert torch.cuda.max_memory_allocated() == 12 * MiB
    del y
    assert torch.cuda.memory_allocated() == live(claimed) == 4 * MiB
    space = claimed.profile.space("cuda:0")
    assert torch.cuda.max_memory_allocated() == space.cumulative_peak == 12 * MiB
    assert torch.cuda.memory_reserved() == space.reserved.current == 20 * MiB  # one segment for blocks below 10 MiB, kept for later blocks
    assert torch.cuda.mem_get_info() == (CAPACITY - 20 * MiB, CAPACITY)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 4 * MiB
    del x
    assert torch.cuda.memory_allocated() == 0 and torch.cuda.memory_reserved() == 20 * MiB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == claimed.profile.space("cuda:0").reserved.current == 0


def test_a_block_is_rounded_up_as_on_the_device(claimed: memprof.Capture) -> None:
    x = torch.empty(1, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats["requested_bytes.all.current"] == live(claimed) == 4
    assert torch.cuda.memory_allocated() == 512 and torch.cuda.memory_reserved() == 2 * MiB
    del x


@pytest.mark.parametrize(("settings", "reserved"), [("", 12), ("expandable_segments:True", 20)])
def test_the_allocator_has_the_programs_settings(settings: str, reserved: int) -> None:
    # 11 MiB get a segment of 12 of their own, or pages of 20.
    program = (
        "import memprof, torch\n"
        "with memprof.no_dispatch(device='gpu-24gb'):\n"
        "    x = torch.empty(11 << 20, dtype=torch.uint8, device='cuda')\n"
        "    print(torch.cuda.memory_reserved() >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings})
    assert done.stdout == f"{reserved}\n", done.stderr


def test_settings_that_the_model_lacks_are_named() -> None:
    program = "import memprof, torch\nwith memprof.no_dispatch(device='gpu-24gb'): torch.empty(1, device='cuda')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    assert done.returncode == 0 and done.stderr.count("memprof: the claimed device has PyTorch's default allocator") == 1


def test_memory_stats_and_their_summary(claimed: memprof.Capture) -> None:
    x, y = torch.empty(MiB, device="cuda"), torch.empty(MiB, device="cuda")
    del y
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == stats["active_bytes.all.current"] == 4 * MiB
    assert (stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.peak"]) == (8 * MiB, 20 * MiB)
    assert (stats["allocation.all.allocated"], stats["allocation.all.freed"], stats["num_ooms"]) == (2, 1, 0)
    assert "4096 KiB" in torch.cuda.memory_summary()
    if hasattr(torch.accelerator, "memory_allocated"):  # 2.9 or later
        assert torch.accelerator.memory_allocated() == 4 * MiB
    del x


def test_memory_stats_by_size_of_block(claimed: memprof.Capture) -> None:
    small, large = torch.empty(MiB, dtype=torch.uint8, device="cuda"), torch.empty(MiB + 1, dtype=torch.uint8, device="cuda")
    del large
    stats = torch.cuda.memory_stats()
    assert [stats[f"allocation.{pool}.current"] for pool in ("all", "small_pool", "large_pool")] == [1, 1, 0]
    assert [stats[f"allocated_bytes.{pool}.peak"] for pool in ("all", "small_pool", "large_pool")] == [2 * MiB + 512, MiB, MiB + 512]
    assert [stats[f"reserved_bytes.{pool}.current"] for pool in ("all", "small_pool", "large_pool")] == [22 * MiB, 2 * MiB, 20 * MiB]
    assert [stats[f"segment.{pool}.current"] for pool in ("all", "small_pool", "large_pool")] == [2, 1, 1]
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
    del small
    assert torch.cuda.memory_stats()["allocation.all.freed"] == 1


def test_a_request_beyond_any_device(claimed: memprof.Capture) -> None:
    for elements in (1 << 60, (1 << 63) - 1):
        with pytest.raises(torch.cuda.OutOfMemoryError, match="more than 1EB"):
            torch.empty(elements, dtype=torch.uint8, device="cuda")
    largest = torch.empty((1 << 60) - 1, dtype=torch.uint8, device="cuda")
    assert requested() == live(claimed) == (1 << 60) - 1
    del largest
    claimed.end()
    assert claimed.profile.exact


def test_a_tensor_of_an_earlier_capture_does_not_count() -> None:
    with memprof.no_dispatch(device="gpu-24gb"):
        early = torch.empty(MiB, device="cuda")
    with memprof.no_dispatch(device="gpu-24gb"):
        x = torch.empty(MiB, device="cuda")
        del early
        assert torch.cuda.memory_allocated() == 4 * MiB
        del x


def test_a_full_device_raises_where_asked() -> None:
    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True) as capture:
        first = torch.empty(CAPACITY - 5 * MiB, dtype=torch.uint8, device="cuda")
        # The allocator takes 20 MiB from the device for a request of 5, and says so.
        with pytest.raises(torch.OutOfMemoryError) as full:
            torch.empty(5 * MiB, dtype=torch.uint8, device="cuda")
        assert full.type is torch.cuda.OutOfMemoryError
        assert str(full.value) == (
            "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 5.00 MiB is free. "
            "Including non-PyTorch memory, this process has 23.63 GiB memory in use. Of the allocated memory 23.63 GiB is allocated "
            "by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
            "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
        )  # of PyTorch 2.13
        assert torch.cuda.memory_stats()["num_ooms"] == 1
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == 1
        second = torch.empty(MiB, dtype=torch.uint8, device="cuda")
        del first
        third = torch.empty(5 * MiB, dtype=torch.uint8, device="cuda")  # what was freed is cached, and has room
        del second, third
    failed = capture.profile.space("cuda:0").out_of_memory
    assert [(each.requested, each.device_free) for each in failed] == [(5 * MiB, 5 * MiB)]


def test_a_cached_block_is_returned_before_the_device_is_full() -> None:
    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True):
        block = torch.empty(15 << 30, dtype=torch.uint8, device="cuda")
        del block
        other = torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_stats()["num_alloc_retries"] == 1 and torch.cuda.memory_reserved() == 20 << 30
        del other


def test_a_full_device_goes_on_by_default(claimed: memprof.Capture) -> None:
    blocks = [torch.empty(1 << 33, device="cuda") for _ in range(2)]
    assert torch.cuda.memory_allocated() == 1 << 36
    claimed.end()
    fit = claimed.profile.space("cuda:0")
    assert fit.cumulative_peak == 1 << 36
    del blocks


def test_running_out_of_memory_needs_a_limit() -> None:
    for device in ("", "cuda"):
        with pytest.raises(memprof.Error, match="needs a device with a limit"):
            memprof.no_dispatch(device=device, raise_out_of_memory=True)


def test_a_batch_size_is_found_by_running_out_of_memory() -> None:
    def fits(batch: int) -> bool:
        try:
            torch.empty(batch, 1 << 30, dtype=torch.uint8, device="cuda")
            return True
        except torch.cuda.OutOfMemoryError:
            return False

    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True):
        assert max(batch for batch in range(1, 64) if fits(batch)) == 23  # GiB, of 23.6


# --- streams, events, generators


def test_streams_and_events(claimed: memprof.Capture) -> None:
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    event.record()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        x = torch.ones(10, device="cuda")
        x.record_stream(stream)
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(event)
    end = stream.record_event()
    end.synchronize()
    stream.synchronize()
    torch.cuda.synchronize()
    assert event.query() and stream.query()


def test_time_between_events(claimed: memprof.Capture) -> None:
    first, second, untimed = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Event()
    for event in (first, untimed):
        event.record()
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(second)
    with pytest.raises(ValueError, match="enable_timing=True"):
        first.elapsed_time(untimed)
    second.record()
    assert 1000 / first.elapsed_time(second) > 0 and 1000 / first.elapsed_time(first) > 0  # samples in a second


def test_handles_of_streams_and_events(claimed: memprof.Capture) -> None:
    import ctypes

    event, stream = torch.cuda.Event(), torch.cuda.Stream()
    assert event.cuda_event == 0 and "uninitialized" in repr(event)
    event.record()
    assert event.cuda_event != 0 and event._as_parameter_.value == event.cuda_event
    assert torch.cuda.default_stream().cuda_stream == 0 != stream.cuda_stream == stream._as_parameter_.value
    assert stream.__cuda_stream__() == (0, stream.cuda_stream)
    # A stream of PyTorch that another library had for a while is itself.
    for same in (torch.cuda.ExternalStream(stream.cuda_stream), torch.cuda.get_stream_from_external(stream.cuda_stream, "cuda:0")):
        assert same == stream and isinstance(same, torch.cuda.Stream)
    made = ctypes.c_ulonglong(0)
    torch.cuda.check_error(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(made)))
    other = torch.cuda.ExternalStream(made.value, device="cuda:0")
    assert isinstance(other, torch.cuda.ExternalStream) and other.cuda_stream == made.value and other != stream
    with torch.cuda.stream(other):
        assert torch.cuda.current_stream().cuda_stream == made.value
        x = torch.empty(12 << 18, device="cuda")
        other.synchronize()
    (segment,) = torch.cuda.memory_snapshot()
    assert segment["stream"] == made.value and torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.check_error(torch.cuda.cudart().cudaStreamDestroy(made.value))
    del x


def test_calls_of_the_runtime(claimed: memprof.Capture) -> None:
    from torch.cuda import check_error, cudart

    x = torch.empty(3 * MiB, device="cuda")
    assert cudart().cudaMemGetInfo(0) == torch.cuda.mem_get_info() == (CAPACITY - 12 * MiB, CAPACITY)
    host = torch.ones(4)
    check_error(cudart().cudaProfilerStart())
    check_error(cudart().cudaHostRegister(host.data_ptr(), 16, 0))
    check_error(cudart().cudaHostUnregister(host.data_ptr()))
    check_error(cudart().cudaProfilerStop())
    assert cudart().cudaGetErrorString(cudart().cudaError.success) == "no error"
    with torch.cuda.profiler.profile():
        pass
    assert torch.cuda.current_blas_handle() != 0 and torch.cuda.current_blas_handle() == torch.cuda.current_blas_handle()
    torch.cuda.set_sync_debug_mode("warn")
    assert torch.cuda.get_sync_debug_mode() == 1
    del x


def test_blocks_without_a_tensor(claimed: memprof.Capture) -> None:
    side = torch.cuda.Stream()
    first, second = torch.cuda.caching_allocator_alloc(12 * MiB), torch.cuda.caching_allocator_alloc(14 * MiB, stream=side)
    assert first != second and torch.cuda.memory_allocated() == live(claimed) == 26 * MiB
    assert torch.cuda.mem_get_info()[0] == CAPACITY - 26 * MiB
    assert {(one["stream"], one["total_size"]) for one in torch.cuda.memory_snapshot()} == {(0, 12 * MiB), (side.cuda_stream, 14 * MiB)}
    torch.cuda.caching_allocator_delete(first)
    assert torch.cuda.memory_allocated() == live(claimed) == 14 * MiB and torch.cuda.memory_reserved() == 26 * MiB
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(first)
    torch.cuda.caching_allocator_delete(second)
    torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(0))
    with pytest.raises(TypeError, match="stream argument"):
        torch.cuda.caching_allocator_alloc(1, stream="a")


def test_a_fraction_of_the_device() -> None:
    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True):
        assert torch.cuda.get_per_process_memory_fraction() == 1.0
        torch.cuda.set_per_process_memory_fraction(0.5)
        assert torch.cuda.get_per_process_memory_fraction() == 0.5
        half = CAPACITY // 2
        kept = torch.empty(half - 21 * MiB, dtype=torch.uint8, device="cuda")
        assert torch.cuda.mem_get_info()[0] >= half  # there is more, but not for this process
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"11.82 GiB allowed; Of the allocated memory 11.80 GiB"):
            torch.empty(24 * MiB, dtype=torch.uint8, device="cuda")
        torch.cuda.set_per_process_memory_fraction(1.0, 0)
        more = torch.empty(24 * MiB, dtype=torch.uint8, device="cuda")
        for wrong, fault in ((1, TypeError), (1.5, ValueError)):
            with pytest.raises(fault):
                torch.cuda.set_per_process_memory_fraction(wrong)
        del kept, more
    with memprof.no_dispatch(device="gpu-24gb", raise_out_of_memory=True):
        assert torch.cuda.get_per_process_memory_fraction() == 1.0


def test_a_fraction_is_passed_where_the_device_is(claimed: memprof.Capture, capsys: pytest.CaptureFixture[str]) -> None:
    torch.cuda.set_per_process_memory_fraction(0.25)
    assert torch.cuda.get_per_process_memory_fraction() == 0.25
    assert "goes on beyond it" in capsys.readouterr().err
    torch.empty(CAPACITY // 2, dtype=torch.uint8, device="cuda")


def test_a_profiler_of_the_device(claimed: memprof.Capture, capfd: pytest.CaptureFixture[str]) -> None:
    from torch.profiler import ProfilerActivity, profile

    for activities in ([ProfilerActivity.CPU, ProfilerActivity.CUDA], [ProfilerActivity.CUDA], None):
        with profile(activities=activities, profile_memory=True) as profiler:
            torch.ones(30, device="cuda").sum()
        assert "aten::sum" in profiler.key_averages().table(sort_by="self_cpu_time_total")
    assert "Failed to record CUDA event" not in capfd.readouterr().err


def test_data_parallel_with_one_device(claimed: memprof.Capture) -> None:
    layer = torch.nn.Linear(256, 256).cuda()
    model = torch.nn.DataParallel(layer, device_ids=[0])
    for x in (torch.ones(8, 256), torch.ones(8, 256, device="cuda")):
        output = model(x)
        assert output.is_cuda and output.shape == (8, 256)
        output.sum().backward()
    assert layer.weight.grad is not None


def test_functions_that_the_program_has_imported_before() -> None:
    from torch.cuda import current_stream, empty_cache, get_per_process_memory_fraction, mem_get_info, memory_allocated
    from torch.cuda import reset_peak_memory_stats, synchronize

    with memprof.no_dispatch(device="gpu-24gb"):
        x = torch.empty(3 * MiB, device="cuda")
        assert memory_allocated() == 12 * MiB and mem_get_info() == (CAPACITY - 12 * MiB, CAPACITY)
        del x
        empty_cache()
        synchronize()
        reset_peak_memory_stats()
        assert torch.cuda.max_memory_reserved() == 0 and current_stream() == torch.cuda.current_stream()
        assert get_per_process_memory_fraction() == 1.0


def test_random_numbers(claimed: memprof.Capture) -> None:
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    state = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    generator = torch.Generator(device="cuda")
    generator.manual_seed(2)
    assert state.numel() == 16 and torch.randn(3, device="cuda", generator=generator).is_cuda
    with torch.random.fork_rng(devices=[0]):
        assert torch.rand(5, device="cuda").shape == (5,)


# --- tensors


def test_ways_to_get_there(claimed: memprof.Capture) -> None:
    made = [torch.ones(4).cuda(), torch.ones(4).to("cuda"), torch.ones(4, device="cuda"), torch.ones(4).to(torch.device("cuda", 0)),
            torch.tensor([1.0, 2, 3, 4], device="cuda"), torch.as_tensor([1.0, 2, 3, 4], device="cuda"),
            torch.ones(2, device="cuda").new_tensor([1.0, 2, 3, 4]), torch.ones(1, device="cuda").new_zeros(4)]
    assert all(str(tensor.device) == "cuda:0" and tensor.shape == (4,) for tensor in made)
    assert requested() == live(claimed) == len(made) * 16
    assert torch.cuda.memory_allocated() == len(made) * 512
    assert torch.tensor(2, device="cuda:0").item() == 2 and torch.tensor(1.0, requires_grad=True, device="cuda").requires_grad


def test_arrays_become_tensors(claimed: memprof.Capture) -> None:
    np = pytest.importorskip("numpy")
    array = np.ones(3, np.float32)
    for made in (torch.asarray(array, device="cuda"), torch.as_tensor(array, device="cuda"), torch.asarray([1.0] * 3, device="cuda")):
        assert made.is_cuda and made.tolist() == [1, 1, 1]
    x = torch.ones(3, device="cuda")
    assert torch.asarray(x) is x and torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.asarray(x, dtype=torch.float16, requires_grad=True).requires_grad
    assert torch.asarray(array).data_ptr() == array.__array_interface__["data"][0]


def test_types_of_tensors(claimed: memprof.Capture) -> None:
    np = pytest.importorskip("numpy")
    kind = torch.cuda.FloatTensor
    x = torch.ones(2, 3)
    made = [kind(2, 3), kind([[1, 2, 3]] * 2), kind(np.ones((2, 3))), x.type(kind), x.type("torch.cuda.FloatTensor")]
    assert all(each.is_cuda and each.shape == (2, 3) and each.dtype == torch.float32 and isinstance(each, kind) for each in made)
    assert requested() == live(claimed) == len(made) * 24
    assert made[0].type() == "torch.cuda.FloatTensor" and not isinstance(torch.ones(1), kind)
    assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2] and torch.ones(1).type(torch.float16).dtype == torch.float16
    assert torch.ones(1).type(torch.DoubleTensor).dtype == torch.float64


def test_lists_of_tensors(claimed: memprof.Capture) -> None:
    exact = torch.tensor(1 / 3, dtype=torch.float64)
    made = torch.tensor([[exact, exact], [exact, 2]], device="cuda")
    assert made.is_cuda and made.dtype == torch.float64 and made.shape == (2, 2)
    assert made[0, 0].item() == 1 / 3 and made[1, 1].item() == 2
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    assert torch.tensor([torch.tensor(1), 2.5]).dtype == torch.float32
    assert torch.tensor([torch.tensor(1, device="cuda")], dtype=torch.int8).dtype == torch.int8
    with pytest.raises(TypeError):
        torch.tensor([[1], 2])


def test_ways_back(claimed: memprof.Capture) -> None:
    x = torch.arange(4, device="cuda")
    assert x.cpu().tolist() == x.tolist() == [0, 1, 2, 3] and x.sum().item() == 6
    assert x.cpu().numpy().sum() == 6 and "device='cuda:0'" in repr(x)


def test_a_default_device(claimed: memprof.Capture) -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.nn.Linear(3, 3).weight.is_cuda and torch.tensor([1.0]).is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.nn.Linear(3, 3).weight.is_cuda
    assert not torch.ones(1).is_cuda


def test_deepcopy_and_state_dict(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    assert requested() == 4 * PARAMETERS
    twin = copy.deepcopy(model)
    assert requested() == 2 * 4 * PARAMETERS
    twin.load_state_dict(model.state_dict())
    assert requested() == 2 * 4 * PARAMETERS


def test_deepcopy_of_buffers_and_states(claimed: memprof.Capture) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.BatchNorm1d(256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    weights = 4 * (256 * 256 + 256 + 2 * 256)
    buffers = 4 * 2 * 256 + 8
    for copied, taken in (
        (model.state_dict(), weights + buffers),
        (optimizer.state_dict(), 2 * weights),  # steps are on the CPU
        (torch.ones(1000, device="cuda"), 4 * 1000),
    ):
        before = requested()
        twin = copy.deepcopy(copied)
        assert requested() - before == taken
        del twin
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    assert average.module[1].running_mean.is_cuda


def test_an_encoder_with_a_mask_stays_padded(claimed: memprof.Capture) -> None:
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).cuda().eval()
    mask = torch.zeros(4, 20, dtype=torch.bool, device="cuda")
    with torch.no_grad():
        assert encoder(torch.ones(4, 20, 64, device="cuda"), src_key_padding_mask=mask).shape == (4, 20, 64)
    assert not claimed.profile.exact
    (row,) = (row for row in claimed.profile.table("assumed_sizes").rows() if row["name"] == "aten::_nested_tensor_from_mask")
    assert row["assumed"] == row["most"] == 4 * 20 * row["count"]


def test_nested_tensors(claimed: memprof.Capture) -> None:
    rows = [torch.randn(length, 64, device="cuda") for length in (20, 30, 7)]
    nested = torch.nested.nested_tensor(rows, requires_grad=True)
    assert live(claimed) == 2 * 4 * 57 * 64  # the rows, and their copy without padding
    layer = torch.nn.Linear(64, 128).cuda()
    padded = torch.nested.to_padded_tensor(torch.nn.functional.gelu(layer(nested)), 0.0)
    assert padded.is_cuda and padded.shape == (3, 30, 128)
    padded.square().mean().backward()
    assert nested.grad is not None and nested.grad.is_nested and nested.grad.is_cuda
    moved = torch.nested.nested_tensor([torch.randn(length, 64) for length in (20, 30)]).cuda()
    assert (moved + moved).softmax(-1).is_cuda and moved.cpu().unbind()[1].shape == (30, 64)
    listed = {row["name"] for row in claimed.profile.table("approximations").rows()}
    assert "aten::to_padded_tensor" in listed and "aten::_nested_tensor_size" not in listed


def test_save_and_load(claimed: memprof.Capture, tmp_path: pathlib.Path) -> None:
    model = Mixer().cuda()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    assert (tmp_path / "model.pt").stat().st_size > 4 * PARAMETERS
    model.load_state_dict(torch.load(tmp_path / "model.pt", map_location="cuda"))
    buffer = io.BytesIO()
    torch.save(torch.optim.AdamW(model.parameters()).state_dict(), buffer)
    assert buffer.tell() > 0


@pytest.mark.parametrize("numbers", [3, 100_000])
def test_saved_tensors_come_back_as_they_were(claimed: memprof.Capture, numbers: int) -> None:
    """Files had whatever was in the memory of the process."""
    is_known = numbers == 3  # the bytes of large ones are not simulated
    tensor = torch.tensor([1.0, 2.0, 3.0], device="cuda") if is_known else torch.randn(numbers, device="cuda")
    expected = [1.0, 2.0, 3.0] if is_known else [0.0] * numbers
    buffer = io.BytesIO()
    torch.save({"tensor": tensor, "view": tensor[1:]}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        (saved,) = (archive.read(name) for name in archive.namelist() if name.endswith("data/0"))
    assert list(memoryview(saved).cast("f")) == expected
    buffer.seek(0)
    for loaded in (torch.load(buffer)["tensor"], pickle.loads(pickle.dumps(tensor))):
        assert loaded.is_cuda and loaded.shape == (numbers,) and loaded.untyped_storage().cpu().nbytes() == 4 * numbers
        if is_known:
            assert loaded.tolist() == expected


# --- training


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_steps(claimed: memprof.Capture, name: str) -> None:
    two_steps(name, "cuda")
    space = claimed.profile.space("cuda:0")
    stats = torch.cuda.memory_stats()
    assert stats["requested_bytes.all.peak"] == space.cumulative_peak
    assert stats["requested_bytes.all.current"] == space.cumulative_current
    assert stats["reserved_bytes.all.peak"] == space.reserved.peak
    assert space.cumulative_peak > 2 * 4 * 2 * 256 * 256  # weights and gradients


@pytest.mark.parametrize("mode", ["", "sum", "mean"])
@pytest.mark.parametrize("name, states", [("SGD", 0), ("Adagrad", 1), ("SparseAdam", 2)])
def test_sparse_gradients(claimed: memprof.Capture, name: str, states: int, mode: str) -> None:
    rows, width, used = 5000, 64, 600
    layer: Any = torch.nn.Embedding(rows, width, sparse=True)
    if mode:
        layer = torch.nn.EmbeddingBag(rows, width, mode=mode, sparse=True)
    optimizer = getattr(torch.optim, name)(layer.cuda().parameters())
    indices = torch.arange(used, device="cuda").view(20, 30)
    for _ in range(2):
        optimizer.zero_grad()
        layer(indices).square().sum().backward()
        assert layer.weight.grad.is_sparse and layer.weight.grad.is_cuda and layer.weight.grad._nnz() == used
        optimizer.step()
    # Weights, what the optimizer keeps for each, and the gradient of the rows that were used, whose indices are those above.
    assert requested() == live(claimed) == 4 * width * (rows * (1 + states) + used) + 8 * used
    total = layer.weight.grad.coalesce()
    assert total.is_coalesced() and total.shape == (rows, width) and total.values().device.type == "cuda"
    assert total.to_dense().is_cuda


def test_a_histogram_of_integers(claimed: memprof.Capture) -> None:
    for dtype in (torch.int64, torch.int32):
        counts = torch.histc(torch.arange(100, device="cuda", dtype=dtype), bins=4, min=0, max=99)
        assert counts.dtype == dtype and counts.is_cuda and counts.shape == (4,)
    assert torch.histc(torch.randn(1 << 20, device="cuda"), bins=8).dtype == torch.float32


@pytest.mark.parametrize(
    "options", [dict(foreach=True), dict(foreach=False), dict(fused=True), dict(capturable=True), dict(amsgrad=True)]
)
def test_variants_of_adam(claimed: memprof.Capture, options: dict[str, bool]) -> None:
    model = Mixer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    for _ in range(2):
        step(model, optimizer)
    optimizer.zero_grad()
    moments = 3 if "amsgrad" in options else 2
    steps = 4 * 8 if options in (dict(fused=True), dict(capturable=True)) else 0  # elsewhere counted on the CPU
    # Parameters and moments; and the workspaces of cuBLAS, and of cuBLASLt for products with a bias.
    assert requested() == 4 * PARAMETERS * (1 + moments) + steps + 2 * 8_519_680 + MiB


def test_autocast(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cuda", dtype=dtype):
            assert model(torch.randn(4, 256, device="cuda")).dtype == dtype


def test_a_gradient_scaler(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(8, 256, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert len(optimizer.state) == len(list(model.parameters()))  # no step was left out: no gradient overflows


def test_gradients_are_accumulated_and_clipped(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(4):
        model(torch.randn(8, 256, device="cuda")).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    assert all(parameter.grad.is_cuda for parameter in model.parameters())


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_keeps_less(claimed: memprof.Capture, use_reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    def layer() -> Any:
        up, down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
        return torch.nn.Sequential(up, torch.nn.GELU(), torch.nn.Dropout(0.1), down)

    layers = torch.nn.ModuleList(layer() for _ in range(4)).cuda()

    def peak(recomputes: bool) -> int:
        torch.cuda.reset_peak_memory_stats()
        x = torch.randn(1024, 256, device="cuda", requires_grad=True)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=use_reentrant, preserve_rng_state=True) if recomputes else layer(x)
        x.sum().backward()
        layers.zero_grad()
        return int(torch.cuda.memory_stats()["requested_bytes.all.peak"])

    peak(False), peak(True)  # make the workspaces of cuBLAS
    # Three of four layers do not keep what GELU and the second matrix save (4 MiB each), nor the mask of dropout (1 MiB); when the
    # first is computed again, the gradients of the three (2 MiB and two biases each) are there.
    assert peak(False) - peak(True) >= 3 * ((4 + 4 + 1 - 2) * MiB - 4 * (1024 + 256))


def test_schedulers(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    kinds = torch.optim.lr_scheduler
    parts = [kinds.LinearLR(optimizer, 0.5, total_iters=2), kinds.CosineAnnealingLR(optimizer, 10)]
    scheduler = kinds.SequentialLR(optimizer, parts, [2])
    rates = []
    for _ in range(3):
        rates += scheduler.get_last_lr()
        step(model, optimizer)
        scheduler.step()
    assert rates == [0.5, 0.75, 1.0]
    kinds.ReduceLROnPlateau(optimizer).step(step(model, optimizer).item())


def test_averages_of_a_model(claimed: memprof.Capture) -> None:
    model = Mixer().cuda()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        step(model, optimizer)
        average.update_parameters(model)
    assert average.n_averaged.item() == 2


def test_data_parallel_of_one_process(claimed: memprof.Capture, tmp_path: pathlib.Path) -> None:
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(Mixer().cuda())
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            step(model, optimizer)
        # Parameters, gradients and the buckets in which they are sent, and two moments; the workspaces of cuBLAS.
        assert torch.cuda.memory_allocated() >= 5 * 4 * PARAMETERS + 2 * 8_519_680
    finally:
        distributed.destroy_process_group()


def test_a_compiled_model_runs_eagerly_and_says_so(claimed: memprof.Capture, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.compile(Mixer().cuda())
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    torch.compile(lambda x: x + 1)(torch.ones(2, device="cuda"))
    assert capsys.readouterr().err.count("run eagerly") == 1
    assert any(operation.path.endswith("up/aten::linear/aten::addmm") for operation in claimed.profile.operations)


def test_record_function_is_an_operation(claimed: memprof.Capture) -> None:
    with torch.profiler.record_function("my phase"):
        torch.ones(10, device="cuda")
    assert claimed.profile.find_operation("my phase/aten::ones") is not None


def test_nvtx_ranges(claimed: memprof.Capture) -> None:
    with torch.cuda.nvtx.range("forward"):
        torch.cuda.nvtx.mark("here")
    with torch.autograd.profiler.emit_nvtx():
        torch.ones(2, device="cuda").sum()
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda.cudart().cudaProfilerStop()


# --- data


def test_a_loader(claimed: memprof.Capture) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(8, 4), torch.arange(8))
    seen = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
        assert x.cuda().shape == (4, 4)
        seen += y.tolist()
    assert sorted(seen) == list(range(8))


class Squares(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return torch.full((50_000,), float(index) ** 2), index


@pytest.mark.filterwarnings("error:TypedStorage")  # also in workers, which are forked
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin_memory", [False, True])
def test_a_loader_with_workers_and_pinned_memory(claimed: memprof.Capture, workers: int, pin_memory: bool) -> None:
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=workers, pin_memory=pin_memory)
    seen = []
    for x, y in loader:
        assert x.to("cuda", non_blocking=True).shape == (4, 50_000)
        seen += y.tolist()
        if workers:  # loaded for real
            assert x[:, 0].tolist() == [float(index) ** 2 for index in y.tolist()]
    assert seen == list(range(8)) and claimed.profile.exact


def test_workers_read_a_dataset_of_simulated_tensors(claimed: memprof.Capture) -> None:
    data = torch.utils.data.TensorDataset(torch.randn(8, 50_000), torch.arange(8))
    seen = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=4, num_workers=1):
        assert x.cuda().shape == (4, 50_000)
        seen += y.tolist()
    assert seen == list(range(8))


def test_numpy(claimed: memprof.Capture) -> None:
    numpy = pytest.importorskip("numpy")
    assert torch.from_numpy(numpy.ones((4, 4), "float32")).cuda().sum().item() == 16
    assert torch.ones(1000, 1000).numpy().shape == (1000, 1000)


# --- functions and models


def test_vmap_and_grad(claimed: memprof.Capture) -> None:
    from torch.func import functional_call, grad, jacrev, vmap

    x = torch.randn(4, 8, device="cuda")
    assert vmap(grad(lambda row: row.sin().sum()))(x).shape == (4, 8)
    assert jacrev(lambda row: row.square())(x[0]).shape == (8, 8)
    model = torch.nn.Linear(8, 2).cuda()
    weights = dict(model.named_parameters())
    per_sample = vmap(grad(lambda weights, row: functional_call(model, weights, (row,)).sum()), (None, 0))(weights, x)
    assert per_sample["weight"].shape == (4, 2, 8) and per_sample["weight"].is_cuda


def test_a_custom_function(claimed: memprof.Capture) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return 2 * gradient

    x = torch.ones(1000, device="cuda", requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist()[:1] == [2.0]


def test_hooks(claimed: memprof.Capture) -> None:
    model, called = Mixer().cuda(), []
    model.register_forward_hook(lambda *_: called.append("forward"))
    model.register_full_backward_hook(lambda *_: called.append("backward"))
    model.up.weight.register_post_accumulate_grad_hook(lambda parameter: called.append("gradient"))
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    assert sorted(called) == ["backward", "forward", "gradient"]


def test_generation_ends(claimed: memprof.Capture) -> None:
    """A loop until the end token, which a simulated model may draw as any other."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.Linear(256, 1000)).cuda()
    tokens = torch.zeros(1, 1, dtype=torch.long, device="cuda")
    with torch.inference_mode():
        while tokens.shape[1] < 20 and tokens[0, -1].item() != 999:
            logits = model(tokens)[:, -1] / 0.7
            logits[logits < torch.topk(logits, 50).values[:, -1:]] = -float("inf")
            following = torch.multinomial(torch.softmax(logits, -1), 1)
            tokens = torch.cat([tokens, following], 1)
    assert tokens.shape[1] == 20


def test_convolutions(claimed: memprof.Capture) -> None:
    nn = torch.nn
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(10)]
    model = nn.Sequential(*layers).cuda()
    scores, labels = model(torch.randn(8, 3, 32, 32, device="cuda")), torch.randint(0, 10, (8,), device="cuda")
    nn.functional.cross_entropy(scores, labels).backward()
    assert model[5].weight.shape == (10, 16 * 15 * 15)


def test_recurrent_layers(claimed: memprof.Capture) -> None:
    for layer in (torch.nn.LSTM, torch.nn.GRU):
        output, _ = layer(8, 16, 2, batch_first=True).cuda()(torch.randn(4, 5, 8, device="cuda"))
        output.sum().backward()
        assert output.shape == (4, 5, 16)


def test_transformers(claimed: memprof.Capture) -> None:
    model = torch.nn.Transformer(32, 4, 2, 2, 64, batch_first=True).cuda()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(7, device="cuda")
    output = model(torch.randn(2, 10, 32, device="cuda"), torch.randn(2, 7, 32, device="cuda"), tgt_mask=mask)
    output.sum().backward()
    assert output.shape == (2, 7, 32) and output.is_cuda


def test_attention(claimed: memprof.Capture) -> None:
    query = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
    assert query.grad is not None and query.grad.shape == query.shape


def test_indexing_and_masks(claimed: memprof.Capture) -> None:
    x = torch.randn(100, 100, device="cuda")
    x[x > 0] = 0
    x[torch.arange(5, device="cuda")] += 1
    x.masked_fill_(x.eq(0), 1.0)
    assert torch.where(x > 0, x, -x).shape == x.shape and torch.gather(x, 1, x.argmax(1, keepdim=True)).shape == (100, 1)


def test_parametrizations(claimed: memprof.Capture) -> None:
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(256, 256)).cuda()
    layer(torch.randn(8, 256, device="cuda")).sum().backward()
    torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(64, 64).cuda())(torch.randn(8, 64, device="cuda"))
    torch.nn.init.orthogonal_(torch.empty(20, 10, device="cuda"))
    assert layer.weight.is_cuda


def test_threads(claimed: memprof.Capture) -> None:
    import threading

    made: list[Any] = []

    def work() -> None:
        made.append(torch.empty(1 << 40, device="cuda"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert torch.cuda.memory_allocated() == live(claimed) == 4 << 40
    made.clear()


def test_a_forked_process_has_no_device() -> None:
    program = (
        "import os, sys, memprof, torch\n"
        "with memprof.no_dispatch(device='gpu-24gb'):\n"
        "    x = torch.empty(1 << 20, device='cuda')\n"
        "    if os.fork() == 0:\n"
        "        torch.manual_seed(0)\n"
        "        y = torch.ones(1 << 22) + 1\n"
        "        print(y.shape[0], torch.cuda.is_initialized(), torch.cuda.memory_allocated())\n"
        "        for create in (torch.cuda.init, lambda: x + 1, lambda: torch.empty(1, device='cuda')):\n"
        "            try: create()\n"
        "            except RuntimeError as fault: print('spawn' in str(fault))\n"
        "        sys.stdout.flush()\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    print(torch.cuda.memory_allocated() >> 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [str(1 << 22), "False", "0", "True", "True", "True", "4"], done.stderr


def test_a_loaders_worker_has_no_device(claimed: memprof.Capture) -> None:
    class OnDevice(torch.utils.data.Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.empty(1, device="cuda")

    with pytest.raises(RuntimeError, match="'spawn' start method"):
        next(iter(torch.utils.data.DataLoader(OnDevice(), num_workers=1)))


def test_an_unchanged_script(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).to(device)\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "for step in range(2):\n"
        "    x, labels = torch.randn(64, 4096, device=device), torch.randint(0, 10, (64,), device=device)\n"
        "    loss = torch.nn.functional.cross_entropy(model(x), labels)\n"
        "    del x, labels\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "optimizer.zero_grad()\n"
        "print(device, torch.cuda.memory_stats()['requested_bytes.all.current'])\n"
    )
    program = "import memprof, runpy, sys\nwith memprof.no_dispatch(device='gpu-80gb'): runpy.run_path(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", program, script], capture_output=True, text=True)
    # Parameters and two moments, the loss; the workspaces of cuBLAS, and of cuBLASLt for products with a bias.
    parameters = 4096 * 4096 + 4096 + 4096 * 10 + 10
    assert done.stdout == f"cuda {3 * 4 * parameters + 4 + 2 * 8_519_680 + MiB}\n", done.stderr


def test_an_index_may_be_a_list(claimed: memprof.Capture) -> None:
    x = torch.arange(12, device="cuda").view(3, 4)
    assert x[..., [-1]].tolist() == [[3], [7], [11]] and x[[0, 2]].shape == (2, 4)
    x[[1]] = 0
    assert x[1].tolist() == [0, 0, 0, 0]
    for index in (range(2), (slice(None), (0, 1)), ((1, 2), (0, 1)), [[0], [1]], [slice(1), None], (Ellipsis, range(3))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a list is taken for a tuple
            assert x[index].tolist() == x.cpu()[index].tolist()


def test_a_scripted_function_makes_tensors(claimed: memprof.Capture, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scripted.py").write_text(
        "import torch\n"
        "@torch.jit.script\n"
        "def scale(x: torch.Tensor) -> torch.Tensor:\n"
        "    return x / torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float))\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import scripted  # type: ignore[import-not-found]

        assert scripted.scale(torch.ones(4, device="cuda")).tolist() == [0.5] * 4
    finally:
        sys.path.remove(str(tmp_path))


def test_a_second_device_is_not_there(claimed: memprof.Capture) -> None:
    for make in (lambda: torch.ones(4, device="cuda:1"), lambda: torch.ones(4).to("cuda:1"), lambda: torch.nn.Linear(4, 4).to("cuda:1")):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            make()
    assert torch.ones(4, device="cuda:0").is_cuda


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_traced_cnn_takes_what_it_takes_when_it_is_called(device: str) -> None:
    def step(is_traced: bool) -> tuple[int, set[str]]:
        with memprof.no_dispatch(device="gpu-40gb") as capture:
            first = [torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
            model: Any = torch.nn.Sequential(*first, torch.nn.ConvTranspose2d(64, 8, 2, stride=2), torch.nn.MaxPool2d(2)).to(device)
            x = torch.randn(8, 3, 64, 64, device=device)
            if is_traced:
                model = torch.jit.trace(model, x)
                assert "aten::_convolution" in str(model.inlined_graph)
            memprof.snapshot("MODEL")
            model(x).sum().backward()
            memprof.snapshot("STEP")
        (index,) = [index for index, segment in enumerate(capture.profile.segments) if segment.name == "STEP"]
        usage = capture.profile.space("cuda:0" if device == "cuda" else "cpu").segments[index]
        return usage.segment_peak, {each.name for each in capture.profile.operations}

    traced, operators = step(is_traced=True)
    assert traced == step(is_traced=False)[0]
    if device == "cuda":
        assert not {name for name in operators if "mkldnn" in name or "slow_conv" in name}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_reaches_attention(dtype: Any) -> None:
    """In single precision, its kernel would hold float32 results."""
    with memprof.no_dispatch(device="gpu-80gb") as capture, torch.autocast("cuda", dtype=dtype):
        q = torch.empty(2, 8, 256, 64, device="cuda")
        assert torch.nn.functional.scaled_dot_product_attention(q, q, q).dtype == dtype
        del q
    assert capture.profile.find_operation("aten::scaled_dot_product_attention/aten::_scaled_dot_product_flash_attention")
