"""Operators with several tensors, on tensors of different layouts above the size at which kernels run: the simulation takes the bytes
that the kernels take, in every rule that images can reach."""

from __future__ import annotations

import itertools
import pathlib
import re
import typing

import pytest

import memprof

torch: typing.Any = pytest.importorskip("torch")
aten = torch.ops.aten
N, C, H, W = 4, 12, 20, 20  # 75 KiB of float32, above the 64 KiB below which kernels run
LAYOUTS = ["contiguous", "channels_last", "transposed", "sliced", "expanded"]
PAIRS = list(itertools.product(LAYOUTS, LAYOUTS))  # of the first tensor, and of the others


@pytest.fixture
def one_thread():
    """Of several, each takes scratch memory of its own, when it happens to."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def laid_out(values, layout):
    """The same values otherwise in memory; of an expanded tensor, those of the first image."""
    if values.dim() != 4:
        return values
    if layout == "channels_last":
        return values.contiguous(memory_format=torch.channels_last)
    if layout == "transposed":
        return values.transpose(2, 3).contiguous().transpose(2, 3)
    if layout == "sliced":
        wide = torch.zeros(*values.shape[:3], 2 * values.shape[3], dtype=values.dtype)
        wide[..., : values.shape[3]] = values
        return wide[..., : values.shape[3]]
    if layout == "expanded":
        return values[:1].clone().expand(values.shape)
    return values.contiguous()


def images(*sizes):
    return torch.rand(*(sizes or (N, C, H, W)))


def pooled():
    return images(N, C, H // 2, W // 2)


def mask():
    return images() > 0.5


def window_indices():
    return torch.nn.functional.max_pool2d(images(), 2, return_indices=True)[1]


def of_two(operator):
    return lambda: (operator, [images(), images()])


CASES = {
    "aten::add.Tensor": of_two(aten.add.Tensor),
    "aten::hardswish_backward": of_two(aten.hardswish_backward.default),
    "aten::mish_backward": of_two(aten.mish_backward.default),
    "aten::silu_backward": of_two(aten.silu_backward.default),
    "aten::gelu_backward": of_two(aten.gelu_backward.default),
    "aten::log_sigmoid_backward": lambda: (aten.log_sigmoid_backward.default, [images(), images(), images()]),
    "aten::_softmax_backward_data": lambda: (aten._softmax_backward_data.default, [images(), images(), 1, torch.float32]),
    "aten::_log_softmax_backward_data": lambda: (aten._log_softmax_backward_data.default, [images(), images(), 1, torch.float32]),
    "aten::native_dropout_backward": lambda: (aten.native_dropout_backward.default, [images(), mask(), 2.0]),
    "aten::_prelu_kernel": lambda: (aten._prelu_kernel.default, [images(), images(1, C, 1, 1)]),
    "aten::_prelu_kernel_backward": lambda: (aten._prelu_kernel_backward.default, [images(), images(), images(1, C, 1, 1)]),
    "aten::where.self": lambda: (aten.where.self, [mask(), images(), images()]),
    "aten::maximum": of_two(aten.maximum.default),
    "aten::minimum": of_two(aten.minimum.default),
    "aten::floor_divide": of_two(aten.floor_divide.default),
    "aten::logical_and": of_two(aten.logical_and.default),
    "aten::logical_or": of_two(aten.logical_or.default),
    "aten::bitwise_and.Tensor": lambda: (aten.bitwise_and.Tensor, [mask(), mask()]),
    "aten::bitwise_or.Tensor": lambda: (aten.bitwise_or.Tensor, [mask(), mask()]),
    "aten::pow.Tensor_Tensor": of_two(aten.pow.Tensor_Tensor),
    "aten::copy": of_two(aten.copy.default),
    "aten::copy_": of_two(aten.copy_.default),
    "aten::equal": of_two(aten.equal.default),
    "aten::mse_loss": lambda: (aten.mse_loss.default, [images(), images(), 0]),
    "aten::mse_loss_backward": lambda: (aten.mse_loss_backward.default, [images(), images(), images(), 0]),
    "aten::huber_loss": lambda: (aten.huber_loss.default, [images(), images(), 0, 1.0]),
    "aten::smooth_l1_loss": lambda: (aten.smooth_l1_loss.default, [images(), images(), 0, 1.0]),
    "aten::huber_loss_backward.out": lambda: (aten.huber_loss_backward.default, [images(), images(), images(), 0, 1.0]),
    "aten::smooth_l1_loss_backward.grad_input": lambda: (aten.smooth_l1_loss_backward.default, [images(), images(), images(), 0, 1.0]),
    "aten::nll_loss2d_forward": lambda: (aten.nll_loss2d_forward.default, [images(), torch.zeros(N, H, W, dtype=torch.long), None, 1, -100]),
    "aten::native_group_norm": lambda: (aten.native_group_norm.default, [images(), images(C), images(C), N, C, H * W, 4, 1e-5]),
    "aten::native_group_norm.large": lambda: (
        aten.native_group_norm.default,
        [images(2, 8, 40, 40), images(8), images(8), 2, 8, 1600, 4, 1e-5],
    ),
    "aten::native_group_norm_backward": lambda: (
        aten.native_group_norm_backward.default,
        [images(), images(), images(N, 4), images(N, 4), images(C), N, C, H * W, 4, [True, True, True]],
    ),
    "aten::native_group_norm_backward.large": lambda: (
        aten.native_group_norm_backward.default,
        [images(2, 8, 40, 40), images(2, 8, 40, 40), images(2, 4), images(2, 4), images(8), 2, 8, 1600, 4, [True, True, True]],
    ),
    "aten::native_batch_norm": lambda: (
        aten.native_batch_norm.default,
        [images(), images(C), images(C), images(C), images(C), True, 0.1, 1e-5],
    ),
    "aten::_native_batch_norm_legit": lambda: (
        aten._native_batch_norm_legit.default,
        [images(), images(C), images(C), images(C), images(C), True, 0.1, 1e-5],
    ),
    "aten::native_batch_norm_backward": lambda: (
        aten.native_batch_norm_backward.default,
        [images(), images(), images(C), images(C), images(C), images(C), images(C), True, 1e-5, [True, True, True]],
    ),
    "aten::native_layer_norm": lambda: (aten.native_layer_norm.default, [images(), [W], images(W), images(W), 1e-5]),
    "aten::native_layer_norm_backward": lambda: (
        aten.native_layer_norm_backward.default,
        [images(), images(), [W], images(N, C, H, 1), images(N, C, H, 1), images(W), images(W), [True, True, True]],
    ),
    "aten::_adaptive_avg_pool2d_backward": lambda: (aten._adaptive_avg_pool2d_backward.default, [pooled(), images()]),
    "aten::avg_pool2d_backward": lambda: (
        aten.avg_pool2d_backward.default,
        [pooled(), images(), [2, 2], [2, 2], [0, 0], False, True, None],
    ),
    "aten::max_pool2d_with_indices_backward": lambda: (
        aten.max_pool2d_with_indices_backward.default,
        [pooled(), images(), [2, 2], [2, 2], [0, 0], [1, 1], False, window_indices()],
    ),
    "aten::adaptive_max_pool2d_backward": lambda: (aten.adaptive_max_pool2d_backward.default, [pooled(), images(), window_indices()]),
    "aten::fractional_max_pool2d": lambda: (aten.fractional_max_pool2d.default, [images(), [2, 2], [H // 2, W // 2], images(N, C, 2)]),
    "aten::grid_sampler_2d": lambda: (aten.grid_sampler_2d.default, [images(), images(N, H, W, 2), 0, 0, False]),
    "aten::grid_sampler_2d_backward": lambda: (
        aten.grid_sampler_2d_backward.default,
        [images(), images(), images(N, H, W, 2), 0, 0, False, [True, True]],
    ),
    "aten::convolution": lambda: (
        aten.convolution.default,
        [images(), images(16, C, 3, 3), images(16), [1, 1], [1, 1], [1, 1], False, [0, 0], 1],
    ),
    "aten::_convolution": lambda: (
        aten._convolution.default,
        [images(), images(16, C, 3, 3), images(16), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True],
    ),
    "aten::_convolution.deprecated": lambda: (
        aten._convolution.deprecated,
        [images(), images(16, C, 3, 3), images(16), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True],
    ),
    "aten::convolution_backward": lambda: (
        aten.convolution_backward.default,
        [images(N, 16, H, W), images(), images(16, C, 3, 3), [16], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]],
    ),
    "aten::gather": lambda: (aten.gather.default, [images(), 1, torch.zeros(N, C, H, W, dtype=torch.long)]),
    "aten::scatter.src": lambda: (aten.scatter.src, [images(), 1, torch.zeros(N, C, H, W, dtype=torch.long), images()]),
    "aten::index_select": lambda: (aten.index_select.default, [images(), 1, torch.zeros(8, dtype=torch.long)]),
    "aten::index.Tensor": lambda: (aten.index.Tensor, [images(), [None, torch.zeros(8, dtype=torch.long)]]),
    "aten::_index_put_impl_": lambda: (
        aten._index_put_impl_.default,
        [images(), [torch.arange(2)], images(2, C, H, W), False],
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu": lambda: (
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        [images(), images(), images()],
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": lambda: (
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        [images(), images(), images(), images(), images(), images(N, C, H), 0.0, False],
    ),
    "aten::lerp.Tensor": lambda: (aten.lerp.Tensor, [images(), images(), images()]),
    "aten::addcmul": lambda: (aten.addcmul.default, [images(), images(), images()]),
    "aten::masked_fill.Scalar": lambda: (aten.masked_fill.Scalar, [images(), mask(), 0.0]),
}


# Rules for several tensors that images do not reach, and the tests that judge them with what they take.
OTHERS = {
    "aten::" + name: judge
    for judge, names in {
        "matrices (operator_calls.cpp)": "addmm baddbmm bmm mm dot vdot embedding_dense_backward _embedding_bag_backward",
        "sequences (operator_calls.cpp)": "_ctc_loss.Tensor _use_cudnn_ctc_loss _use_cudnn_ctc_loss.Tensor _use_miopen_ctc_loss "
        "_use_miopen_ctc_loss.Tensor nll_loss_forward nll_loss_forward.output nll_loss_backward segment_reduce reflection_pad1d_backward "
        "replication_pad1d_backward",
        "volumes (operator_calls.cpp)": "_adaptive_avg_pool3d_backward adaptive_max_pool3d_backward avg_pool3d_backward "
        "fractional_max_pool3d grid_sampler_3d grid_sampler_3d_backward reflection_pad3d_backward",
        "cells of recurrent networks (no_dispatch_lstm.cpp, operator_calls.cpp)": "_thnn_fused_gru_cell _thnn_fused_gru_cell_backward "
        "_thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl mkldnn_rnn_layer mkldnn_rnn_layer_backward",
        "CUDA alone (no_dispatch_cuda.cpp, test_claimed_cuda.py)": "_scaled_dot_product_cudnn_attention "
        "_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention "
        "_scaled_dot_product_flash_attention_backward _fused_rms_norm_backward convolution_overrideable _embedding_bag _nested_tensor_from_mask "
        "_embedding_bag_forward_only",
        "the output is an argument (operator_calls.cpp)": "abs.out angle.out gelu_backward.grad_input kthvalue.values logical_and.out "
        "logical_not.out logical_or.out logical_xor.out logsumexp.out nan_to_num.out sign.out sum.IntList_out where.self_out",
        "nothing is allocated, or by lists (operator_calls.cpp, test_no_dispatch.py)": "_amp_foreach_non_finite_check_and_unscale_ "
        "_amp_update_scale_ _functional_assert_async.msg masked_scatter_backward",
        "a composite on the CPU, with scalars (operator_calls.cpp)": "_fused_rms_norm allclose",
        "as many as the data says (no_dispatch_shares.cpp)": "masked_select",
        "the real one takes contiguous gradients only": "nll_loss2d_backward",
    }.items()
    for name in names.split()
}


def bytes_by_pair(session, make):
    """The peak above what was live before, and all that was allocated, for each pair of layouts; none where the call is refused, as one
    that writes to an expanded tensor."""
    found = {}
    with session as capture:
        for first, others in PAIRS:
            torch.manual_seed(1)
            operator, arguments = make()
            order = itertools.chain([first], itertools.repeat(others))
            arguments = [laid_out(each, next(order)) if isinstance(each, torch.Tensor) else each for each in arguments]
            memprof.snapshot("MADE")
            try:
                kept = operator(*arguments)
                found[first, others] = (0, 0)
            except RuntimeError:
                kept = None
            memprof.snapshot("CALLED")
            del kept, arguments
    space = capture.profile.space("cpu")
    made = [index for index, segment in enumerate(capture.profile.segments) if segment.name == "CALLED"]
    assert len(made) == len(PAIRS)
    for pair, index in zip(PAIRS, made):
        usage = space.segments[index]
        if pair in found:
            found[pair] = (usage.segment_peak, usage.allocations)
    return found


@pytest.mark.parametrize("name", CASES)
def test_kernels_and_rules_take_the_same_bytes(name, one_thread):
    make = CASES[name]
    real = bytes_by_pair(memprof.capture(), make)
    simulated = bytes_by_pair(memprof.no_dispatch(), make)
    assert real
    assert {pair: simulated.get(pair) for pair in real} == real


def test_every_rule_for_several_tensors_is_judged():
    folder = pathlib.Path(__file__).parents[2] / "include/memprof/backend/torch/rules"
    schemas = {
        schema.name + ("." + schema.overload_name if schema.overload_name else ""): schema
        for schema in torch._C._jit_get_all_schemas()
    }
    rules = {name for file in folder.glob("*.hpp") for name in re.findall(r'"(aten::[\w.]+)"', file.read_text())}
    several = {
        name
        for name in rules
        if name in schemas and sum(str(argument.type) == "Tensor" for argument in schemas[name].arguments) >= 2
    }
    assert several - set(CASES) - set(OTHERS) == set()
    assert set(OTHERS) <= rules
