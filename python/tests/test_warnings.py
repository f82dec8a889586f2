"""Warnings of a simulated program name the lines that they name without memprof."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")

CASES: dict[str, Callable[[str], object]] = {
    "float": lambda device: float(torch.ones((), device=device, requires_grad=True)),
    "copy": lambda device: torch.tensor(torch.ones(3, device=device)),
    "copy to the device": lambda device: torch.tensor(torch.ones(3), device=device),
    "new_tensor": lambda device: torch.ones(3, device=device).new_tensor(torch.ones(2, device=device)),
    "arrays": lambda device: torch.tensor([np.ones(3)] * 2, device=device),
    "as_tensor of arrays": lambda device: torch.as_tensor([np.ones(3)] * 2, device=device),
    "an array that is only read": lambda device: torch.as_tensor(np.broadcast_to(np.ones(1), (3,)), device=device),
    "index": lambda device: torch.ones(4, device=device)[torch.ones(4, dtype=torch.uint8, device=device)],
}


@pytest.fixture(autouse=True)
def warn_always() -> Iterator[None]:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def warned(program: Callable[[str], object], device: str) -> set[tuple[str, int, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(device)
    return {(one.filename, one.lineno, str(one.message)) for one in caught}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_names_the_programs_line(name: str) -> None:
    program = CASES[name]
    expected = warned(program, "cpu")
    assert {place for place, *_ in expected} == {__file__}
    with memprof.no_dispatch():
        assert warned(program, "cpu") == expected
    with memprof.no_dispatch(device="gpu-24gb"):
        assert warned(program, "cpu") == warned(program, "cuda") == expected


def test_a_copy_on_the_device_is_a_copy() -> None:
    with memprof.no_dispatch(device="gpu-24gb"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.ones(1 << 18, device="cuda")
        copies: list[Any] = [torch.tensor(x), torch.tensor(x, device="cuda"), x.new_tensor(x), torch.tensor(x.cpu(), device="cuda")]
        assert torch.cuda.memory_allocated() == 5 << 20
        assert torch.as_tensor(x) is x and torch.as_tensor(x, device="cuda").data_ptr() == x.data_ptr()
        assert torch.cuda.memory_allocated() == 5 << 20
        assert all(not copy.requires_grad for copy in copies)
