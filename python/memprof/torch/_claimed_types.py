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


def _named(kind: Any) -> Any:
    """The type of that name, if it is one of the device."""
    module, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    return getattr(torch.cuda, name) if module == "torch.cuda" and name in _dtypes else kind


class DefaultType:
    """`torch.set_default_tensor_type`, which is told such a type: tensors are then made on the device, those of `torch.Tensor` too."""

    def __init__(self) -> None:
        self._original: Callable[..., None] = torch.set_default_tensor_type
        self._is_claimed = False

    def set(self, t: Any) -> None:
        kind = _named(t)
        if not isinstance(kind, _TensorType):
            self.forget()
            return self._original(t)
        if not kind.dtype.is_floating_point:
            raise TypeError("only floating-point types are supported as the default type")
        torch.set_default_dtype(kind.dtype)
        torch.set_default_device("cuda")
        if not self._is_claimed:
            setattr(torch.Tensor, "__new__", _new_on_the_device)
        self._is_claimed = True

    def forget(self) -> None:
        """Tensors are made on the CPU again, of the same type."""
        if self._is_claimed:
            self._is_claimed = False
            torch.set_default_device(None)
            delattr(torch.Tensor, "__new__")


_original_new: Callable[..., Any] = torch.Tensor.__new__


def _new_on_the_device(cls: type, *args: Any, **rest: Any) -> Any:
    if cls is torch.Tensor and not rest:
        return torch.empty(0, device="cuda").new(*args)
    return _original_new(cls, *args, **rest)


def knowing_types(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.type`, which is told such a type, or its name."""

    @functools.wraps(original)
    def type_of(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **rest: Any) -> Any:
        dtype = _named(dtype)
        if isinstance(dtype, _TensorType):
            return self.to("cuda", dtype.dtype, non_blocking)
        return original(self, dtype, non_blocking, **rest)

    return type_of
