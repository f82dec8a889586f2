"""NO_DISPATCH on the CPU: a simulated run allocates what the real one does."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

OPTIMIZERS = sorted(
    name
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
)
Numbers = tuple[int, int, int, int]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def numbers(capture: memprof.Capture, space: str = "cpu") -> Numbers:
    found = capture.profile.space(space)
    return found.cumulative_peak, found.allocations, found.allocation_count, found.cumulative_current


def real(program: Callable[[], object]) -> Numbers:
    program()  # what is allocated once and kept
    with memprof.capture() as capture:
        program()
    return numbers(capture)


def simulated(program: Callable[[], object]) -> Numbers:
    with memprof.no_dispatch() as capture:
        program()
    return numbers(capture)


class Mixer(torch.nn.Module):
    """Weights of 256 KiB: too large to hold values in a simulation."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        return self.head(x + self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


def optimizer_for(name: str, device: str = "cpu") -> tuple[Any, Any, Any]:
    """A model that the optimizer accepts, an input for it, and the optimizer."""
    if name == "SparseAdam":
        model: Any = torch.nn.Embedding(500, 256, sparse=True).to(device)
        return model, torch.arange(0, 500, 2, device=device), torch.optim.SparseAdam(model.parameters())
    if name == "Muon":  # takes matrices only
        model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, bias=False) for _ in range(2))).to(device)
    else:
        model = Mixer().to(device)
    # Of L-BFGS, what does not depend on the values of gradients: one iteration, without a test whether it is the last.
    options = {"LBFGS": dict(max_iter=1, tolerance_grad=-1, tolerance_change=-1)}.get(name, {})
    return model, torch.randn(64, 256, device=device), getattr(torch.optim, name)(model.parameters(), **options)


def two_steps(name: str, device: str = "cpu") -> None:
    torch.manual_seed(0)
    model, x, optimizer = optimizer_for(name, device)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


def test_the_optimizers_are_found() -> None:
    assert {"Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "LBFGS", "NAdam", "RMSprop", "SGD"} <= set(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_peaks_as_in_a_real_run(name: str) -> None:
    peak, allocated, blocks, left = real(lambda: two_steps(name))
    simulated_peak, simulated_allocated, simulated_blocks, simulated_left = simulated(lambda: two_steps(name))
    assert (simulated_peak, simulated_left) == (peak, left)
    # What is missing are scalars that libtorch makes without its dispatcher.
    assert 0 <= allocated - simulated_allocated <= 8 * (blocks - simulated_blocks)


def test_a_step_larger_than_any_machine() -> None:
    with memprof.no_dispatch() as capture:
        weight = torch.nn.Parameter(torch.empty(1_000_000, 1_000_000))
        (weight * 2).sum().backward()
    space = capture.profile.space("cpu")
    # The weight, its double, the sum; then the gradients of the product and of the weight.
    assert capture.profile.mode == "no_dispatch"
    assert space.cumulative_peak >= 2 * 4_000_000_000_000
    assert weight.grad is not None and weight.grad.shape == weight.shape


def test_data_parallel_of_one_process(tmp_path: pathlib.Path) -> None:
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")

    def step() -> None:
        model = torch.nn.parallel.DistributedDataParallel(Mixer())
        model(torch.randn(8, 256)).sum().backward()

    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        # Threads of gloo free buffers of the real run, now and then so late that they raise its peak.
        assert simulated(step)[0] == min(real(step)[0] for _ in range(5))
    finally:
        distributed.destroy_process_group()


def test_small_tensors_hold_what_the_program_computes() -> None:
    with memprof.no_dispatch():
        assert torch.arange(10).sum().item() == 45
        assert torch.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert torch.eye(3).new_tensor([7, 8]).dtype == torch.float32


def test_a_real_scope_computes() -> None:
    with memprof.no_dispatch() as capture:
        with memprof.real_scope():
            data = torch.full((300_000,), 2.0)
            assert data.sum().item() == 600_000
    assert capture.profile.space("cpu").cumulative_peak >= 1_200_000
    with memprof.real_scope():
        assert torch.ones(3).sum().item() == 3


def test_a_program_runs_for_real_before_and_after() -> None:
    def result() -> float:
        torch.manual_seed(0)
        return Mixer()(torch.randn(8, 256)).sum().item()

    before = result()
    with memprof.no_dispatch():
        Mixer()(torch.randn(8, 256))
    assert result() == before


def test_what_was_replaced_is_restored() -> None:
    def replaced() -> list[object]:
        return [torch.compile, torch.tensor, torch.Tensor.new_tensor, torch.cuda.is_available, torch.nn.Module._call_impl,
                torch.utils.data._utils.worker._worker_loop, torch.cuda.Stream, torch.cuda.memory_stats_as_nested_dict]

    def shape_of_meta() -> Any:  # of an operator with a shape function in Python
        return torch.ops.aten.elu.default(torch.empty(3, device="meta")).shape

    before = replaced()
    for device in ("", "gpu-24gb"):
        with memprof.no_dispatch(device=device):
            pass
        assert replaced() == before and shape_of_meta() == (3,)
        with pytest.raises(ValueError, match="its own"), memprof.no_dispatch(device=device):
            raise ValueError("its own")
        assert replaced() == before
    capture = memprof.no_dispatch()
    del capture
    assert replaced() == before and not memprof.is_capturing()


def test_a_device_that_does_not_exist_leaves_nothing_replaced() -> None:
    before = torch.compile, torch.cuda.is_available
    with pytest.raises(memprof.Error, match="gpu-25gb"):
        memprof.no_dispatch(device="gpu-25gb")
    with memprof.capture(), pytest.raises(memprof.Error, match="active"):
        memprof.no_dispatch()
    assert (torch.compile, torch.cuda.is_available) == before


def test_a_device_that_cannot_be_claimed_leaves_nothing_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.compile, torch.cuda.is_available
    monkeypatch.delattr(torch, "Event")
    with pytest.raises(memprof.Error, match="needs torch 2.5"):
        memprof.no_dispatch(device="gpu-24gb")
    assert (torch.compile, torch.cuda.is_available) == before and not memprof.is_capturing()


def test_captures_and_simulations_alternate() -> None:
    expected = real(lambda: two_steps("SGD"))
    for _ in range(2):
        assert simulated(lambda: two_steps("SGD")) == expected
        assert real(lambda: two_steps("SGD")) == expected


def test_what_is_not_known_is_in_the_profile() -> None:
    with memprof.no_dispatch() as capture:
        torch.rand(300, 300).nonzero()
        with memprof.track_operation("until it converges"):
            bool(torch.rand(300, 300).sum() > 1)
    assert [row["name"] for row in capture.profile.table("assumed_sizes").rows()] == ["aten::nonzero"]
    assert [row["operation"] for row in capture.profile.table("unknown_reads").rows()] == ["until it converges"]
    assert not capture.profile.exact


@pytest.mark.parametrize("first", ["memprof", "torch"])
def test_either_may_be_imported_first(first: str) -> None:
    program = f"""
import {first}
import memprof, torch
with memprof.no_dispatch(device="gpu-24gb") as capture:
    weight = torch.nn.Parameter(torch.ones(1000, 1000, device="cuda"))
    weight.square().sum().backward()
print(weight.grad.device, capture.profile.space("cuda:0").cumulative_current)
"""
    # The weight and its gradient.
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ}).stdout
    assert said == "cuda:0 8000000\n"


def test_a_capture_that_is_open_at_the_end_of_the_program() -> None:
    program = "import memprof, torch\nopen_till_the_end = memprof.no_dispatch()\ntorch.ones(3)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
