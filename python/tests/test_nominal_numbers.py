"""Python's floats that a simulation does not know: who decides by them is listed, and who prints them is not."""

from __future__ import annotations

import copy
import io
import json
import logging
import math
import pickle
import random
import statistics
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")


def unknown() -> Any:
    """A loss of large tensors."""
    return torch.rand(300, 300).square().mean()


def decisions(program: Callable[[], object]) -> list[str]:
    """What is listed, without the line. The profile is exact if nothing is."""
    with memprof.no_dispatch() as capture:
        program()
    assert torch.Tensor.item is torch._C.TensorBase.item and torch.Tensor.__float__ is torch._C.TensorBase.__float__
    rows = capture.profile.table("unknown_reads").rows() if "unknown_reads" in capture.profile.facts else []
    found = sorted(row["name"] for row in rows if row["steers"])
    assert capture.profile.exact == (not found)
    assert all(name.rpartition(":")[2].isdigit() for name in found if " at " in name)
    return [name.rpartition(" at ")[0] or name for name in found]


def test_a_comparison_is_listed_with_its_operation_and_line() -> None:
    with memprof.no_dispatch() as capture, memprof.track_operation("validate"):
        if unknown().item() < 0.5:
            torch.ones(3)
    line = test_a_comparison_is_listed_with_its_operation_and_line.__code__.co_firstlineno + 2
    rows = [row for row in capture.profile.table("unknown_reads").rows() if row["steers"]]
    assert [(row["name"], row["operation"], row["count"]) for row in rows] == [
        (f"comparison of Tensor.item() at test_nominal_numbers.py:{line}", "validate", 1)
    ]
    assert not capture.profile.exact
    assert f"not exact: comparison of Tensor.item() at test_nominal_numbers.py:{line} in validate read what" in " ".join(
        str(capture.profile).split()
    )


def early_stop(limit: float = 0.25) -> None:
    best = math.inf
    for _ in range(3):
        loss = unknown().item()
        if loss < best - limit:
            best = loss


def search_a_line() -> None:
    step, start = 1.0, unknown().item()
    while unknown().item() > start - 1e-4 * step and step > 1e-3:
        step *= 0.5


def skip_by_norm() -> None:
    model = torch.nn.Linear(300, 300)
    model(torch.rand(300, 300)).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm.item() > 10 or not math.isfinite(norm.item()):
        model.zero_grad()


def act_greedily() -> None:
    """With numbers of Python, which are what they are."""
    values = torch.nn.Linear(300, 300)(torch.rand(300, 300))
    if random.random() > 0.5 + values.mean().item():
        values.sum()


class Layers:
    worst = 0.1

    def stop(self) -> bool:
        return unknown().tolist() > self.worst


DECIDING: dict[str, tuple[Callable[[], object], list[str]]] = {
    "early stopping": (early_stop, ["comparison of Tensor.item()"]),
    "line search": (search_a_line, ["comparison of Tensor.item()"]),
    "norm": (skip_by_norm, ["comparison of Tensor.item()"]),
    "greedy": (act_greedily, ["comparison of Tensor.item()"]),
    "list": (Layers().stop, ["comparison of Tensor.tolist()"]),
    "element of a list": (lambda: torch.rand(300, 300).tolist()[3][4] < 0.5, ["comparison of Tensor.tolist()"]),
    "computed": (lambda: sum([unknown().item(), 1.0]) / 2 - 1 >= 0, ["comparison of Tensor.item()"]),
    "mean": (lambda: statistics.mean([unknown().item()] * 2) != 1, ["comparison of Tensor.item()"]),
    "least": (lambda: min(unknown().item(), 3.0) == 2, ["comparison of Tensor.item()"]),
    "least by a key": (lambda: min([(1, 2.0), (2, unknown().item())], key=lambda pair: pair[1]), ["comparison of Tensor.item()"]),
    "sorted by a key": (lambda: [unknown().item(), unknown().item()].sort(key=lambda loss: -loss), ["comparison of Tensor.item()"]),
    "least by a key, or a default": (
        lambda: min([unknown().item(), unknown().item()], key=lambda loss: loss, default=0.0),
        ["comparison of Tensor.item()"],
    ),
    "pairs": (lambda: sorted([(unknown().item(), 1), (unknown().item(), 2)], reverse=True), ["comparison of Tensor.item()"]),
    "truth": (lambda: unknown().item() or 3, ["truth of Tensor.item()"]),
    "integers": (
        lambda: [use(unknown().item()) for use in (int, round, math.floor, math.ceil, math.trunc)],
        [f"{use} of Tensor.item()" for use in ("ceil", "floor", "int", "round", "trunc")],
    ),
    "hash": (lambda: {unknown().item(): 1}, ["hash of Tensor.item()"]),
}


