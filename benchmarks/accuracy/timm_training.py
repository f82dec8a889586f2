"""Training steps as timm's train.py makes them with its defaults (version 1.0): what of it takes memory of the device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

#: Of a run: the first chooses cuDNN's algorithms, from the second on the optimizer's state is there.
STEPS = 3


class Loader:
    """The images that timm's prefetcher holds on the device.

    It copies them on a stream of its own, and PyTorch's allocator shares no memory between streams. When the next images are made,
    of 8-bit integers that came from the host, those before them and those that the step still has are there, too.
    """

    def __init__(self, batch: int, shape: tuple[int, ...]) -> None:
        self._images = [torch.empty(batch, *shape, device="cuda") for _ in range(3)]
        self._bytes = torch.empty(batch, *shape, dtype=torch.uint8, device="cuda")
        self._labels = torch.zeros(batch, dtype=torch.long, device="cuda")

    def __call__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._images[step % len(self._images)], self._labels


def _is_depthwise(images: torch.Tensor, weight: torch.Tensor, groups: int) -> bool:
    """As in PyTorch's `is_depthwise`: in single precision, such a convolution has PyTorch's own kernel."""
    return groups > 1 and groups == images.shape[1] and weight.shape[0] % groups == 0


@contextlib.contextmanager
def benchmarked_convolutions(forget: Callable[[], None]) -> Iterator[None]:
    """Calls `forget` where PyTorch gives its cached memory back with `torch.backends.cudnn.benchmark`, as train.py sets it: after the
    algorithms were tried, for each new combination of sizes, and each direction (aten/src/ATen/native/cudnn/Conv_v8.cpp)."""
    functional: Any = torch.nn.functional
    known = set()

    def benchmarked(convolution: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def convolve(
            images: torch.Tensor, weight: torch.Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
        ) -> torch.Tensor:
            made = convolution(images, weight, bias, stride, padding, dilation, groups)
            sizes = (images.shape, images.stride(), weight.shape, str(stride), str(padding), str(dilation), groups)
            if sizes not in known and not _is_depthwise(images, weight, groups):
                known.add(sizes)
                forget()
                if made.grad_fn is not None:
                    made.grad_fn.register_hook(lambda *gradients: forget())
            return made

        return convolve

    names = ("conv1d", "conv2d", "conv3d")
    originals = {name: getattr(functional, name) for name in names}
    for name, original in originals.items():
        setattr(functional, name, benchmarked(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(functional, name, original)


def train(name: str, batch: int) -> tuple[bool, int]:
    """Trains the model for some steps, in single precision. Whether it has convolutions besides one that cuts the image into patches, and
    its number of classes."""
    import timm
    import timm.loss
    import timm.optim

    model = timm.create_model(name)
    shape = model.default_cfg["input_size"]
    model = model.to("cuda").train()
    # SGD with Nesterov's momentum; parameters with one dimension have no weight decay.
    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=0.1, weight_decay=2e-5, momentum=0.9)
    criterion = timm.loss.LabelSmoothingCrossEntropy(0.1)
    loader = Loader(batch, shape)
    for step in range(STEPS):
        images, labels = loader(step)
        output = model(images)
        if isinstance(output, (tuple, list)):
            output = output[0]
        loss = criterion(output, labels)
        del output
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return sum(isinstance(each, torch.nn.modules.conv._ConvNd) for each in model.modules()) > 1, model.num_classes
