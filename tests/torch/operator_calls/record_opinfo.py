#!/usr/bin/env python3
"""Writes calls.txt: calls of PyTorch's operators, as PyTorch's own tests make them.

    pip install torch==2.13.0 numpy scipy && ./record_opinfo.py > calls.txt

Runs the samples of PyTorch's operator and module databases (torch.testing._internal), forward and backward, and writes down
each distinct call that reaches the dispatcher below autograd: the operator, and for each tensor its type, sizes, strides and, where
they steer the kernel, its values. operator_call.hpp has the format.
"""
import collections
import contextlib
import io
import math
import signal
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.complex32: "c32",
    torch.complex64: "c64", torch.complex128: "c128", torch.int64: "i64", torch.int32: "i32", torch.int16: "i16",
    torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8",
}
LAYOUTS = {torch.strided: "strided"}
FORMATS = {torch.contiguous_format: "contiguous", torch.preserve_format: "preserve", torch.channels_last: "channels_last",
           torch.channels_last_3d: "channels_last_3d"}
MOST_VALUES = 48       # of a tensor whose values are written down
MOST_ELEMENTS = 1 << 22
CALLS_A_DTYPE = 10     # of one operator
SAMPLES = 14           # of one entry of the databases and one dtype


class Unwritable(Exception):
    pass


def number(value):
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, complex):
        return f"c{value.real!r},{value.imag!r}"
    if isinstance(value, float):
        return repr(value) if not math.isinf(value) and not math.isnan(value) else str(value)
    return str(int(value))


def tensor_text(tensor):
    if (tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested or
            type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.numel() > MOST_ELEMENTS or
            tensor.dtype not in DTYPES or tensor.is_conj() or tensor.is_neg()):
        raise Unwritable
    text = DTYPES[tensor.dtype] + "[" + ",".join(map(str, tensor.shape)) + "]"
    dense = torch.empty(tensor.shape, device="meta").stride()
    if tensor.stride() != dense or tensor.storage_offset() != 0:
        text += "/" + ",".join(map(str, tensor.stride()))
        if tensor.storage_offset() != 0:
            text += "+" + str(tensor.storage_offset())
    return text


def values_text(tensor):
    """What a kernel may take for an index or a length; a matrix that is special."""
    if tensor.numel() == 0:
        return ""
    if not tensor.is_floating_point() and not tensor.is_complex():
        if tensor.numel() <= MOST_VALUES:
            return "{" + ",".join(number(value) for value in tensor.reshape(-1).tolist()) + "}"
        least, most = int(tensor.min()), int(tensor.max())
        return f"%{least}:{most}"
    return ""


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = collections.defaultdict(dict)  # operator -> dtype -> {key: line}
        self.unwritable = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        try:
            self.write(function, args, kwargs)
        except Unwritable:
            self.unwritable[str(function)] += 1
        return function(*args, **kwargs)

    def write(self, function, args, kwargs):
        schema = function._schema
        seen = {}
        keys, texts = [], []
        first_dtype = "none"

        def append(value, type_text, index):
            nonlocal first_dtype
            if value is None:
                keys.append("-"), texts.append("-")
            elif isinstance(value, torch.Tensor):
                if id(value) in seen:
                    text = f"={seen[id(value)]}"
                    keys.append(text), texts.append(text)
                    return
                seen[id(value)] = index
                text = tensor_text(value)
                if first_dtype == "none":
                    first_dtype = DTYPES[value.dtype]
                keys.append(text), texts.append(text + values_text(value))
            elif isinstance(value, (list, tuple)):
                keys.append("("), texts.append("(")
                for element in value:
                    append(element, type_text, -1)
                keys.append(")"), texts.append(")")
            elif isinstance(value, torch.dtype):
                if value not in DTYPES:
                    raise Unwritable
                keys.append(":" + DTYPES[value]), texts.append(":" + DTYPES[value])
            elif isinstance(value, torch.layout):
                if value not in LAYOUTS:
                    raise Unwritable
                keys.append(":strided"), texts.append(":strided")
            elif isinstance(value, torch.memory_format):
                keys.append(":" + FORMATS[value]), texts.append(":" + FORMATS[value])
            elif isinstance(value, torch.device):
                if value.type != "cpu":
                    raise Unwritable
                keys.append(":cpu"), texts.append(":cpu")
            elif isinstance(value, torch.Generator):
                keys.append("-"), texts.append("-")
            elif isinstance(value, str):
                if " " in value or value == "":
                    raise Unwritable
                keys.append('"' + value), texts.append('"' + value)
            elif isinstance(value, (bool, int, float, complex)):
                keys.append(number(value)), texts.append(number(value))
            else:
                raise Unwritable

        position = 0
        for index, argument in enumerate(schema.arguments):
            if argument.name in kwargs:
                value = kwargs[argument.name]
            elif not argument.kwarg_only and position < len(args):
                value = args[position]
                position += 1
            elif argument.has_default_value():
                value = argument.default_value
                # Defaults of these types come as numbers.
                type_text = str(argument.type)
                if value is not None and ("ScalarType" in str(argument.real_type) or "Layout" in str(argument.real_type) or
                                          "MemoryFormat" in str(argument.real_type)):
                    raise Unwritable
                del type_text
            else:
                raise Unwritable
            append(value, "", index)
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        # Sizes are varied by the samples; what differs in a number alone is one call.
        calls = self.calls[name].setdefault(first_dtype, {})
        key = " ".join(keys)
        if key not in calls and len(calls) < CALLS_A_DTYPE:
            calls[key] = name + " " + " ".join(texts)