@pytest.mark.parametrize("name", DECIDING)
def test_a_decision_by_a_number_is_listed(name: str) -> None:
    program, expected = DECIDING[name]
    assert decisions(program) == expected


def compare_at_once() -> None:
    if float(unknown()) < 0.5:
        torch.ones(3)


def compare_a_variable() -> None:
    loss = float(unknown())
    improvement = 1 - loss
    while improvement > 0.99:
        torch.ones(3)


def compare_a_float_of_a_number() -> bool:
    return float(unknown().item()) > 0.5


@pytest.mark.parametrize("program", [compare_at_once, compare_a_variable, compare_a_float_of_a_number])
def test_float_of_a_tensor_that_the_function_compares_is_listed(program: Callable[[], object]) -> None:
    source = "Tensor.item()" if program is compare_a_float_of_a_number else "float(Tensor)"
    assert decisions(program) == [f"comparison of {source}"]


def print_all() -> None:
    loss = unknown().item()
    text = f"{loss} {loss:.3f} {loss!r} {loss!s} {round(loss, 4)} %f %g %s" % (loss, loss, loss)
    assert str(float.__pos__(loss)) in text
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger("steps").addHandler(handler)
    logging.getLogger("steps").warning("loss %.3f at %s", loss, loss)
    print(loss, [loss], {"loss": loss}, torch.tensor(loss), file=stream)
    print(unknown(), torch.rand(300, 300), torch.rand(300, 300).argmax(1), torch.rand(300, 300) > 0.5, file=stream)
    json.dumps({"loss": loss})
    json.dumps({"loss": [loss]}, indent=2)


def average() -> None:
    window: deque[float] = deque(maxlen=3)
    total, count = 0.0, 0
    for _ in range(4):
        value = unknown().item()
        window.append(value)
        total += value * 8
        count += 8
    print(f"{total / count:.4f} {max(window):.4f} {min(window)} {sorted(window)[1]} {sum(window) / len(window)}", file=io.StringIO())
    kept = float(unknown())
    print(f"{kept / 2:.4f}", file=io.StringIO())


def sort_what_is_logged() -> None:
    losses = [unknown().item() for _ in range(4)]
    least = min(losses, default=0.0)
    most = max((loss for loss in losses), default=None)
    worst = sorted(losses, reverse=True)[:2]
    losses.sort()
    losses.sort(reverse=True)
    greatest = max(*losses)
    assert all(type(loss) is type(losses[0]) for loss in (least, most, greatest, *worst))
    print(f"{least:.4f} {most:.4f} {worst} {losses[len(losses) // 2]} {statistics.median(losses)}", file=io.StringIO())


def check_that_it_is_a_number() -> None:
    loss = unknown().item()
    if math.isnan(loss) or not math.isfinite(loss) or loss != loss or loss == math.inf:
        raise ValueError(loss)
    tensor = unknown()
    gradients = torch.rand(300, 300)
    if torch.isnan(tensor) or torch.isinf(tensor) or torch.isnan(gradients).any() or torch.isinf(gradients).any().item():
        raise ValueError(tensor)
    best = None
    if best is None or loss == None:  # noqa: E711
        best = loss
    assert isinstance(loss, float) and loss != "none"


def adjust_the_rate() -> None:
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for _ in range(3):
        loss = model(torch.rand(30, 300)).square().mean()
        loss.backward()
        optimizer.step()
        plateau.step(loss.item())
        plateau.step(loss)


