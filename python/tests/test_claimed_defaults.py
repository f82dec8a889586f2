"""NO_DISPATCH: programs that make a claimed CUDA device, or one of its tensor types, their default; and compiled ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")


@pytest.fixture(autouse=True)
def defaults_are_restored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # set_default_tensor_type is deprecated
        yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def made() -> list[Any]:
    return [torch.zeros(3), torch.randn(3), torch.tensor([1.0, 2.0]), torch.nn.Linear(3, 3).weight, torch.as_tensor([1.0])]


@pytest.mark.parametrize("named", [False, True])
def test_tensors_are_made_of_the_default_type(named: bool) -> None:
    with memprof.no_dispatch(device="gpu-24gb"):
        torch.set_default_tensor_type("torch.cuda.DoubleTensor" if named else torch.cuda.DoubleTensor)
        assert {(one.device.type, one.dtype) for one in [*made(), torch.Tensor(2, 3), torch.Tensor([1, 2])]} == {("cuda", torch.float64)}
        assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([1, 2]).tolist() == [1, 2]
        assert torch.zeros(2, device="cpu").is_cpu and torch.arange(3).is_cuda and torch.arange(3).dtype is torch.int64
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_tensor_type(torch.cuda.LongTensor)
        torch.set_default_tensor_type(torch.FloatTensor)
        assert {(one.device.type, one.dtype) for one in [*made(), torch.Tensor(2)]} == {("cpu", torch.float32)}


def test_a_default_type_of_the_device_ends_with_the_capture() -> None:
    with memprof.no_dispatch(device="gpu-24gb"):
        torch.set_default_tensor_type(torch.cuda.FloatTensor)
    assert all(one.is_cpu for one in [*made(), torch.Tensor(2), torch.nn.Parameter(torch.ones(1))])
    assert torch.Tensor([1, 2]).tolist() == [1, 2]


def test_the_device_can_be_the_default() -> None:
    def train() -> None:
        model = torch.nn.Linear(300, 400)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(50, 300)).sum().backward()
        optimizer.step()
        assert all(one.is_cuda for one in [*made(), model.weight.grad, torch.arange(3), torch.eye(2)])

    with memprof.no_dispatch(device="gpu-24gb") as capture:
        torch.set_default_device("cuda")
        train()
        torch.set_default_device(None)
        assert torch.zeros(1).is_cpu
        with torch.device("cuda"):
            train()
    space = capture.profile.space("cuda:0")
    assert space.cumulative_peak > 4 * (4 * 300 * 400 + 400)


def test_the_cpu_has_no_workspaces_of_an_earlier_device() -> None:
    def multiply(device: str) -> None:
        torch.ones(300, 300, device=device) @ torch.ones(300, 300, device=device)

    with memprof.no_dispatch(device="gpu-24gb") as claimed:
        multiply("cuda")
    with memprof.no_dispatch() as simulated:
        multiply("cpu")
    assert "library_workspaces" in claimed.profile.facts and "library_workspaces" not in simulated.profile.facts


@pytest.mark.parametrize(("backend", "is_exact"), [("eager", True), ("aot_eager", False)])
def test_a_compiled_program_is_not_exact_unless_it_runs_eagerly_for_real(backend: str, is_exact: bool) -> None:
    with memprof.no_dispatch() as capture:
        model = torch.compile(torch.nn.Linear(300, 300), backend=backend)
        model(torch.ones(2, 300)).sum().backward()
    assert capture.profile.exact == is_exact
    assert is_exact or "torch.compile" in capture.profile.facts["unknown_reads"][0]["name"]
