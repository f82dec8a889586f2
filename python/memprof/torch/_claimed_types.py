"""`torch.cuda.FloatTensor` and the like, of a CUDA device that is not there: in a build without CUDA, PyTorch's own make no tensors."""

from __future__ import annotations

import functools

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_dtypes = {
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


class _TensorType(type):
    dtype: torch.dtype
    is_cuda = True

    def __call__(cls, *args: Any, **rest: Any) -> Any:
        """Of sizes, or of a list, an array or a tensor."""
        return torch.empty(0, dtype=cls.dtype, device="cuda").new(*args)

    def __instancecheck__(cls, value: Any) -> bool:
        return torch.is_tensor(value) and value.is_cuda and value.dtype is cls.dtype


def tensor_types() -> dict[str, type]:
    return {name: _TensorType(name, (), {"dtype": dtype, "__module__": "torch.cuda"}) for name, dtype in _dtypes.items()}


def knowing_types(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.type`, which is told such a type, or its name."""

    @functools.wraps(original)
    def type_of(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **rest: Any) -> Any:
        module, _, name = dtype.rpartition(".") if isinstance(dtype, str) else ("", "", "")
        if module == "torch.cuda" and name in _dtypes:
            return self.to("cuda", _dtypes[name], non_blocking)
        if isinstance(dtype, _TensorType):
            return self.to("cuda", dtype.dtype, non_blocking)
        return original(self, dtype, non_blocking, **rest)

    return type_of
