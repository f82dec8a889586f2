"""NO_DISPATCH: sizes that depend on data, on a claimed CUDA device, where the data is known, and where CUDA's generator has drawn it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")

MASK = [True, False, True, False, False] * 20
INDICES = [1, 2, 2, 3, 3, 3, 1, 0]
EDGES = [[0, 1, 2, 2], [1, 2, 0, 2]]

SELECTIONS: dict[str, Callable[[str], Any]] = {
    "mask": lambda device: torch.randn(100, 1000, device=device)[torch.tensor(MASK, device=device)],
    "mask of rows and columns": lambda device: torch.randn(3, 4, 500, device=device)[:, torch.tensor(MASK[:4], device=device)],
    "mask with gaps": lambda device: torch.randn(50, 9, device=device)[torch.tensor(MASK, device=device)[::2]],
    "masked_select": lambda device: torch.randn(100, 7, device=device).masked_select(torch.tensor(MASK, device=device)[:, None]),
    "nonzero": lambda device: torch.tensor(MASK, device=device).nonzero(),
    "nonzero of numbers": lambda device: torch.tensor([0.0, 1.5, 0.0, 2.5], device=device).nonzero(),
    "where": lambda device: torch.where(torch.tensor(INDICES, device=device) == 2),
    "argwhere": lambda device: torch.argwhere(torch.tensor(INDICES, device=device) > 1),
    "unique": lambda device: torch.tensor(INDICES, device=device).unique(return_inverse=True, return_counts=True),
    "unique columns": lambda device: torch.tensor([INDICES, INDICES], device=device).unique(dim=1),
    "unique_consecutive": lambda device: torch.tensor(INDICES, device=device).unique_consecutive(return_counts=True),
    "unique_consecutive rows": lambda device: torch.tensor([[1, 2], [1, 2], [3, 4]], device=device).unique_consecutive(dim=0),
    "many integers": lambda device: (lambda n: n[n % 3 == 0])(torch.arange(100_000, device=device)),
    "edges": lambda device: (lambda edges: edges[:, edges[0] != edges[1]])(torch.tensor(EDGES, device=device)),
    "assignment": lambda device: torch.zeros(100, 8, device=device).index_put_((torch.tensor(MASK, device=device),), torch.ones(40, 8, device=device)),
}


def sizes(found: Any) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", SELECTIONS)
def test_known_data_selects_what_it_does_on_the_cpu(name: str) -> None:
    expected = sizes(SELECTIONS[name]("cpu"))
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        assert sizes(SELECTIONS[name]("cuda")) == expected
    assert "assumed_sizes" not in capture.profile.facts and capture.profile.exact


def test_a_size_by_numbers_that_the_device_has_drawn_is_listed() -> None:
    """Its generator is not that of the CPU, whose numbers the simulation has."""
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        torch.manual_seed(0)
        chosen = torch.rand(64, device="cuda").topk(8).indices % 4
        assert 0 <= len((chosen == 1).nonzero()) <= 8
    assert [row["name"] for row in capture.profile.facts["assumed_sizes"]] == ["aten::nonzero"]
    assert not capture.profile.exact


def test_a_size_by_such_numbers_on_the_cpu_is_listed() -> None:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        mask = (torch.rand(64, device="cuda") > 0.5).cpu()
        assert len(torch.zeros(64, 1000)[mask]) <= 64
    assert capture.profile.facts["assumed_sizes"] and not capture.profile.exact


@pytest.mark.parametrize("make", ["to_sparse_csr", "to_sparse_csc"])
@pytest.mark.parametrize("rows", [8, 500])
def test_a_compressed_layout_is_refused(make: str, rows: int) -> None:
    """It was on the CPU, in a profile that said it was exact."""
    with memprof.no_dispatch(device="gpu-24gb"):
        matrix = torch.ones(rows, rows, device="cuda")
        with pytest.raises(RuntimeError, match="compressed layouts"):
            getattr(matrix, make)()


def written_at(indices: Any) -> Any:
    found = torch.zeros(9, device=indices.device)
    found[indices] = 1
    return found


DECISIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "an integer": (lambda drawn: (drawn * 100).long()[0].item(), True),
    "a truth value": (lambda drawn: bool(drawn[0] > drawn[1]), True),
    "the token of a sample": (lambda drawn: torch.multinomial(drawn, 1).item() == 3, True),
    "whether it equals another": (lambda drawn: torch.equal(drawn, torch.zeros(64, device="cuda")), True),
    "whether what it gives is a number": (lambda drawn: bool((drawn - 0.5).log().isnan().any()), True),
    "whether it equals itself": (lambda drawn: bool(((logs := (drawn - 0.5).log()) == logs).all()), True),
    "where it was written": (lambda drawn: written_at((drawn * 9).long()).argmax().item(), True),
    "what is chosen by it": (lambda drawn: torch.arange(9, device=drawn.device)[(drawn * 9).long()][0].item(), True),
    "a number that is printed": (lambda drawn: f"{drawn.sum().item():.3f}", False),
    "whether it is finite": (lambda drawn: bool(torch.isfinite(drawn).all()), False),
    "whether it is no number": (lambda drawn: bool(drawn.isnan().any() | drawn.isinf().any()), False),
    "whether it is between 0 and 1": (lambda drawn: bool((drawn >= 0).all()) and bool((drawn < 1).all()), False),
    "its size": (lambda drawn: drawn.numel() + len(drawn), False),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_by_numbers_that_the_device_has_drawn_is_listed(name: str) -> None:
    decide, is_listed = DECISIONS[name]
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        decide(torch.rand(64, device="cuda"))
    rows = [row for row in capture.profile.facts.get("unknown_reads", []) if row["steers"]]
    assert ([row["count"] for row in rows], capture.profile.exact) == ([1] * is_listed, not is_listed)


def test_a_decision_by_numbers_of_the_program_is_not_listed() -> None:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        assert torch.tensor(INDICES, device="cuda")[1].item() == 2
        assert torch.tensor(INDICES, device="cuda").tolist() == INDICES
        assert bool(torch.rand(64)[0] < 2)
        indices, others = torch.tensor(INDICES, device="cuda"), torch.tensor(INDICES[::-1], device="cuda")
        assert torch.equal(indices, indices.clone()) and not torch.equal(indices, others)
        assert torch.allclose(indices.float(), indices.clone().float())
    assert "unknown_reads" not in capture.profile.facts and capture.profile.exact
