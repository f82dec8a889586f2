"""NO_DISPATCH on the CPU: a simulated run allocates what the real one does."""

from __future__ import annotations

import ctypes
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


def test_a_result_takes_its_bytes_however_large_it_is() -> None:
    large = 17_000_000  # numbers: more than the 64 MiB that a kernel on values may take
    with memprof.no_dispatch() as capture:
        numbers = torch.randn(large)
        assert numbers.abs().untyped_storage().nbytes() == 4 * large
        torch.exp(numbers, out=torch.empty(0))
        torch.nn.functional.l1_loss(numbers, torch.zeros(large))
        matrix = torch.randn(300, 300, 300).mT.abs()
        assert (matrix + 1).sum().item() > 0
    with memprof.no_dispatch() as peak:
        torch.randn(large).abs()
    assert peak.profile.space("cpu").cumulative_peak == 2 * 4 * large
    assert capture.profile.space("cpu").cumulative_current == 4 * (large + 300**3)


def test_an_encoder_packs_what_a_mask_leaves() -> None:
    def program() -> None:
        layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 2).eval()
        mask = torch.arange(20) >= torch.tensor([5, 10, 15, 20])[:, None]
        with torch.no_grad():
            assert encoder(torch.ones(4, 20, 64), src_key_padding_mask=mask).shape == (4, 20, 64)

    assert simulated(program) == real(program)


def test_the_programs_own_meta_tensors_take_nothing() -> None:
    with memprof.no_dispatch() as capture:
        x = torch.empty(1000, 1000, device="meta")
        torch.relu(x).flip(0)
        torch.nn.functional.cross_entropy(torch.nn.Linear(1000, 10, device="meta")(x), torch.empty(1000, dtype=torch.long, device="meta"))
    assert [space.cumulative_peak for space in capture.profile.spaces if space.cumulative_peak > 64] == []


def test_operators_of_functions_are_simulated() -> None:
    attention = pytest.importorskip("torch.nn.attention.flex_attention")

    def program() -> None:
        query = torch.ones(2, 4, 128, 16)
        attention.flex_attention(query, query, query, score_mod=lambda score, b, h, i, j: score - (i - j).abs())

    assert simulated(program)[0] == real(program)[0]


