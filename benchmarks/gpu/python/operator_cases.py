"""Single operators, most of them forward and backward, whose allocations on a GPU are recorded and compared with the simulation's.

A case is a function without arguments. Recordings know it by its name. The order of a case's statements is part of it: it says which
blocks live at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

Case = Callable[[], object]
Cases = Iterator[tuple[str, Case]]
Operator = Callable[[torch.Tensor], Any]
Shape = tuple[int, ...]

#: The families, and the cases of each, in the order in which they run.
FAMILIES: dict[str, dict[str, Case]] = {}

DTYPES = {
    "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64,
    "i64": torch.int64, "bool": torch.bool,
}
BOTH = ("f32", "bf16")


def family(title: str) -> Callable[[Callable[[], Cases]], Callable[[], Cases]]:
    def register(make: Callable[[], Cases]) -> Callable[[], Cases]:
        FAMILIES[title] = dict(make())
        return make

    return register


def new(*shape: int, dtype: str = "f32") -> torch.Tensor:
    """A tensor on the GPU. Only integers and truth values are initialised, as they may be indices."""
    make = torch.zeros if dtype in ("i64", "bool") else torch.empty
    return make(shape, device="cuda", dtype=DTYPES[dtype])


def weight(*shape: int, dtype: str = "f32") -> torch.Tensor:
    return new(*shape, dtype=dtype).requires_grad_()


def ones(*shape: int, dtype: str = "f32") -> torch.Tensor:
    return torch.ones(shape, device="cuda", dtype=DTYPES[dtype])


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(shape, device="cuda")


def integers(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(below, shape, device="cuda")


def backward(made: Any) -> None:
    """From the tensor, or the first of several that has a gradient."""
    if isinstance(made, (tuple, list)):
        made = [each for each in made if torch.is_tensor(each) and each.requires_grad][0]
    made.backward(torch.empty_like(made))


# --- reductions


def _reduce(operator: str, dtype: str, shape: Shape, dims: Any) -> object:
    x = new(*shape, dtype=dtype)
    if operator == "norm":
        return torch.linalg.vector_norm(x, dim=dims)
    if operator == "aminmax":
        return torch.aminmax(x) if dims is None else torch.aminmax(x, dim=dims)
    if operator == "logsumexp":
        return torch.logsumexp(x, 0 if dims is None else dims)
    function = getattr(torch, operator)
    return function(x) if dims is None else function(x, dims)


REDUCED: list[tuple[Shape, Any]] = [
    ((2048, 768), 0), ((2048, 768), 1), ((2048, 768), None), ((64, 1024, 1024), (0, 2)), ((64, 1024, 1024), (0, 1)),
    ((64, 1024, 1024), (1,)), ((16, 3, 224, 224), (0, 2, 3)), ((1 << 24,), None), ((32, 100000), 1), ((100000, 32), 0),
    ((1000, 1000, 10), 1), ((8, 50257), -1), ((4096, 3), 0), ((300, 300, 7), 0), ((513, 257), 0), ((70000,), None), ((5000, 1000), 0),
    ((9, 200000), 1), ((200000, 9), 0), ((1, 4096, 768), (0, 1)), ((4096, 1), 0),
]
OTHER_REDUCTIONS = {
    "prod": ("f32",), "all": ("bool", "f32"), "any": ("bool",), "argmax": BOTH, "max": ("f32", "bf16", "i64"), "min": ("f32",),
    "var": BOTH, "std": ("f32",), "var_mean": ("f32",), "logsumexp": BOTH, "norm": BOTH, "sum": ("f64", "i64", "bool", "f16"),
    "nansum": ("f32",), "count_nonzero": ("f32",), "argmin": ("i64",), "amin": ("f32",), "aminmax": ("f32",),
}


@family("reductions")
def reductions() -> Cases:
    for shape, dims in REDUCED:
        for operator in ("sum", "mean", "amax"):
            for dtype in BOTH:
                yield f"red {operator} {dtype} {shape} {dims}", partial(_reduce, operator, dtype, shape, dims)
    fewer: list[tuple[Shape, int | None]] = [((2048, 768), 0), ((2048, 768), 1), ((1 << 22,), None), ((100000, 32), 0), ((32, 100000), 1)]
    for shape, dims in fewer:
        for operator, dtypes in OTHER_REDUCTIONS.items():
            for dtype in dtypes:
                yield f"red {operator} {dtype} {shape} {dims}", partial(_reduce, operator, dtype, shape, dims)
    yield "red sum transposed", lambda: new(768, 2048).t().sum(0)
    yield "red sum transposed1", lambda: new(768, 2048).t().sum(1)
    yield "red sum permuted", lambda: new(32, 12, 128, 64).permute(0, 2, 1, 3).sum((0, 1))
    yield "red sum expand", lambda: new(1, 768).expand(4096, 768).sum(0)
    yield "red sum slice", lambda: new(4096, 769)[:, 1:].sum(0)
    yield "red sum out f32 of bf16", lambda: new(4096, 768, dtype="bf16").sum(0, dtype=torch.float32)
    yield "red mean nchw cl", lambda: new(16, 64, 56, 56).to(memory_format=torch.channels_last).mean((2, 3))


# --- attention


def _attend(
    shape: Shape, dtype: str, backend: SDPBackend | None = None, *, causal: bool = False, mask: bool = False, key_heads: int = 0,
    dropout: float = 0.0, keys: int = 0,
) -> None:
    """`shape` is batch, heads, length and width. Without a backend, torch chooses."""
    batch, heads, length, width = shape
    key_heads, keys, options = key_heads or heads, keys or length, {"enable_gqa": True} if key_heads else {}
    q, k, v = (weight(batch, h, n, width, dtype=dtype) for h, n in ((heads, length), (key_heads, keys), (key_heads, keys)))
    m = new(batch, 1, length, keys, dtype=dtype) if mask else None
    if backend is None:
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=m, is_causal=causal, dropout_p=dropout, **options)
        backward(y)
    else:
        with sdpa_kernel(backend):
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=m, is_causal=causal, dropout_p=dropout, **options)
            backward(y)


def _attend_without_gradients(dtype: str) -> None:
    q = new(2, 8, 256, 64, dtype=dtype)
    with torch.no_grad():
        F.scaled_dot_product_attention(q, q, q, is_causal=True)


ATTENDED = [
    (2, 8, 256, 64), (4, 12, 512, 64), (1, 4, 1000, 128), (2, 8, 200, 32), (2, 8, 128, 16), (1, 16, 384, 80), (1, 8, 256, 96),
    (1, 4, 256, 256), (2, 4, 77, 40), (1, 2, 1024, 192), (8, 16, 2048, 128),
]


@family("attention")
def attention() -> Cases:
    efficient, flash, cudnn = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION
    for shape in ATTENDED:
        batch, heads, length, width = shape
        for dtype in BOTH:
            if dtype == "f32" and length == 2048:
                continue
            for causal in (False, True):
                yield f"sdpa default {dtype} {shape} causal={causal}", partial(_attend, shape, dtype, causal=causal)
            yield f"sdpa efficient {dtype} {shape}", partial(_attend, shape, dtype, efficient)
            whole = (batch, heads, length - length % 8, width)  # masks are aligned to 8 elements
            yield f"sdpa efficient mask {dtype} {shape}", partial(_attend, whole, dtype, efficient, mask=True)
            if dtype == "bf16":
                yield f"sdpa flash {shape}", partial(_attend, shape, dtype, flash)
                yield f"sdpa cudnn {shape}", partial(_attend, shape, dtype, cudnn)
                yield f"sdpa cudnn causal {shape}", partial(_attend, shape, dtype, cudnn, causal=True)
            yield f"sdpa math {dtype} {shape}", partial(_attend, shape, dtype, SDPBackend.MATH)
    shape = (2, 8, 256, 64)
    for dtype in ("f32", "bf16", "f16"):
        yield f"sdpa gqa {dtype}", partial(_attend, shape, dtype, causal=True, key_heads=2)
        yield f"sdpa default mask {dtype}", partial(_attend, shape, dtype, mask=True)
        yield f"sdpa default dropout {dtype}", partial(_attend, shape, dtype, dropout=0.1)
        yield f"sdpa default cross {dtype}", partial(_attend, shape, dtype, keys=128)
        yield f"sdpa efficient dropout {dtype}", partial(_attend, shape, dtype, efficient, dropout=0.1)
        yield f"sdpa flash gqa {dtype}", partial(_attend, shape, dtype, flash, key_heads=2)
        yield f"sdpa flash dropout {dtype}", partial(_attend, shape, dtype, flash, dropout=0.1)
    for dtype in BOTH:
        yield f"sdpa nograd {dtype}", partial(_attend_without_gradients, dtype)


# --- norms of rows


def _row_operators(shape: Shape, dtype: str) -> dict[str, Case]:
    width = shape[1]
    make = partial(weight, dtype=dtype)
    return {
        "layer_norm": lambda: backward(F.layer_norm(make(*shape), (width,), make(width), make(width))),
        "rms_norm": lambda: backward(F.rms_norm(make(*shape), (width,), make(width))),
        "softmax": lambda: backward(F.softmax(make(*shape), -1)),
        "log_softmax0": lambda: backward(F.log_softmax(make(*shape), 0)),
    }


@family("layer norm, RMS norm, softmax")
def row_operators() -> Cases:
    for shape in ((2048, 768), (64, 768), (8192, 1024), (128, 50), (16384, 4096), (3, 100000)):
        for dtype in BOTH:
            for name, case in _row_operators(shape, dtype).items():
                yield f"{name} {dtype} {shape}", case


# --- images


def _image(shape: Shape, dtype: str, channels_last: bool) -> torch.Tensor:
    x = new(*shape, dtype=dtype)
    return (x.to(memory_format=torch.channels_last) if channels_last else x).requires_grad_()


def _batch_norm(make: Callable[[], torch.Tensor], channels: int, training: bool) -> None:
    backward(F.batch_norm(make(), new(channels), new(channels), weight(channels), weight(channels), training))


def _group_norm(make: Callable[[], torch.Tensor], channels: int, dtype: str) -> None:
    backward(F.group_norm(make(), 32, weight(channels, dtype=dtype), weight(channels, dtype=dtype)))


def _of_image(make: Callable[[], torch.Tensor], operator: Operator) -> None:
    backward(operator(make()))


IMAGE_OPERATORS: dict[str, Operator] = {
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_avg3": lambda x: F.adaptive_avg_pool2d(x, 3),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "pad_reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "roll": lambda x: torch.roll(x, (1, 2), (2, 3)),
    "flip": lambda x: x.flip(2, 3),
    "instance_norm": lambda x: F.instance_norm(x),
    "pixel_shuffle": lambda x: F.pixel_unshuffle(x, 2) if x.shape[2] % 2 == 0 else x * 1.0,
}


@family("batch and group norm, pooling, resizing, padding")
def image_operators() -> Cases:
    for shape in ((16, 64, 56, 56), (8, 3, 32, 32), (64, 512, 7, 7)):
        channels = shape[1]
        for dtype in BOTH:
            for channels_last in (False, True):
                make = partial(_image, shape, dtype, channels_last)
                of = f"{dtype} {shape} cl={channels_last}"
                yield f"batch_norm {of}", partial(_batch_norm, make, channels, True)
                yield f"batch_norm eval {of}", partial(_batch_norm, make, channels, False)
                if channels % 32 == 0:
                    yield f"group_norm {of}", partial(_group_norm, make, channels, dtype)
                for name, operator in IMAGE_OPERATORS.items():
                    yield f"{name} {of}", partial(_of_image, make, operator)


# --- embeddings and indices


def _looked_up(count: int, rows: int, width: int, dtype: str) -> dict[str, Case]:
    def indices() -> torch.Tensor:
        return integers(rows, count)

    def table() -> torch.Tensor:
        return weight(rows, width, dtype=dtype)

    return {
        "embedding": lambda: backward(F.embedding(indices(), table())),
        "index": lambda: backward(table()[indices()]),
        "index_select": lambda: backward(table().index_select(0, indices())),
    }


def _gather(count: int, width: int) -> None:
    backward(weight(count, width).gather(1, integers(width, count, 4)))


def _embedding_bag(count: int, rows: int, width: int) -> None:
    backward(F.embedding_bag(integers(rows, count // 4 * 4).view(-1, 4), weight(rows, width)))


@family("embeddings, indices, scatter")
def indexing() -> Cases:
    for size in ((4096, 50257, 768), (1024, 1000, 64), (100, 100, 16), (8, 30000, 512), (100000, 4096, 256)):
        count, rows, width = size
        for dtype in BOTH:
            for name, case in _looked_up(count, rows, width, dtype).items():
                yield f"{name} {dtype} {size}", case
        yield f"gather {size}", partial(_gather, count, width)
        yield f"embedding_bag {size}", partial(_embedding_bag, count, rows, width)
    yield "index 2d put", lambda: backward(weight(169, 12)[integers(169, 2401)])
    yield "index_put acc", lambda: new(1000, 64).index_put_((integers(1000, 5000),), new(5000, 64), accumulate=True)
    yield "index_put", lambda: new(1000, 64).index_put_((integers(1000, 5000),), new(5000, 64))
    yield "index_add", lambda: new(1000, 64).index_add_(0, integers(1000, 5000), new(5000, 64))
    yield "scatter_add", lambda: new(1000, 64).scatter_add_(0, integers(1000, 1000, 64), new(1000, 64))
    yield "scatter_reduce", lambda: new(1000, 64).scatter_reduce_(0, integers(1000, 1000, 64), new(1000, 64), "amax")


# --- sorts and scans


def _of_uniform(shape: Shape, operator: Operator) -> object:
    return operator(uniform(*shape))


SORTS: dict[str, Operator] = {
    "sort": lambda x: x.sort(-1),
    "argsort0": lambda x: x.argsort(0),
    "topk": lambda x: x.topk(10, -1),
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "kthvalue": lambda x: x.kthvalue(3, -1),
    "median": lambda x: x.median(-1),
    "cummax": lambda x: x.cummax(-1),
    "sort stable": lambda x: x.sort(dim=-1, stable=True),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "msort": lambda x: x.msort(),
}


@family("sorts and scans")
def sorts() -> Cases:
    for shape in ((1000,), (100, 2000), (8, 50257), (4, 1000, 30), (1 << 22,), (2000, 100)):
        for name, operator in SORTS.items():
            yield f"{name} {shape}", partial(_of_uniform, shape, operator)


# --- selections, counts, samples


def _selections(n: int) -> dict[str, Case]:
    def numbers() -> Any:
        return torch.arange(n, device="cuda")

    def ten() -> torch.Tensor:
        return torch.arange(10, device="cuda")

    return {
        "randperm": lambda: torch.randperm(n, device="cuda"),
        "nonzero": lambda: ones(n).nonzero(),
        "masked_select": lambda: new(n).masked_select(ones(n, dtype="bool")),
        "unique": lambda: numbers().unique(),
        "bincount": lambda: torch.bincount(new(n, dtype="i64"), minlength=64),
        "histc": lambda: torch.histc(uniform(n), 64),
        "multinomial": lambda: ones(n).multinomial(5),
        "multinomial_r": lambda: ones(n).multinomial(5, True),
        "repeat_interleave": lambda: new(n).repeat_interleave(2),
        "one_hot": lambda: F.one_hot(new(n, dtype="i64"), 10),
        "searchsorted": lambda: torch.searchsorted(numbers().float(), new(100)),
        "bucketize": lambda: torch.bucketize(new(n), ten().float()),
        "quantile": lambda: uniform(n).quantile(0.3),
        "isin": lambda: torch.isin(numbers(), ten()),
    }


@family("selections, counts, samples")
def selections() -> Cases:
    for n in (100, 10000, 1000000):
        for name, case in _selections(n).items():
            yield f"{name} {n}", case


# --- losses


def _losses(shape: Shape, dtype: str) -> dict[str, Case]:
    def x() -> torch.Tensor:
        return weight(*shape, dtype=dtype)

    def y() -> torch.Tensor:
        return new(*shape, dtype=dtype)

    def classes() -> torch.Tensor:
        return new(shape[0], dtype="i64")

    return {
        "cross_entropy": lambda: backward(F.cross_entropy(x(), classes())),
        "cross_entropy smooth": lambda: backward(F.cross_entropy(x(), classes(), label_smoothing=0.1)),
        "cross_entropy weight": lambda: backward(F.cross_entropy(x(), classes(), weight=new(shape[1], dtype=dtype))),
        "bce": lambda: backward(F.binary_cross_entropy_with_logits(x(), y())),
        "mse": lambda: backward(F.mse_loss(x(), y())),
        "kl": lambda: backward(F.kl_div(x(), y(), reduction="batchmean")),
        "huber": lambda: backward(F.huber_loss(x(), y())),
        "l1": lambda: backward(F.l1_loss(x(), y())),
        "cosine": lambda: backward(F.cosine_similarity(x(), y())),
        "normalize": lambda: backward(F.normalize(x())),
    }


def _ctc() -> None:
    backward(F.ctc_loss(weight(50, 16, 20), ones(16, 30, dtype="i64"), torch.full((16,), 50), torch.full((16,), 30)))


@family("losses")
def losses() -> Cases:
    for shape in ((4096, 50257), (64, 1000), (8, 10)):
        for dtype in BOTH:
            for name, case in _losses(shape, dtype).items():
                yield f"{name} {dtype} {shape}", case
    yield "cross_entropy 2d", lambda: backward(F.cross_entropy(weight(4, 21, 128, 128), new(4, 128, 128, dtype="i64")))
    yield "ctc", _ctc


# --- activations


def _activate(name: str, dtype: str) -> None:
    backward(getattr(F, name)(weight(512, 1024, dtype=dtype)))


ACTIVATIONS = (
    "silu", "mish", "gelu", "relu", "elu", "softplus", "leaky_relu", "hardswish", "selu", "tanh", "sigmoid", "logsigmoid", "glu",
    "hardtanh", "celu", "softsign", "relu6", "tanhshrink", "hardsigmoid",
)


@family("activations, dropout")
def activations() -> Cases:
    for name in ACTIVATIONS:
        for dtype in BOTH:
            yield f"act {name} {dtype}", partial(_activate, name, dtype)
    yield "gelu tanh", lambda: backward(F.gelu(weight(512, 1024), approximate="tanh"))
    yield "prelu", lambda: backward(F.prelu(weight(512, 1024), weight(1)))
    yield "prelu n", lambda: backward(F.prelu(weight(512, 1024), weight(1024)))
    yield "dropout", lambda: backward(F.dropout(weight(512, 1024), 0.1))
    yield "dropout2d", lambda: backward(F.dropout2d(weight(8, 64, 32, 32), 0.1))
    yield "alpha_dropout", lambda: backward(F.alpha_dropout(weight(512, 1024), 0.1, True))


# --- products of matrices


def _attend_with_projections(x: Callable[..., torch.Tensor]) -> Any:
    return F.multi_head_attention_forward(
        x(64, 4, 128), x(64, 4, 128), x(64, 4, 128), 128, 4, x(384, 128), x(384), None, None, False, 0.0, x(128, 128), x(128),
        need_weights=False,
    )


#: Of a function that makes a weight of a shape.
PRODUCTS: dict[str, Callable[[Callable[..., torch.Tensor]], Any]] = {
    "linear": lambda x: F.linear(x(2048, 768), x(3072, 768), x(3072)),
    "linear nobias": lambda x: F.linear(x(2048, 768), x(3072, 768)),
    "linear3d": lambda x: F.linear(x(4, 512, 768), x(3072, 768), x(3072)),
    "linear3d t": lambda x: F.linear(x(512, 4, 768).transpose(0, 1), x(3072, 768), x(3072)),
    "linear1": lambda x: F.linear(x(1, 768), x(3072, 768), x(3072)),
    "linear vec": lambda x: F.linear(x(768), x(3072, 768), x(3072)),
    "mv": lambda x: x(2048, 768) @ x(768),
    "dot": lambda x: x(76800) @ x(76800),
    "bmm": lambda x: torch.bmm(x(24, 128, 64), x(24, 64, 128)),
    "bmm t": lambda x: torch.bmm(x(24, 64, 128).transpose(1, 2), x(24, 64, 128)),
    "bmm permuted": lambda x: torch.matmul(x(4, 128, 6, 64).permute(0, 2, 1, 3), x(4, 128, 6, 64).permute(0, 2, 3, 1)),
    "bmm expand": lambda x: torch.matmul(x(1, 128, 64).expand(24, 128, 64), x(24, 64, 128)),
    "bmm slice": lambda x: torch.bmm(x(24, 128, 65)[:, :, 1:], x(24, 64, 128)),
    "mm slice": lambda x: x(128, 130)[:, ::2] @ x(65, 128),
    "baddbmm": lambda x: torch.baddbmm(x(24, 128, 128), x(24, 128, 64), x(24, 64, 128)),
    "einsum": lambda x: torch.einsum("bhqd,bhkd->bhqk", x(2, 8, 128, 64), x(2, 8, 128, 64)),
    "einsum2": lambda x: torch.einsum("bqhd,bkhd->bhqk", x(2, 128, 8, 64), x(2, 128, 8, 64)),
    "einsum3": lambda x: torch.einsum("bij,jk->bik", x(4, 100, 64), x(64, 32)),
    "outer": lambda x: torch.outer(x(1000), x(1000)),
    "bilinear": lambda x: F.bilinear(x(32, 20), x(32, 30), x(40, 20, 30), x(40)),
    "addmm2d": lambda x: torch.addmm(x(128, 256), x(128, 64), x(64, 256)),
    "mha": _attend_with_projections,
    "cdist": lambda x: torch.cdist(x(100, 64), x(200, 64)),
}


def _multiply(product: Callable[[Callable[..., torch.Tensor]], Any], dtype: str) -> None:
    backward(product(partial(weight, dtype=dtype)))


@family("products of matrices")
def products() -> Cases:
    for dtype in BOTH:
        for name, product in PRODUCTS.items():
            if name == "cdist" and dtype == "bf16":  # which has no kernel
                product = lambda x: x(2) * 1  # noqa: E731
            yield f"mm {name} {dtype}", partial(_multiply, product, dtype)


# --- recurrent layers


def _recur(kind: str, dtype: str, *, bidirectional: bool) -> None:
    options = {"device": "cuda", "dtype": DTYPES[dtype]}
    layer = getattr(torch.nn, kind)
    if bidirectional:
        backward(layer(128, 256, 1, batch_first=True, bidirectional=True, **options)(weight(16, 50, 128, dtype=dtype))[0])
    else:
        backward(layer(128, 256, 2, **options)(weight(50, 16, 128, dtype=dtype))[0])


def _recur_once(kind: str, dtype: str) -> None:
    backward(getattr(torch.nn, kind)(128, 256, device="cuda", dtype=DTYPES[dtype])(weight(16, 128, dtype=dtype)))


@family("recurrent layers")
def recurrent() -> Cases:
    for dtype in BOTH:
        for kind in ("LSTM", "GRU", "RNN"):
            yield f"rnn {kind} {dtype}", partial(_recur, kind, dtype, bidirectional=False)
            yield f"rnn {kind} bi {dtype}", partial(_recur, kind, dtype, bidirectional=True)
        for kind in ("LSTMCell", "GRUCell"):
            yield f"rnn {kind} {dtype}", partial(_recur_once, kind, dtype)


# --- convolutions


def _convolve(shape: Shape, dtype: str, channels_last: bool) -> None:
    """`shape` is the batch, channels before and after, the kernel's size, its stride, the image's size, and the groups."""
    batch, before, after, kernel, stride, size, groups = shape
    x = new(batch, before, size, size, dtype=dtype)
    w = new(after, before // groups, kernel, kernel, dtype=dtype)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
        w = w.to(memory_format=torch.channels_last)
    padding = kernel // 2 if kernel < 16 else 0
    backward(F.conv2d(x.requires_grad_(), w.requires_grad_(), None, stride, padding, 1, groups))


CONVOLVED = [
    (8, 3, 64, 7, 2, 224, 1), (8, 64, 64, 3, 1, 56, 1), (8, 64, 256, 1, 1, 56, 1), (8, 512, 512, 3, 1, 7, 1), (32, 64, 64, 3, 1, 56, 1),
    (8, 96, 96, 7, 1, 28, 96), (8, 144, 144, 3, 2, 56, 144), (16, 3, 768, 16, 16, 224, 1), (2, 16, 16, 3, 1, 64, 1),
    (8, 256, 512, 3, 2, 28, 1), (8, 128, 128, 3, 1, 28, 32), (64, 3, 64, 3, 1, 224, 1), (64, 64, 64, 3, 1, 224, 1),
    (8, 512, 512, 3, 1, 14, 1), (1, 1280, 1280, 3, 1, 16, 1), (4, 320, 320, 3, 1, 64, 1), (8, 3, 32, 3, 2, 224, 1),
    (32, 128, 256, 3, 1, 32, 1),
]


@family("convolutions")
def convolutions() -> Cases:
    for shape in CONVOLVED:
        for dtype in BOTH:
            for channels_last in (False, True):
                yield f"conv {dtype} {shape} cl={channels_last}", partial(_convolve, shape, dtype, channels_last)
    yield "conv bias", lambda: backward(F.conv2d(weight(8, 64, 56, 56), weight(64, 64, 3, 3), weight(64), padding=1))
    yield "conv1d", lambda: backward(F.conv1d(weight(8, 64, 1000), weight(128, 64, 5), weight(128), padding=2))
    yield "conv3d", lambda: backward(F.conv3d(weight(2, 16, 16, 32, 32), weight(32, 16, 3, 3, 3), padding=1))
    yield "convT", lambda: backward(F.conv_transpose2d(weight(8, 64, 28, 28), weight(64, 32, 4, 4), stride=2, padding=1))
    yield "conv dilated", lambda: backward(F.conv2d(weight(8, 64, 56, 56), weight(64, 64, 3, 3), padding=2, dilation=2))
    yield "unfold", lambda: backward(F.unfold(weight(8, 3, 32, 32), 3))


# --- linear algebra and Fourier transforms


def _almost_one(operator: Operator) -> object:
    return operator(torch.eye(128, device="cuda") + 0.01)


def _almost_one_each(operator: Operator) -> object:
    return operator((torch.eye(32, device="cuda") + 0.01).repeat(16, 1, 1))


LINEAR_ALGEBRA: dict[str, Operator] = {
    "cholesky": torch.linalg.cholesky,
    "qr": torch.linalg.qr,
    "svd": torch.linalg.svd,
    "inv": torch.linalg.inv,
    "eigh": torch.linalg.eigh,
    "solve": lambda x: torch.linalg.solve(x, x),
    "det": torch.linalg.det,
    "matrix_exp": torch.matrix_exp,
    "fft": torch.fft.fft,
    "rfft": torch.fft.rfft,
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x)),
    "fft2": torch.fft.fft2,
    "tri": lambda x: torch.linalg.solve_triangular(x, x, upper=True),
    "pinv": torch.linalg.pinv,
    "norm2": torch.linalg.norm,
    "lu": torch.linalg.lu_factor,
}


@family("linear algebra, Fourier transforms")
def linear_algebra() -> Cases:
    for name, operator in LINEAR_ALGEBRA.items():
        yield f"linalg {name}", partial(_almost_one, operator)
        yield f"linalg {name} batch", partial(_almost_one_each, operator)


# --- optimizers


def _optimize(optimizer_of: Callable[[Any], Any]) -> None:
    first, last = torch.nn.Linear(512, 1024, device="cuda"), torch.nn.Linear(1024, 512, device="cuda")
    model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    optimizer = optimizer_of(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(new(64, 512)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "AdamW": torch.optim.AdamW,
    "AdamW fused": partial(torch.optim.AdamW, fused=True),
    "AdamW noforeach": partial(torch.optim.AdamW, foreach=False),
    "Adam amsgrad": partial(torch.optim.Adam, amsgrad=True),
    "AdamW capturable": partial(torch.optim.AdamW, capturable=True),
    "SGD": partial(torch.optim.SGD, lr=0.1),
    "SGD m": partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True),
    "SGD fused": partial(torch.optim.SGD, lr=0.1, momentum=0.9, fused=True),
    "RMSprop": torch.optim.RMSprop,
    "Adagrad": torch.optim.Adagrad,
    "Adafactor": torch.optim.Adafactor,
    "Adadelta": torch.optim.Adadelta,
    "NAdam": torch.optim.NAdam,
    "RAdam": torch.optim.RAdam,
    "Adamax": torch.optim.Adamax,
    "ASGD": torch.optim.ASGD,
    "Rprop": torch.optim.Rprop,
}


@family("optimizers")
def optimizers() -> Cases:
    for name, optimizer_of in OPTIMIZERS.items():
        yield f"optim {name}", partial(_optimize, optimizer_of)


# --- autocast and checkpoints


def _train_with_autocast(dtype: torch.dtype) -> None:
    first, norm = torch.nn.Linear(512, 1024, device="cuda"), torch.nn.LayerNorm(1024, device="cuda")
    model = torch.nn.Sequential(first, torch.nn.GELU(), norm, torch.nn.Linear(1024, 512, device="cuda"))
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
    for _ in range(2):
        with torch.autocast("cuda", dtype=dtype):
            loss = model(new(64, 512)).float().square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def _checkpoint() -> None:
    from torch.utils.checkpoint import checkpoint

    layers = [torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, device="cuda") for _ in range(3)]
    model = torch.nn.Sequential(*layers)
    x = weight(8, 96, 128)
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False)
    backward(x)


@family("autocast, recomputation")
def trainings() -> Cases:
    yield "amp bf16", partial(_train_with_autocast, torch.bfloat16)
    yield "amp f16", partial(_train_with_autocast, torch.float16)
    yield "checkpoint", _checkpoint


# --- the rest

OTHERS: dict[str, Case] = {
    "cat": lambda: torch.cat([new(100, 100), new(50, 100)]),
    "stack": lambda: torch.stack([new(100), new(100)]),
    "where": lambda: torch.where(new(1000, 100) > 0, new(1000, 100), new(100)),
    "tril": lambda: new(1000, 1000).tril(),
    "masked_fill": lambda: new(1000, 1000).masked_fill(ones(1000, 1000, dtype="bool").triu(1), -1.0),
    "arange": lambda: torch.arange(100000, device="cuda"),
    "linspace": lambda: torch.linspace(0, 1, 1000, device="cuda"),
    "randn bf16": lambda: torch.randn(1000, 1000, device="cuda", dtype=torch.bfloat16),
    "bernoulli": lambda: torch.bernoulli(torch.zeros(1000, 1000, device="cuda")),
    "to bf16": lambda: new(1000, 1000).bfloat16().float(),
    "item": lambda: new(1000).sum().item(),
    "isfinite all": lambda: torch.isfinite(new(1000, 1000)).all(),
    "clamp": lambda: new(1000, 1000).clamp(0, 1),
    "addcmul": lambda: torch.addcmul(new(1000), new(1000), new(1000)),
    "lerp": lambda: torch.lerp(new(1000), new(1000), 0.5),
    "cumsum i64": lambda: ones(8, 512, dtype="i64").cumsum(-1),
    "eq all": lambda: (new(100000) == 0).all(),
    "grid_sample": lambda: backward(F.grid_sample(weight(4, 3, 64, 64), new(4, 64, 64, 2))),
    "tensor_split": lambda: [each.clone() for each in new(100, 10).tensor_split(3)],
    "unbind": lambda: torch.stack(new(10, 10).unbind()),
    "scan": lambda: new(1000, 1000).diff(),
    "nan_to_num": lambda: new(1000).nan_to_num_(),
    "trace": lambda: new(1000, 1000).trace(),
    "std_mean": lambda: torch.std_mean(new(100, 1000), dim=1),
    "dist": lambda: torch.dist(new(1000), new(1000)),
    "kron": lambda: torch.kron(new(10, 10), new(10, 10)),
    "logaddexp": lambda: torch.logaddexp(new(1000), new(1000)),
    "diag": lambda: torch.diag(new(1000)),
    "triu_indices": lambda: torch.triu_indices(100, 100, device="cuda"),
    "cartesian": lambda: torch.cartesian_prod(new(100), new(100)),
    "meshgrid": lambda: torch.stack(torch.meshgrid(new(100), new(100), indexing="ij")),
    "bool index": lambda: new(1000, 10)[ones(1000, dtype="bool")],
    "var unbiased": lambda: new(100, 1000).var(0),
}


@family("others")
def others() -> Cases:
    for name, case in OTHERS.items():
        yield f"misc {name}", case


# --- running them

CASES: dict[str, Case] = {name: case for cases in FAMILIES.values() for name, case in cases.items()}

#: In front of a case, a block is allocated and freed that is so large, and larger by STRIDE for each case before it. The sizes are odd, as
#: those of no tensor of a case are.
MARK = (1 << 26) + 1
STRIDE = 512


def _mark(number: int) -> None:
    torch.empty(MARK + STRIDE * number, dtype=torch.uint8, device="cuda")


def warm_up() -> None:
    """Has this thread and that of the backward pass make their handles of cuBLAS, whose workspaces are then not a case's."""
    x = torch.empty(64, 64, device="cuda")
    layer = torch.nn.Linear(64, 64, device="cuda")
    layer(x).sum().backward()


def run_cases(names: Iterable[str]) -> dict[str, str]:
    """Runs them. Returns what went wrong, by the case's name."""
    number = {name: index for index, name in enumerate(CASES)}
    faults = {}
    for name in names:
        _mark(number[name])
        try:
            made = CASES[name]()
            del made
        except Exception as fault:  # of a kernel that this GPU, or the simulation, does not have
            faults[name] = f"{type(fault).__name__}: {fault}"[:200]
    _mark(len(CASES))
    return faults


def split(events: Iterable[int]) -> dict[str, list[int]]:
    """The events of each case: the bytes of a block that is allocated, or with a minus sign, that is freed."""
    names: Sequence[str] = list(CASES)
    found: dict[str, list[int]] = {}
    current: list[int] | None = None
    for event in events:
        number, rest = divmod(abs(event) - MARK, STRIDE)
        if rest or not 0 <= number <= len(names):
            if current is not None:
                current.append(event)
        elif event > 0:
            current = found.setdefault(names[number], []) if number < len(names) else None
    return found