def backward(result, inputs):
    outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if outputs:
        total = sum((torch.view_as_real(one) if one.is_complex() and not one.is_conj() else one.real).float().sum()
                    for one in outputs)
        total.backward()


class TooLong(Exception):
    pass


def alarm(*_):
    raise TooLong


def run(recorder, name, make_samples, call):
    try:
        samples = make_samples()
        for _, sample in zip(range(SAMPLES), samples):
            signal.alarm(20)
            try:
                with recorder:
                    result = call(sample)
                    backward(result, sample)
            except TooLong:
                print("too long:", name, file=sys.stderr)
            except Exception as fault:  # samples that one build of PyTorch refuses
                print("refused:", name, type(fault).__name__, str(fault)[:80].replace("\n", " "), file=sys.stderr)
            finally:
                signal.alarm(0)
    except Exception as fault:
        print("no samples:", name, type(fault).__name__, str(fault)[:80].replace("\n", " "), file=sys.stderr)


def main():
    signal.signal(signal.SIGALRM, alarm)
    recorder = Recorder()
    wanted = [torch.float32, torch.bfloat16, torch.complex64, torch.float64, torch.int64, torch.bool]
    for entry in op_db:
        supported = entry.supported_dtypes("cpu")
        variants = [entry.op] + ([entry.inplace_variant] if getattr(entry, "inplace_variant", None) else [])
        for dtype in wanted:
            if dtype not in supported:
                continue
            needs_gradient = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
            torch.manual_seed(1)
            run(recorder, entry.name, lambda: entry.sample_inputs("cpu", dtype, requires_grad=needs_gradient),
                lambda sample: entry(sample.input, *sample.args, **sample.kwargs))
            if dtype is torch.float32:
                run(recorder, entry.name, lambda: entry.sample_inputs("cpu", dtype, requires_grad=needs_gradient),
                    lambda sample: (lambda s: entry(s.input, *s.args, **s.kwargs))(sample.noncontiguous()))
                if entry.supports_out:
                    run(recorder, entry.name, lambda: entry.sample_inputs("cpu", dtype, requires_grad=False),
                        lambda sample: entry(sample.input, *sample.args, **sample.kwargs,
                                             out=torch.empty_like(entry(sample.input, *sample.args, **sample.kwargs))))
            if len(variants) > 1 and dtype in (torch.float32, torch.int64):
                run(recorder, entry.name, lambda: entry.sample_inputs("cpu", dtype, requires_grad=False),
                    lambda sample: variants[1](sample.input.clone(), *sample.args, **sample.kwargs))
    for entry in module_db:
        for dtype in (torch.float32, torch.bfloat16):
            for training in (True, False):
                def samples():
                    return entry.module_inputs_func(entry, device="cpu", dtype=dtype, requires_grad=True, training=training)

                def call(sample):
                    built = entry.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
                    built = built.to(dtype).train(training)
                    return built(*sample.forward_input.args, **sample.forward_input.kwargs)
                run(recorder, entry.name, samples, call)

    count = 0
    for name in sorted(recorder.calls):
        for dtype in sorted(recorder.calls[name]):
            for line in sorted(recorder.calls[name][dtype].values()):
                print(line)
                count += 1
    print(count, "calls of", len(recorder.calls), "operators;", sum(recorder.unwritable.values()), "not written, of",
          len(recorder.unwritable), file=sys.stderr)


if __name__ == "__main__":
    main()
