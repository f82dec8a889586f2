from __future__ import annotations

import copy
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
        self.register_buffer("scale", torch.full((width,), 0.5))

    def forward(self, x: Any) -> Any:
        return x + self.scale * self.mlp(x)


class Net(torch.nn.Module):
    def __init__(self, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.h = torch.nn.ModuleList(Block(width) for _ in range(depth))
        self.head = torch.nn.Linear(width, 8)

    def forward(self, x: Any) -> Any:
        for block in self.h:
            x = block(x)
        return self.head(x)


def train(snapshot: Callable[[str], object] = lambda name: None) -> list[float]:
    """Two steps; everything it makes is gone when it returns."""
    torch.manual_seed(0)
    model = Net()
    snapshot("MODEL_CREATION")
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(2):
        loss = model(torch.randn(32, 64)).square().mean()
        snapshot("FORWARD_PASS")
        optimizer.zero_grad()
        loss.backward()
        snapshot("BACKWARD_PASS")
        optimizer.step()
        snapshot("OPTIMIZER_STEP")
        losses.append(loss.item())
    return losses


def counted_by_pytorch(program: Callable[[], object]) -> tuple[int, int]:
    """Peak and sum of what a program allocates, from the memory events of PyTorch's own profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        program()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = peak = total = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
        total += max(event.nbytes(), 0)
    return peak, total


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_the_peak_is_that_of_pytorchs_own_profiler() -> None:
    train()  # what is allocated once and kept
    expected = counted_by_pytorch(train)
    with memprof.capture() as capture:
        train()
    space = capture.profile.space("cpu")
    assert expected == (space.cumulative_peak, space.allocations)
    assert space.cumulative_current == 0 and space.anomalies.unmatched_frees.count == 0


@pytest.mark.parametrize("begin", [memprof.capture, memprof.no_dispatch])
def test_a_deep_copy_is_counted(begin: Callable[..., memprof.Capture]) -> None:
    def current() -> int:
        return capture.profile.space("cpu").cumulative_current

    with begin() as capture:
        tensor = torch.arange(250_000)
        twin = copy.deepcopy(tensor)
        assert current() == 2 * 8 * 250_000
        assert bool((twin == tensor).all())
        model = torch.nn.BatchNorm1d(10_000)
        before = current()
        kept = copy.deepcopy(model.state_dict())
        assert current() - before == 4 * 4 * 10_000 + 8  # weight, bias, mean and variance, and the number of batches
        assert kept["running_var"].data_ptr() != model.running_var.data_ptr()
    assert "clone" not in vars(torch.UntypedStorage)


def test_a_compiled_model_is_counted_exactly() -> None:
    model, x = Net(), torch.randn(32, 64)
    compiled = torch.compile(model)

    def step() -> None:
        compiled(x).square().mean().backward()
        model.zero_grad()

    with memprof.capture():
        step()  # compiles
    step()  # what its second run allocates once and keeps
    expected = counted_by_pytorch(step)
    with memprof.capture() as capture:
        step()
    space = capture.profile.space("cpu")
    assert expected == (space.cumulative_peak, space.allocations)


def test_results_are_bit_identical() -> None:
    bare = train()
    with memprof.capture(trace=True):
        assert train(memprof.snapshot) == bare
    assert train() == bare


def test_operations_are_the_module_tree() -> None:
    with memprof.capture() as capture:
        train()
    paths = {operation.path for operation in capture.profile.operations}
    assert {"Net/h.0/mlp/0/aten::linear/aten::addmm", "Net/h.1/mlp/1/aten::gelu", "Net/head/aten::linear"} <= paths
    assert "gradients of head/AddmmBackward0/aten::mm" in paths
    net = capture.profile.find_operation("Net")
    assert net is not None and net.invocations == 2


def test_tensors_have_the_names_and_categories_of_the_model() -> None:
    with memprof.capture(largest_blocks=100) as capture:
        train(memprof.snapshot)
    by_category = {owned.owner: owned.bytes for owned in capture.profile.space("cpu").live_at_peak.by_category}
    # 64 x 256 and 256 x 64 with biases in each of two blocks, 64 x 8 with a bias; AdamW: two moments, and a step of 4 bytes each.
    parameters = 2 * (64 * 256 + 256 + 256 * 64 + 64) + 64 * 8 + 8
    assert by_category["parameter"] == 4 * parameters
    assert by_category["optimizer_state"] == 2 * 4 * parameters + 10 * 4
    blocks = {block.name: block for block in capture.profile.space("cpu").live_at_peak.largest_blocks}
    weight = blocks["h.1.mlp.0.weight"]
    assert (weight.bytes, weight.shape, weight.dtype, weight.category) == (256 * 64 * 4, "[256, 64]", "float32", "parameter")
    assert blocks["h.1.mlp.0.weight.exp_avg"].category == "optimizer_state"
    assert blocks["h.0.mlp.2.weight.grad"].category == "gradient"
    assert blocks["h.0.scale"].bytes == 64 * 4


def test_parameters_have_their_category_before_the_first_call() -> None:
    with memprof.capture() as capture:
        model = torch.nn.Linear(10, 10, bias=False)
        memprof.snapshot("MODEL_CREATION")
        del model
    first = capture.profile.space("cpu").segments[0].live_at_peak.by_category
    assert [(owned.owner, owned.bytes) for owned in first] == [("parameter", 400)]


@pytest.mark.parametrize("begin", [memprof.capture, memprof.no_dispatch])
def test_a_copy_of_a_model_has_the_names_and_categories_of_its_tensors(begin: Callable[..., memprof.Capture]) -> None:
    original = torch.nn.Module.__setstate__
    with begin(largest_blocks=100) as capture:
        model = Net()
        average = copy.deepcopy(model).requires_grad_(False)  # an EMA, which is never called
        other = torch.optim.swa_utils.AveragedModel(model)
        assert not any(parameter.requires_grad for parameter in average.parameters())
    blocks = capture.profile.space("cpu").live_at_peak.largest_blocks
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    categories = {row.owner: row.bytes for row in capture.profile.space("cpu").live_at_peak.by_category}
    assert categories["parameter"] == 3 * parameters
    # The model itself has not been called yet.
    assert sum(block.name == "h.0.mlp.0.weight" for block in blocks) == 2
    assert {block.category for block in blocks if block.name.endswith("scale")} == {"other"}
    assert torch.nn.Module.__setstate__ is original
    del other


def test_gradients_that_are_freed_after_the_peak_have_their_category() -> None:
    with memprof.capture() as capture:
        model = torch.nn.Linear(512, 512, bias=False)
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(2):
            model(torch.randn(4, 512)).sum().backward()
            scratch = torch.empty(1 << 20)  # the peak
            del scratch
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    live = capture.profile.space("cpu").live_at_peak
    gradients = [row for row in live.by_operation if row.bytes == 512 * 512 * 4 and "gradients of" in row.owner]
    assert [row.category for row in gradients] == ["gradient"]


def test_record_function_is_an_operation() -> None:
    with memprof.capture() as capture, torch.profiler.record_function("my phase"):
        torch.ones(10)
    assert capture.profile.find_operation("my phase/aten::ones") is not None


def test_modules_are_restored_when_the_capture_ends_or_goes() -> None:
    original = torch.nn.Module._call_impl
    capture = memprof.capture()
    assert torch.nn.Module._call_impl is not original
    capture.end()
    assert torch.nn.Module._call_impl is original
    capture = memprof.capture()
    del capture
    assert torch.nn.Module._call_impl is original and not memprof.is_capturing()
    with memprof.capture(modules=False):
        assert torch.nn.Module._call_impl is original


def test_a_module_that_raises_closes_its_operation() -> None:
    class Faulty(torch.nn.Module):
        def forward(self) -> None:
            raise ValueError("its own")

    with memprof.capture() as capture:
        for _ in range(2):
            with pytest.raises(ValueError, match="its own"):
                Faulty()()
        torch.ones(10)
    assert capture.profile.anomalies.unbalanced_scopes == 0
    assert "aten::ones" in {operation.path for operation in capture.profile.operations}


def test_modules_are_not_kept_alive() -> None:
    with memprof.capture() as capture:
        model = Net()
        model(torch.ones(1, 64))
        held = capture.profile.space("cpu").cumulative_current
        del model
        assert held > 0 and capture.profile.space("cpu").cumulative_current == 0


def test_torch_can_be_left_out() -> None:
    with memprof.capture(torch=False) as capture:
        torch.ones(10)
    assert capture.profile.spaces == []


def test_a_tensor_can_be_annotated() -> None:
    import memprof.torch

    with memprof.capture() as capture:
        cache = torch.zeros(100)
        memprof.torch.annotate(cache, "cache", "kv_cache")
        (block,) = capture.profile.space("cpu").live_at_peak.largest_blocks
    assert (block.name, block.category, block.bytes) == ("cache", "kv_cache", 400)


def test_forked_loader_workers_leave_the_capture_alone() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(8, 4))
    with memprof.capture() as capture:
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
        assert sum(batch.sum().item() for (batch,) in loader) == 31 * 16
        del loader
    assert capture.profile.exact


def compiled_elsewhere(folder: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "import torch, memprof\ntry:\n  memprof.capture()\nexcept memprof.Error as fault: print(fault)"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder), **environment})


def test_without_a_compiler_one_line_says_what_to_do(tmp_path: pathlib.Path) -> None:
    said = compiled_elsewhere(tmp_path, CXX="no-such-compiler").stdout
    assert said.count("\n") == 1 and "no-such-compiler" in said and "torch=False" in said


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    said = compiled_elsewhere(tmp_path, CXX="false").stdout
    assert said.count("\n") == 1 and "'false' cannot compile" in said
    assert list((tmp_path / "memprof").iterdir()) == []


# --- CUDA, of which these machines have none: what decides whether it is recorded


def test_headers_of_cuda_are_taken_from_the_wheels_and_completed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memprof.torch import _library

    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libc10_cuda.so").touch()
    headers = tmp_path / "nvidia" / "cu13" / "include"
    headers.mkdir(parents=True)
    (headers / "cuda_runtime_api.h").touch()
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "torch" / "__init__.py"))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    own = os.path.join(os.path.dirname(_library.__file__), "cuda_headers")
    assert os.path.exists(os.path.join(own, "crt", "host_defines.h"))
    assert _library.cuda_headers() == [str(headers), own]
    (headers / "crt").mkdir()
    (headers / "crt" / "host_defines.h").touch()
    assert _library.cuda_headers() == [str(headers)]
    assert "-lc10_cuda" in _library.command("out.so") and "-DMEMPROF_TORCH_CUDA" in _library.command("out.so")
    assert "-lc10_cuda" not in _library.command("out.so", no_dispatch=True)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert _library.cuda_headers() == [] and "-lc10_cuda" not in _library.command("out.so")


def test_cuda_is_recorded_once_the_program_has_initialised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import memprof.torch as recorder

    recorded: list[str] = []
    waiting: list[Any] = []
    monkeypatch.setattr(recorder, "_waits_for_cuda", False)
    monkeypatch.setattr(recorder._core, "_record_cuda", lambda: recorded.append("now"))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "_lazy_call", waiting.append)
    recorder.record_cuda()
    recorder.record_cuda()  # of a second capture, before CUDA is there
    assert recorded == [] and len(waiting) == 1
    waiting[0]()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    recorder.record_cuda()
    assert recorded == ["now", "now"]


@pytest.mark.parametrize("kind", [{"foreach": True}, {"foreach": False}, {"fused": True}, {"amsgrad": True}])
@pytest.mark.parametrize("rows", [1, 4096])
def test_the_state_of_many_small_parameters_has_its_category(kind: dict[str, bool], rows: int) -> None:
    with memprof.capture() as capture:
        model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(20)))
        optimizer = torch.optim.AdamW(model.parameters(), **kind)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(rows, 64)).square().mean().backward()
            optimizer.step()
    live = capture.profile.space("cpu").live_at_peak
    state = 2 + ("amsgrad" in kind)
    assert next(row.bytes for row in live.by_category if row.owner == "optimizer_state") >= state * 20 * (64 * 64 + 64) * 4
    largest = [row for row in live.by_operation if row.blocks >= 40]  # of 40 parameters
    assert {row.category for row in largest if "zeros_like" in row.owner} == {"optimizer_state"}
    assert {row.category for row in largest if row.owner == "aten::empty"} == {"parameter"}
