"""Steps of optimizers as segments, in programs that make no snapshots."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

STEP = "OPTIMIZER_STEP"


def names_of(program: Callable[[], object], **options: Any) -> list[str]:
    with memprof.capture(**options) as capture:
        program()
    names = [segment.name for segment in capture.profile.segments]
    assert names.pop() == "END_TRACE"
    return names


def train(steps: int = 3, after: Callable[[], object] = lambda: None, before: Callable[[], object] = lambda: None, batches: int = 1) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    optimizer = torch.optim.AdamW(model.parameters())
    before()
    for _ in range(steps):
        for _ in range(batches):
            model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        after()
        optimizer.zero_grad()


def test_each_step_of_an_optimizer_ends_a_segment() -> None:
    with memprof.capture() as capture:
        train()
    assert [segment.name for segment in capture.profile.segments] == [STEP] * 3 + ["END_TRACE"]
    assert capture.profile.step_count == 3


def test_the_last_step_ends_before_the_loops_variables_do() -> None:
    """Each step keeps 4,000 B, which are freed where the function returns."""

    def program(kept: int) -> None:
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.AdamW(model.parameters())
        history = []
        for _ in range(40):
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(torch.zeros(kept))

    with memprof.capture(trace=True) as capture:
        program(1000)
    changes = [usage.segment_change for usage in capture.profile.space("cpu").segments]
    assert changes[2:40] == [4000] * 38
    assert capture.trace is not None and capture.trace.leaks().verdict().startswith("cpu grows by 3.91 KiB per step")
    with memprof.capture(trace=True) as capture:
        program(0)
    assert capture.trace is not None and capture.trace.leaks().verdict().startswith("none")


def test_batches_whose_gradients_accumulate_are_one_step() -> None:
    assert names_of(lambda: train(batches=4)) == [STEP] * 3


@pytest.mark.parametrize("where", ["after", "before"])
def test_a_program_with_a_snapshot_of_its_own_ends_its_segments_itself(where: str) -> None:
    calls = {where: lambda: memprof.snapshot("MINE")}
    assert names_of(lambda: train(**calls)) == ["MINE"] * (3 if where == "after" else 1)
    with memprof.capture() as capture:
        train(**{where: lambda: capture.snapshot("MINE")})  # type: ignore[arg-type]
    assert {segment.name for segment in capture.profile.segments} == {"MINE", "END_TRACE"}
    assert names_of(train) == [STEP] * 3  # in a capture after it


def test_snapshots_may_begin_late() -> None:
    def program() -> None:
        train(2)
        memprof.snapshot("PRETRAINED")
        train(2)

    assert names_of(program) == [STEP, STEP, "PRETRAINED"]


def test_steps_can_be_left_out() -> None:
    assert names_of(train, steps=False) == []


def test_a_step_ends_before_what_is_called_next() -> None:
    """A model that is evaluated makes 4 MB more than a step does."""
    with memprof.capture() as capture:
        model = torch.nn.Linear(10, 1000)
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(2):
            model(torch.ones(1, 10)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                model(torch.ones(1000, 10))
    segments = capture.profile.space("cpu").segments
    assert [usage.segment_peak >= 4_000_000 for usage in segments] == [False, True, True]


def test_optimizers_that_take_turns_make_a_step_in_a_round() -> None:
    def gan() -> None:
        generator, critic = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
        optimizers = [torch.optim.Adam(model.parameters()) for model in (critic, generator)]
        for _ in range(3):
            critic(generator(torch.randn(2, 4)).detach()).sum().backward()
            optimizers[0].step()
            critic(generator(torch.randn(2, 4))).sum().backward()
            optimizers[1].step()

    with memprof.capture() as capture:
        gan()
    assert [segment.name for segment in capture.profile.segments][:-1] == [STEP, f"{STEP}_2"] * 3
    assert capture.profile.step_count == 3


def test_optimizers_whose_steps_follow_each_other_make_one() -> None:
    def program() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        optimizers = [torch.optim.SGD(part.parameters()) for part in model]
        for _ in range(3):
            model(torch.randn(4, 8)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()

    assert names_of(program) == [STEP] * 3


def test_optimizers_change_which_is_last() -> None:
    def program() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        first, second = [torch.optim.SGD(part.parameters()) for part in model]
        for optimizers in ([first], [first], [first, second], [first, second], [second, first], [first]):
            model(torch.randn(4, 8)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()

    assert names_of(program) == [STEP] * 4 + [f"{STEP}_2", STEP]


def test_an_optimizer_in_place_of_one_that_is_gone_has_its_name() -> None:
    def folds() -> None:
        for _ in range(2):
            train(2)

    assert names_of(folds) == [STEP] * 4


def test_optimizers_in_the_backward_pass_make_one_step() -> None:
    """Where a checkpoint calls modules once more."""
    from torch.utils.checkpoint import checkpoint

    def program() -> None:
        layers = [torch.nn.Linear(8, 8) for _ in range(3)]
        for layer in layers:
            for parameter in layer.parameters():
                optimizer = torch.optim.SGD([parameter])
                parameter.register_post_accumulate_grad_hook(lambda _, optimizer=optimizer: optimizer.step())
        for _ in range(3):
            y = torch.randn(4, 8, requires_grad=True)
            for layer in layers:
                y = checkpoint(layer, y, use_reentrant=False)
            y.sum().backward()

    assert names_of(program) == [STEP] * 3


def test_without_modules_the_first_two_steps_are_in_one_segment() -> None:
    def program() -> None:
        x = torch.ones(8, requires_grad=True)
        optimizer = torch.optim.SGD([x])
        for _ in range(4):
            x.square().sum().backward()
            optimizer.step()

    assert names_of(program) == names_of(lambda: train(4), modules=False) == [STEP] * 3


def test_a_scaler_that_skips_a_step_ends_no_segment() -> None:
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this torch scales no gradients on the CPU")

    def program() -> None:
        model = torch.nn.Linear(8, 8)
        optimizer, scaler = torch.optim.SGD(model.parameters()), torch.amp.GradScaler("cpu")
        for factor in (1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(4, 8)).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()

    assert names_of(program) == [STEP] * 2


def test_a_simulation_has_steps_too() -> None:
    with memprof.no_dispatch(device="gpu-24gb") as capture:
        train()
    assert [segment.name for segment in capture.profile.segments] == [STEP] * 3 + ["END_TRACE"]


def test_a_script_has_steps(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(8, 8)\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "for _ in range(3):\n"
        "    model(torch.randn(4, 8)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    command = [sys.executable, "-m", "memprof", "run", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "train.py: 3 steps in 4 segments" in done.stderr, done.stderr


def test_an_optimizer_that_the_program_drops_is_released_at_once() -> None:
    weight = torch.nn.Parameter(torch.ones(1000))
    with memprof.capture() as capture:
        optimizer = torch.optim.AdamW([weight], foreach=False)
        weight.grad = torch.ones(1000)
        optimizer.step()
        weight.grad = None
        del optimizer
        memprof.memory_checkpoint("dropped")
    [checkpoint] = capture.profile.checkpoints
    assert checkpoint.live_bytes == 0


def test_two_threads_that_call_modules_after_a_step_end_one_segment() -> None:
    """Both have found that a step waits, as the replicas of a DataParallel may."""
    from memprof.torch._steps import OptimizerSteps

    class Seen(list):  # type: ignore[type-arg]
        def __bool__(self) -> bool:
            return True

    with memprof.capture(steps=False) as capture:
        steps = OptimizerSteps()
        steps.waiting = Seen()
        steps.waiting.append((weakref.ref(torch.optim.SGD([torch.ones(4)])), STEP))
        steps.module_is_called()
        steps.module_is_called()
        steps.remove()
    assert [segment.name for segment in capture.profile.segments] == [STEP, "END_TRACE"]


def test_a_capture_in_a_forked_child_does_not_see_with_its_parents_hooks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import memprof, os, torch\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "def step():\n"
        "    model(torch.ones(2)).sum().backward()\n"
        "    optimizer.step()\n"
        "outer = memprof.capture()\n"
        "step()\n"
        "if os.fork() == 0:\n"
        "    with memprof.capture() as inner:\n"
        "        step()\n"
        "        step()\n"
        "    print([each.name for each in inner.profile.segments], inner.profile.find_operation('Linear/Linear'), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "outer.end()\n"
        "print([each.name for each in outer.profile.segments])\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "['OPTIMIZER_STEP', 'OPTIMIZER_STEP', 'END_TRACE'] None",
        "['OPTIMIZER_STEP', 'END_TRACE']",
    ], done.stderr