def test_data_parallel_of_one_process(tmp_path: pathlib.Path) -> None:
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")

    def step() -> None:
        model = torch.nn.parallel.DistributedDataParallel(Mixer())
        model(torch.randn(8, 256)).sum().backward()

    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        # Threads of gloo free buffers, real and simulated ones, now and then so late that they raise the peak.
        assert min(simulated(step)[0] for _ in range(5)) == min(real(step)[0] for _ in range(5))
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
        return [torch.compile, torch.tensor, torch.Tensor.new_tensor, torch.Tensor.tolist, torch.Tensor.numpy, torch.cuda.is_available, torch.nn.Module._call_impl,
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


@pytest.mark.parametrize(("batch", "matrices"), [(1, 13), (3, 11)])
def test_the_exponential_of_a_matrix_holds_its_scratch_memory(batch: int, matrices: int) -> None:
    """Besides the input: the numbers are those of a real run, without blocks of a few bytes."""

    def program() -> None:
        torch.linalg.matrix_exp(torch.randn(batch, 300, 300))

    expected = (1 + matrices) * batch * 300 * 300 * 4
    assert 0 <= real(program)[0] - expected < 1000
    with memprof.no_dispatch() as capture:
        program()
    assert numbers(capture)[0] == expected
    assert [row["name"] for row in capture.profile.table("approximations").rows()] == ["aten::linalg_matrix_exp"]


def reads(capture: memprof.Capture) -> list[tuple[str, str, int, int]]:
    rows = capture.profile.table("unknown_reads").rows()
    named = [(row["name"], row["operation"], row["count"], row["steers"]) for row in rows]
    return [row for row in named if not row[0].startswith("comparison of ")]  # of a test itself


def test_lists_and_arrays_hold_what_item_returns() -> None:
    np = pytest.importorskip("numpy")
    with memprof.no_dispatch() as capture:
        numbers = torch.rand(300, 300)
        one = float(np.float32(numbers[2, 3].item()))
        assert 0 < one < 1
        assert numbers.tolist() == [[one] * 300] * 300
        assert numbers[:, 5].tolist() == [one] * 300 == numbers.t()[0].tolist()
        small = torch.rand(300, 300)[0].clone()
        assert small.tolist() == [float(np.float32(small[9].item()))] * 300
        for array in (numbers.numpy(), np.asarray(numbers), numbers.requires_grad_().numpy(force=True)):
            assert array.shape == (300, 300) and (array == one).all()
        with pytest.raises(RuntimeError, match="requires grad"):
            numbers.numpy()
        indices = torch.rand(300, 300).argmax(1)
        assert indices.tolist() == [0] * 300 and (indices.numpy() == 0).all()
        assert torch.arange(4).tolist() == [0, 1, 2, 3] and torch.ones(2).numpy().tolist() == [1, 1]  # known
        with memprof.real_scope():
            assert torch.full((300, 300), 2.0).numpy().sum() == 180_000
    listed = {(name, steers): count for name, _, count, steers in reads(capture)}
    assert listed == {
        ("Tensor.tolist", 0): 4, ("Tensor.numpy", 0): 3, ("aten::item", 0): 2, ("Tensor.tolist", 1): 1, ("Tensor.numpy", 1): 1
    }  # fmt: skip


def test_lists_and_arrays_of_numbers_leave_a_profile_exact() -> None:
    np = pytest.importorskip("numpy")
    with memprof.no_dispatch() as capture, memprof.track_operation("log"):
        torch.rand(300, 300).sum(0).tolist()
        torch.rand(300, 300).numpy()
    assert reads(capture) == [("Tensor.tolist", "log", 1, 0), ("Tensor.numpy", "log", 1, 0)]
    assert capture.profile.exact
    with memprof.no_dispatch() as capture:
        for mebibytes, is_filled in ((64, True), (65, False)):
            assert (torch.rand(mebibytes << 18).numpy()[-1] != 0) == is_filled
        unseen = torch.rand(300, 300)
        assert ctypes.c_float.from_address(unseen.data_ptr()).value == np.from_dlpack(unseen)[2, 3] == 0
    assert reads(capture) == [("Tensor.numpy", "", 2, 0)]
    with memprof.no_dispatch() as capture:
        (torch.rand(300, 300) > 0.5).numpy()
    assert reads(capture) == [("Tensor.numpy", "", 1, 1)]
    assert not capture.profile.exact


def test_a_count_that_is_read_as_a_number_leaves_a_profile_exact() -> None:
    def right() -> Any:
        return (torch.rand(300, 300) > 0.5).sum()

    for read, steers in ((lambda: float(right().float()), 0), (lambda: right().float().item(), 0), (lambda: right().item(), 1)):
        with memprof.no_dispatch() as capture:
            read()
        assert reads(capture) == [("aten::item", "", 1, steers)]
        assert capture.profile.exact == (steers == 0)


def test_sizes_by_late_draws_are_listed_until_the_generator_is_seeded() -> None:
    def is_listed(program: Callable[[Any], Any]) -> bool:
        with memprof.no_dispatch() as capture:
            torch.manual_seed(1)
            torch.rand(5)
            state = torch.get_rng_state()
            torch.rand(300, 300)  # is not drawn
            program(state).gt(0.5).nonzero()
        return not capture.profile.exact

    def after(prepare: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda state: (prepare(state), torch.rand(5))[1]

    def drawn_into(state: Any) -> Any:
        late = torch.rand(5)
        torch.manual_seed(1)
        return late.uniform_()

    assert is_listed(after(lambda state: None))
    assert not is_listed(after(lambda state: torch.manual_seed(1)))
    # Right, but listed.
    assert is_listed(after(torch.set_rng_state))
    assert is_listed(drawn_into)


def test_an_integer_or_a_decision_that_is_drawn_late_is_listed() -> None:
    def listed(read: Callable[[], object], seeds: bool = False) -> list[tuple[str, str, int, int]]:
        with memprof.no_dispatch() as capture:
            torch.randn(300, 300)  # is not drawn
            if seeds:
                torch.manual_seed(1)
            read()
        if capture.profile.exact:
            with pytest.raises(memprof.Error, match="unknown table"):
                reads(capture)
            return []
        return reads(capture)

    steers = [("aten::item", "", 1, 1)]
    assert listed(lambda: int(torch.randint(2, 9, ()).item())) == steers
    assert listed(lambda: int(torch.randint(2, 9, (4,)).max() + 1)) == steers
    assert listed(lambda: int(torch.randint(2, 9, ()).item()), seeds=True) == []
    assert listed(lambda: torch.rand([]) < 0.1 and None) == [("aten::is_nonzero", "", 1, 1)]
    assert listed(lambda: (torch.randn([]) < 0).item()) == steers
    assert listed(lambda: torch.isfinite(torch.randn(9)).all().item()) == []
    assert listed(lambda: torch.arange(9)[torch.randint(9, (2,))][0].item()) == steers
    assert listed(lambda: torch.randn(9).log().isnan().any().item()) == steers
    # Layers are dropped with this probability, which is nothing by default: no draw is less.
    assert listed(lambda: torch.rand([]) < 0.0 and None) == listed(lambda: (torch.rand([]) >= 1).item()) == []
    assert listed(lambda: torch.rand([]).mul_(2) > 1 and None) == [("aten::is_nonzero", "", 1, 1)]
    assert listed(lambda: torch.empty((), dtype=torch.int64).random_().item()) == []  # a seed, as loaders draw
    assert listed(lambda: print(torch.rand(()).item())) == []
    assert listed(lambda: next(iter(torch.utils.data.DataLoader(range(9), shuffle=True)))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("make", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_products_with_large_matrices_peak_as_in_a_real_run(make: str) -> None:
    def program() -> None:
        few = getattr(torch.eye(100), make)()  # 40 kB: known
        torch.sparse.mm(few, torch.zeros(100, 400))

    if make != "to_sparse_csc":  # has no such product
        assert simulated(program)[0] == real(program)[0]
    with memprof.no_dispatch() as capture:
        getattr(torch.randn(200, 200).relu(), make)()
    # How many of the numbers are not zero.
    assert not capture.profile.exact
    assert any(str(row["name"]).startswith("aten::_to_sparse") for row in capture.profile.table("assumed_sizes").rows())


def test_a_sparse_sum_over_late_draws_is_listed() -> None:
    def listed(seed: int | None) -> list[str]:
        with memprof.no_dispatch() as capture:
            layer = torch.nn.Embedding(5000, 64, sparse=True)
            if seed is not None:
                torch.manual_seed(seed)
            layer(torch.randint(5000, (256,))).square().mean().backward()
            gradient = layer.weight.grad
            assert gradient is not None and gradient.coalesce()._nnz() <= 256
        assert capture.profile.exact == (seed is not None)
        return [str(row["name"]) for row in capture.profile.table("assumed_sizes").rows()] if seed is None else []

    assert listed(None) == ["aten::_coalesce"]
    assert listed(7) == []


def test_order_statistics_of_unknown_numbers_are_in_order() -> None:
    with memprof.no_dispatch():
        x = torch.randn(512, 512)
        least, most = x.aminmax()
        assert least <= x.quantile(0.1) <= x.quantile(0.9) <= most
        assert x.min() <= x.median() <= x.max()
        assert (x.sort().values[:, 1:] >= x.sort().values[:, :-1]).all() and x.topk(5).values.min() <= x.max()
        assert (x.log_softmax(-1) <= 0).all() and ((x.softmax(-1).sum(-1) - 1).abs() < 1e-6).all()
        fives = torch.full((300, 1000), 5.0)
        assert (fives % 1 == 0).all() and (fives.floor() == fives).all()
        torch.distributions.Multinomial(5, probs=x.softmax(-1)).sample()
        torch.distributions.MultivariateNormal(torch.zeros(300, 300), torch.eye(300)).sample()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_tensor_equals_its_copy(dtype: Any) -> None:
    with memprof.no_dispatch() as capture:
        x = (torch.randn(3000, 1000) * 100).to(dtype)
        row = x[5]
        assert torch.equal(x, x.clone()) and (x == x.clone()).all() and torch.equal(x.t(), x.t().contiguous())
        assert torch.equal(row, row.clone()) and (row == row.clone()).all() and torch.equal(row.clone(), row.clone())
        before = [x.clone(), row.clone()]
        x.add_(1)
        assert not torch.equal(x, before[0]) and not torch.equal(x[5], before[1])
        assert not torch.equal(x, x[:-1])
    assert ("aten::equal", "", 6, 1) in reads(capture) and not capture.profile.exact
    with memprof.no_dispatch() as capture:
        x = torch.randn(300, 1000)
        assert torch.equal(x, x) and torch.equal(torch.ones(3), torch.ones(3)) and not torch.equal(x, x[:-1])
        assert not torch.equal(torch.arange(3), torch.arange(3) + 1)
    with pytest.raises(memprof.Error, match="unknown table"):
        reads(capture)
    assert capture.profile.exact


def test_a_program_that_decides_by_lists_and_arrays_peaks_as_it_does_for_real() -> None:
    pytest.importorskip("numpy")

    def keep_the_best() -> None:
        torch.manual_seed(1)
        model = Mixer()
        best, kept = 0.0, []
        for _ in range(3):
            with torch.no_grad():
                scores = torch.sigmoid(model(torch.randn(4000, 256)))
            if scores.numpy().max() > best:
                best = 1.0
                kept = [p.detach().clone() for p in model.parameters()]
            share = 1 / max(torch.sigmoid(model.up.weight).sum(1).tolist())  # not by zero
            if share < 1:
                kept.append(torch.zeros(1000, 1000))

    assert simulated(keep_the_best) == real(keep_the_best)


def test_arrays_and_lists_keep_what_torch_says_of_them() -> None:
    class Named(torch.Tensor):
        """`Tensor.tolist` and `numpy` go through `__torch_function__`."""

        called: list[str] = []

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.called.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    pytest.importorskip("numpy")
    with memprof.no_dispatch() as capture:
        named = torch.rand(300, 300).as_subclass(Named)
        assert named.tolist()[0][0] == named.numpy()[0, 0] > 0
        complex_numbers = torch.ones(3, dtype=torch.complex64).conj()
        assert complex_numbers.tolist() == [1, 1, 1]
        with pytest.raises(RuntimeError, match="conjugate"):
            complex_numbers.numpy()
        with pytest.raises(RuntimeError, match="meta"):
            torch.ones(3, device="meta").tolist()
        with pytest.raises(TypeError, match="Sparse"):
            torch.eye(3).to_sparse().numpy()
    assert len(Named.called) >= 2
    assert [name for name, *_ in reads(capture)] == ["Tensor.tolist", "Tensor.numpy"]


@pytest.mark.parametrize("way", ["tensor", "item", "list"])
def test_a_loop_that_ends_by_its_loss_ends_with_a_message(way: str) -> None:
    from memprof.torch import set_read_limit

    def loss_of_step(model: Any) -> Any:
        model.zero_grad()
        loss = model(torch.randn(64, 256)).square().mean()
        loss.backward()
        return loss

    goes_on = {
        "tensor": lambda loss: loss > 1e-9,
        "item": lambda loss: loss.item() > 1e-9,
        "list": lambda loss: loss.tolist() > 1e-9,
    }[way]
    set_read_limit(20)
    steps = 0
    try:
        with memprof.no_dispatch(), pytest.raises(RuntimeError, match="20 times without any progress"):
            model = Mixer()
            while goes_on(loss := loss_of_step(model)):
                steps += 1
                with memprof.track_operation("log"):
                    float(loss)
    finally:
        set_read_limit(100_000)
    assert 19 <= steps <= 20
    with pytest.raises(memprof.Error, match="at least 1"):
        set_read_limit(0)


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


def test_a_traced_pooling_is_in_the_trace() -> None:
    with memprof.no_dispatch(), torch.no_grad():
        traced: Any = torch.jit.trace(torch.nn.MaxPool1d(2), torch.randn(4, 8, 64), check_trace=False)
        assert "max_pool1d" in str(traced.graph)