def scale_gradients() -> None:
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(2):
        scaler.scale(model(torch.rand(30, 300)).square().mean()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        torch.save({"scaler": scaler.state_dict(), "loss": unknown().item()}, io.BytesIO())


def use_adafactor() -> None:
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.Adafactor(model.parameters(), foreach=False)
    model(torch.rand(30, 300)).square().mean().backward()
    optimizer.step()


PRINTING = [print_all, average, sort_what_is_logged, check_that_it_is_a_number, adjust_the_rate, scale_gradients, use_adafactor]


@pytest.mark.parametrize("program", PRINTING)
def test_what_decides_nothing_leaves_the_profile_exact(program: Callable[[], object]) -> None:
    assert decisions(program) == []


def test_arithmetic_carries() -> None:
    with memprof.no_dispatch():
        x = unknown().item()
        kind = type(x)
        plain = float.__pos__(x)
        results = [x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x // 2, 2 // x, x % 2, 2 % x, x**2, 2**x, -x, +x, abs(x)]
        results += [sum([x, x]), sum([1.5, x]), *divmod(x, 2), *divmod(2, x), round(x, 2), x + True, copy.copy(x), copy.deepcopy([x])[0]]
        y = plain
        expected = [y + 1, 1 + y, y - 1, 1 - y, y * 2, 2 * y, y / 2, 2 / y, y // 2, 2 // y, y % 2, 2 % y, y**2, 2**y, -y, +y, abs(y)]
        expected += [sum([y, y]), sum([1.5, y]), *divmod(y, 2), *divmod(2, y), round(y, 2), y + True, y, y]
        assert [type(result) for result in results] == [kind] * len(results)
        assert [repr(result) for result in results] == [repr(number) for number in expected]
        assert isinstance(x, float) and type((-x) ** 0.5) is complex and type(plain) is type(float(x)) is float
        assert x < 10**400
        with pytest.raises(TypeError):
            x + "a"
        with pytest.raises(ZeroDivisionError):
            x / 0


def test_it_is_kept_as_a_plain_float() -> None:
    with memprof.no_dispatch() as capture:
        x = unknown().item()
        kept = pickle.loads(pickle.dumps([x]))
        file = io.BytesIO()
        torch.save({"loss": x, "weight": torch.ones(3)}, file)
        file.seek(0)
        loaded = torch.load(file)["loss"]
        assert torch.tensor(x).dtype == torch.float32 and torch.tensor([x, 1.0]).shape == (2,)
        assert (torch.ones(3) * x).shape == (x * torch.ones(3)).shape == torch.full((3,), x).shape
    assert type(kept[0]) is type(loaded) is float
    assert kept[0] == loaded
    assert capture.profile.exact


def test_numpy_takes_it_for_a_float() -> None:
    np = pytest.importorskip("numpy")
    with memprof.no_dispatch() as capture:
        x = unknown().item()
        y = float.__pos__(x)
        assert np.array([x]).dtype == np.float64 and np.mean([x, x]) == np.float64(y)
        for one in (np.float64(2), np.float32(2), np.arange(3, dtype=np.float32), np.float16(2)):
            for left, right in ((x * one, y * one), (one * x, one * y), (one - x, one - y), (np.add(one, x), np.add(one, y))):
                assert type(left) is type(right) and left.dtype == right.dtype and (left == right).all()
    assert capture.profile.exact
    assert decisions(lambda: np.greater(unknown().item(), 0.5)) == ["comparison of Tensor.item()"]
    assert decisions(lambda: unknown().item() < np.float32(0.5)) == ["comparison of Tensor.item()"]


def test_known_numbers_and_those_of_real_scopes_are_plain() -> None:
    with memprof.no_dispatch() as capture:
        assert type(torch.ones(3).sum().item()) is float
        assert type(torch.tensor(1.5).tolist()) is float
        with memprof.real_scope():
            assert type(torch.rand(300, 300).mean().item()) is float
        assert type(torch.rand(300, 300).argmax().item()) is int
    assert type(torch.rand(3).sum().item()) is float
    assert not capture.profile.exact  # the index


def test_a_number_of_an_ended_simulation_is_a_float() -> None:
    with memprof.no_dispatch() as capture:
        x = unknown().item()
    assert 0 < x < 2 and {x: 1}[x] == 1 and int(x) in (0, 1)
    assert capture.profile.exact
    with memprof.capture() as real:
        assert x > 0
    assert real.profile.exact


def test_draws_after_skipped_ones_decide() -> None:
    def draw(limit: float, seeds: bool = False) -> None:
        torch.rand(300, 300)
        if seeds:
            torch.manual_seed(3)
        if torch.rand(1).item() < limit:
            torch.ones(3)

    assert decisions(lambda: draw(0.5)) == ["comparison of Tensor.item()"]
    assert decisions(lambda: draw(0.0)) == decisions(lambda: draw(1.0)) == []
    assert decisions(lambda: draw(0.5, seeds=True)) == []


def test_lists_and_arrays_of_integers_drawn_after_skipped_ones_are_listed() -> None:
    np = pytest.importorskip("numpy")

    def read(use: Callable[[Any], object], seeds: bool = False, most: int = 10) -> list[str]:
        def program() -> None:
            torch.rand(300, 300)
            if seeds:
                torch.manual_seed(3)
            use(torch.randint(most - 10, most, (4,)))

        return decisions(program)

    assert read(lambda drawn: drawn[0].item()) == ["aten::item"]
    assert read(lambda drawn: drawn.tolist()) == read(lambda drawn: (drawn > 4).tolist()) == ["Tensor.tolist"]
    assert read(lambda drawn: drawn.numpy()) == read(np.asarray) == ["Tensor.numpy"]
    assert read(lambda drawn: drawn.tolist(), seeds=True) == []
    assert read(lambda drawn: drawn.tolist(), most=2**40) == []  # seeds
    assert read(lambda drawn: (drawn * 0.5).tolist()) == []


def test_a_loader_that_shuffles_leaves_the_profile_exact() -> None:
    def train() -> None:
        model = torch.nn.Linear(300, 300)
        data = torch.utils.data.TensorDataset(torch.ones(25, 300))
        training, _ = torch.utils.data.random_split(data, [20, 5])
        for _ in range(2):
            for (batch,) in torch.utils.data.DataLoader(training, batch_size=8, shuffle=True):
                model(batch).sum().backward()

    assert decisions(train) == []


def test_samplers_and_checks_of_arguments_decide_nothing() -> None:
    def train() -> None:
        torch.rand(300, 300)
        data = torch.utils.data.TensorDataset(torch.ones(25, 3))
        sampler = torch.utils.data.WeightedRandomSampler([1.0] * 25, 50)
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler):
            batch.sum()
        means = torch.rand(300, 300)
        torch.distributions.Normal(means, torch.ones(300, 300)).log_prob(means)
        torch.distributions.Categorical(logits=means).sample()
        torch.optim.SGD([torch.ones(3, requires_grad=True)], lr=unknown().item())
        torch.testing.assert_close(means, torch.rand(300, 300))
        torch.testing.assert_close([means, {"scale": means}], [torch.rand(300, 300), {"scale": means}], rtol=0, atol=0)

    assert decisions(train) == []
    with memprof.no_dispatch(), pytest.raises(AssertionError):
        torch.testing.assert_close(torch.ones(3), torch.zeros(3))
    with memprof.no_dispatch(), pytest.raises(AssertionError, match="shape"):
        torch.testing.assert_close(torch.rand(300, 300), torch.rand(300, 301))


def test_another_module_of_a_serializers_name_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from memprof.torch import _nominal_numbers

    monkeypatch.setitem(sys.modules, "yaml", types.ModuleType("yaml"))
    monkeypatch.setattr(_nominal_numbers, "_serializers_known", set())
    with memprof.no_dispatch():
        assert isinstance(unknown().item(), float)


def test_configurations_take_it_for_a_float() -> None:
    omegaconf: Any = pytest.importorskip("omegaconf")
    typed = omegaconf.OmegaConf.structured({"rate": omegaconf.FloatNode(1.0)})
    with memprof.no_dispatch() as capture:
        x = unknown().item()
        made = omegaconf.OmegaConf.create({"loss": x, "all": [x]})
        omegaconf.OmegaConf.update(made, "best.loss", x)
        made.later = typed.rate = x
        assert str(float.__pos__(x)) in omegaconf.OmegaConf.to_yaml(made)
        assert type(made.loss) is type(made.best.loss) is type(typed.rate) is type(x)
    assert capture.profile.exact
    assert decisions(lambda: omegaconf.OmegaConf.create({"loss": unknown().item()}).loss < 0.5) == ["comparison of Tensor.item()"]


@pytest.mark.parametrize("library", ["yaml", "orjson"])
def test_serializers_take_it_for_a_float(library: str) -> None:
    module: Any = pytest.importorskip(library)
    with memprof.no_dispatch():
        x = unknown().item()
        text = module.dumps({"loss": x}) if library == "orjson" else module.safe_dump({"loss": x})
        assert str(float(x)) in str(text)
