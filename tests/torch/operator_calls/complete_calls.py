#!/usr/bin/env python3
"""Writes other_calls.txt: calls of the operators that calls.txt does not have.

    pip install torch==2.13.0 numpy scipy expecttest ninja && ./complete_calls.py > other_calls.txt

record_opinfo.py sees what reaches the dispatcher below autograd, so operators that are composed of others are missing there, and
those that PyTorch's tests do not call. This script records the former above autograd, and makes calls of the rest from arguments
of operators with a schema alike; it keeps what the operator takes. What is left has no line.
"""
import collections
import multiprocessing
import pathlib
import re
import signal
import sys
import time

import torch
import torch.testing._internal.common_methods_invocations as invocations
import torch.utils.cpp_extension
from torch.testing._internal.common_modules import module_db

import record_opinfo as opinfo

OBSERVER = """
#include <ATen/record_function.h>
#include <torch/csrc/jit/python/pybind_utils.h>
namespace {
py::object* listener = nullptr;
at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& called) {
  const auto name = called.operator_name();
  if (!name.has_value() || name->name.rfind("aten::", 0) != 0) return nullptr;
  const at::RecordFunctionGuard off{false};
  const py::gil_scoped_acquire interpreter;
  py::list arguments;
  for (const c10::IValue& value : called.inputs()) arguments.append(torch::jit::toPyObject(value));
  (*listener)(c10::toString(*name), arguments);
  return nullptr;
}
}
void start(py::object callback) {
  listener = new py::object(callback);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}
void stop() { at::removeCallback(handle); }
"""
TYPES = {0: "u8", 1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "f16", 6: "f32", 7: "f64", 8: "c32", 9: "c64", 10: "c128", 11: "b8",
         15: "bf16"}
DTYPES = {text: dtype for dtype, text in opinfo.DTYPES.items()}
FORMATS = dict(enumerate(opinfo.FORMATS.values()))
FOLDER = pathlib.Path(__file__).parent
RECORDED = 2   # calls of one operator
TRIALS = 60    # donors of arguments
REFUSED = re.compile("aten::(_?pin_memory|from_file|_foobar|_print|_add_batch_dim|_remove_batch_dim)")  # of no use, or of much harm


# What cannot be guessed.
WRITTEN = """
aten::_amp_foreach_non_finite_check_and_unscale_ ( f32[4,5] f32[7] ) f32[1] f32[1]
aten::_amp_foreach_non_finite_check_and_unscale ( f32[4,5] f32[7] ) f32[1] f32[1]
aten::_amp_update_scale_ f32[1] i32[1]{0} f32[1] 2.0 0.5 2000
aten::_amp_update_scale f32[1] i32[1]{0} f32[1] 2.0 0.5 2000
aten::_compute_linear_combination.out f32[3,4,5] f32[6,3] f32[6,4,5]
aten::_fused_adagrad_ ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[]{3} f32[]{3} ) 0.1 0.0 0.0 1e-10 F - -
aten::_fused_adagrad_.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[]{3} f32[]{3} ) f32[] 0.0 0.0 1e-10 F - -
aten::_fused_adagrad ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[]{3} f32[]{3} ) 0.1 0.0 0.0 1e-10 F - -
aten::_fused_adam_ ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) 0.1 0.9 0.99 0.0 1e-08 F F - -
aten::_fused_adam_.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) f32[] 0.9 0.99 0.0 1e-08 F F - -
aten::_fused_adam ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) 0.1 0.9 0.99 0.0 1e-08 F F - -
aten::_fused_adam.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) f32[] 0.9 0.99 0.0 1e-08 F F - -
aten::_fused_adamw_ ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) 0.1 0.9 0.99 0.01 1e-08 F F - -
aten::_fused_adamw_.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) f32[] 0.9 0.99 0.01 1e-08 F F - -
aten::_fused_adamw ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) 0.1 0.9 0.99 0.01 1e-08 F F - -
aten::_fused_adamw.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( ) ( f32[]{3} f32[]{3} ) f32[] 0.9 0.99 0.01 1e-08 F F - -
aten::_fused_sgd_.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) 0.0 0.9 f32[] 0.0 F F F - -
aten::_fused_sgd.tensor_lr ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) ( f32[4,5] f32[7] ) 0.0 0.9 f32[] 0.0 F F F - -
aten::_grouped_mm bf16[32,16] bf16[4,16,24] i32[4]{8,16,24,32} - :bf16
aten::_grouped_mm bf16[4,8,16] bf16[4,16,24] - - :bf16
aten::_int_mm i8[32,16]%-3:3 i8[16,24]%-3:3
aten::_int_mm.out i8[32,16]%-3:3 i8[16,24]%-3:3 i32[32,24]
aten::_is_all_true b8[20]%0:1
aten::_is_any_true b8[20]%0:1
aten::_linalg_slogdet.sign f32[3,5,5] f32[0] f32[0] f32[0] i32[0]
aten::_native_multi_head_attention f32[2,7,16] f32[2,7,16] f32[2,7,16] 16 4 f32[48,16] f32[48] f32[16,16] f32[16] - T T -
aten::_pack_padded_sequence f32[7,3,5] i64[3]{7,5,2} F
aten::_pack_padded_sequence_backward f32[14,5] ( 7 3 5 ) i64[7]{3,3,2,2,2,1,1} F
aten::_pad_packed_sequence f32[14,5] i64[7]{3,3,2,2,2,1,1} F 0.0 7
aten::_resize_output f32[12] ( 3 4 ) :cpu
aten::_scaled_mm f32[4,4] f32[4,4] f32[] f32[] - - - F
aten::_sobol_engine_initialize_state_ i64[3,30]%0:0 3
aten::_transform_bias_rescale_qkv f32[2,7,48] f32[48] 4
aten::_transformer_encoder_layer_fwd f32[2,7,16] 16 4 f32[48,16] f32[48] f32[16,16] f32[16] F F 1e-05 f32[16] f32[16] f32[16] f32[16] f32[32,16] f32[32] f32[16,32] f32[16] - -
aten::adaptive_max_pool2d.out f32[2,3,8,8] ( 4 4 ) f32[0] i64[0]
aten::adaptive_max_pool3d.out f32[2,3,8,8,8] ( 4 4 4 ) f32[0] i64[0]
aten::affine_grid_generator f32[2,2,3] ( 2 3 8 8 ) F
aten::affine_grid_generator_backward f32[2,8,8,2] ( 2 3 8 8 ) F
aten::bitwise_and.Scalar_Tensor 5 i64[20]%0:9
aten::bitwise_or.Scalar_Tensor 5 i64[20]%0:9
aten::bitwise_xor.Scalar_Tensor 5 i64[20]%0:9
aten::bitwise_left_shift.Scalar_Tensor 5 i64[20]%0:9
aten::bitwise_right_shift.Scalar_Tensor 5 i64[20]%0:9
aten::bucketize.Scalar 0.5 f32[20] F F
aten::conv_tbc f32[9,2,5] f32[3,5,7] f32[7] 1
aten::float_power.Tensor_Tensor_out f32[4,5] f32[4,5] f64[0]
aten::float_power.Tensor_Scalar_out f32[4,5] 2 f64[0]
aten::float_power.Scalar_out 2 f32[4,5] f64[0]
aten::fractional_max_pool2d.output f32[2,3,8,8] ( 2 2 ) ( 4 4 ) f32[2,3,2] f32[0] i64[0]
aten::fractional_max_pool3d.output f32[2,3,8,8,8] ( 2 2 2 ) ( 4 4 4 ) f32[2,3,3] f32[0] i64[0]
aten::glu_jvp f32[4,5] f32[4,10] f32[4,10] -1
aten::glu_backward_jvp f32[4,10] f32[4,5] f32[4,10] f32[4,5] f32[4,10] -1
aten::gru.data f32[14,5] i64[7]{3,3,2,2,2,1,1} f32[1,3,4] ( f32[12,5] f32[12,4] f32[12] f32[12] ) T 1 0.0 F F
aten::lstm.data f32[14,5] i64[7]{3,3,2,2,2,1,1} ( f32[1,3,4] f32[1,3,4] ) ( f32[16,5] f32[16,4] f32[16] f32[16] ) T 1 0.0 F F
aten::rnn_relu.data f32[14,5] i64[7]{3,3,2,2,2,1,1} f32[1,3,4] ( f32[4,5] f32[4,4] f32[4] f32[4] ) T 1 0.0 F F
aten::rnn_tanh.data f32[14,5] i64[7]{3,3,2,2,2,1,1} f32[1,3,4] ( f32[4,5] f32[4,4] f32[4] f32[4] ) T 1 0.0 F F
aten::istft c64[9,5] 16 4 16 f32[16] T F T - F
aten::linalg_cond.p_str f32[5,5] "fro
aten::linalg_cond.p_str_out f32[5,5] "fro f32[0]
aten::linalg_ldl_factor.out f32[5,5] F f32[0] i32[0]
aten::linalg_ldl_factor_ex.out f32[5,5] F F f32[0] i32[0] i32[0]
aten::linalg_lu_factor.out f32[5,5] T f32[0] i32[0]
aten::max.dim_max f32[4,5] 1 F f32[0] i64[0]
aten::native_dropout.out f32[4,5] 0.5 T f32[0] b8[0]
aten::normal.float_Tensor 0.0 f32[20] -
aten::normal.float_Tensor_out 0.0 f32[20] - f32[0]
aten::pad_sequence ( f32[5,3] f32[2,3] f32[4,3] ) F 0.0 "right
aten::searchsorted.Scalar f32[20] 0.5 F F - -
aten::sum.dim_IntList bf16[2,1,40] ( 0 2 ) F -
aten::sum.dim_IntList bf16[2,3,4,5] ( 0 1 ) F -
aten::sum.dim_IntList bf16[2,3,4,5] ( 0 2 ) T :f32
aten::sum.dim_IntList bf16[2,3,4,5] ( 0 2 3 ) T -
aten::sum.dim_IntList bf16[2,3,4,5] ( 1 3 ) F -
aten::unflatten_dense_tensors f32[27] ( f32[4,5] f32[7] )
aten::unsafe_split_with_sizes.out f32[10] ( 4 6 ) 0 ( f32[0] f32[0] )
aten::split_with_sizes_copy.out f32[10] ( 4 6 ) 0 ( f32[0] f32[0] )
aten::fake_quantize_per_tensor_affine_cachemask f32[4,5] 0.1 0 0 255
aten::fake_quantize_per_channel_affine f32[4,5] f32[4] i32[4]{0,0,0,0} 0 0 255
aten::fake_quantize_per_channel_affine_cachemask f32[4,5] f32[4] i32[4]{0,0,0,0} 0 0 255
aten::fake_quantize_per_tensor_affine.tensor_qparams f32[4,5] f32[1] i32[1]{0} 0 255
aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams f32[4,5] f32[1] i32[1]{0} i64[1]{1} 0 255
aten::_fake_quantize_learnable_per_tensor_affine f32[4,5] f32[1] f32[1] 0 255 1.0
aten::_fake_quantize_learnable_per_channel_affine f32[4,5] f32[4] f32[4] 0 0 255 1.0
aten::_fake_quantize_learnable_per_tensor_affine_backward f32[4,5] f32[4,5] f32[1] f32[1] 0 255 1.0
aten::_fake_quantize_learnable_per_channel_affine_backward f32[4,5] f32[4,5] f32[4] f32[4] 0 0 255 1.0
aten::_fused_moving_avg_obs_fq_helper f32[4,5] i64[1]{1} i64[1]{1} f32[1] f32[1] f32[1] i32[1]{0} 0.01 0 255 -1 F F
aten::fused_moving_avg_obs_fake_quant f32[4,5] i64[1]{1} i64[1]{1} f32[1] f32[1] f32[1] i32[1]{0} 0.01 0 255 -1 F F
aten::quantile f32[4,50] f32[3] 1 F "linear
aten::nanquantile f32[4,50] f32[3] 1 F "linear
aten::_batch_norm_impl_index_backward 0 f32[4,5,6] f32[4,5,6] f32[5] f32[5] f32[5] f32[5] f32[5] T 1e-05 ( T T T ) u8[0]
aten::_convert_weight_to_int4pack_for_cpu i32[16,64]%0:15 2
"""


def schema_of(name):
    base, _, overload = name.partition(".")
    return torch._C._get_schema(base, overload)


def operators():
    keys = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd")
    return [name for name in sorted(torch._C._dispatch_get_all_op_names()) if name.startswith("aten::") and
            any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)]


# --- calls that are recorded ------------------------------------------------------------------------------------------------------

def texts_of(schema, values):
    seen, texts = {}, []

    def append(value, kind, index):
        if isinstance(value, torch.Tensor):
            if id(value) in seen:
                texts.append(f"={seen[id(value)]}")
                return
            if index >= 0:
                seen[id(value)] = index
            texts.append(opinfo.tensor_text(value) + opinfo.values_text(value))
        elif value is None or isinstance(value, torch.Generator):
            texts.append("-")
        elif isinstance(value, (list, tuple)):
            texts.append("(")
            for element in value:
                append(element, kind, -1)
            texts.append(")")
        elif isinstance(value, torch.device) and value.type == "cpu":
            texts.append(":cpu")
        elif isinstance(value, str) and value != "" and " " not in value:
            texts.append('"' + value)
        elif isinstance(value, (bool, int, float, complex)):
            names = {"ScalarType": TYPES, "Layout": {0: "strided"}, "MemoryFormat": FORMATS}
            known = next((names[one] for one in names if one in kind), None)
            if known is not None and value not in known:
                raise opinfo.Unwritable
            texts.append(opinfo.number(value) if known is None else ":" + known[value])
        else:
            raise opinfo.Unwritable

    for index, (argument, value) in enumerate(zip(schema.arguments, values)):
        append(value, str(argument.real_type), index)
    return " ".join(texts)


def record(wanted):
    calls = collections.defaultdict(list)

    def note(name, values):
        if name in wanted and len(calls[name]) < RECORDED:
            try:
                text = texts_of(schema_of(name), values)
                if not re.search(r"\[[^]]*\b0\b[^]]*\]", text) and text not in calls[name]:  # nothing is learnt from empty ones
                    calls[name].append(text)
            except opinfo.Unwritable:
                pass

    def attempt(run, *arguments):
        signal.alarm(20)
        try:
            opinfo.backward(run(*arguments), None)
        except Exception:  # samples that one build of PyTorch refuses
            pass
        finally:
            signal.alarm(0)

    # RecordFunction has a field more without NDEBUG, which the library has not.
    observer = torch.utils.cpp_extension.load_inline("observer", OBSERVER, functions=["start", "stop"], extra_cflags=["-DNDEBUG"])
    observer.start(note)
    for entry in invocations.op_db:
        for dtype in (torch.float32, torch.int64, torch.bool):
            if dtype not in entry.supported_dtypes("cpu"):
                continue
            for gradient in {False, entry.supports_autograd and dtype is torch.float32}:
                try:
                    samples = [one for _, one in zip(range(6), entry.sample_inputs("cpu", dtype, requires_grad=gradient))]
                except Exception:
                    continue
                for one in samples:
                    attempt(entry, one.input, *one.args)
                    attempt(lambda: entry(one.input, *one.args, **one.kwargs))
                    if gradient:
                        continue
                    for other in (entry, *entry.aliases):
                        for variant in (other.op, other.method_variant, other.inplace_variant):
                            attempt(lambda: variant(one.input.clone(), *one.args, **one.kwargs))
    lists = [getattr(invocations, name) for name in dir(invocations) if re.fullmatch("foreach_.*_op_db", name)]
    for entry in (one for each in lists for one in each):
        for one in entry.sample_inputs("cpu", torch.float32, num_input_tensors=[3], allow_higher_dtype_scalars=False):
            options = {name: value for name, value in one.kwargs.items() if name in ("alpha", "value", "scalars")}
            for variant in filter(None, (entry.method_variant, entry.inplace_variant)):
                attempt(lambda: variant([tensor.clone() for tensor in one.input], *one.args, **options))
    for entry in module_db:
        for one in entry.module_inputs_func(entry, device="cpu", dtype=torch.float32, requires_grad=True, training=True):
            attempt(lambda: entry.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs)(
                *one.forward_input.args, **one.forward_input.kwargs))
    observer.stop()
    return calls


# --- calls that are made ----------------------------------------------------------------------------------------------------------

def split(line):
    """The texts of a call's arguments."""
    arguments, depth = [], 0
    for word in line.split():
        depth -= word == ")"
        if depth > 0 or word == ")":
            arguments[-1] += " " + word
        else:
            arguments.append(word)
        depth += word == "("
    return arguments


def value_of(text, kind, so_far):
    if text.startswith("( ") or text == "( )":
        return [value_of(one, kind, so_far) for one in split(text[2:-2])]
    if "[" in text and text[0] != '"':
        dtype, sizes, strides, offset, values, bounds = re.fullmatch(
            r"(\w+)\[([^]]*)\](?:/([-\d,]+))?(?:\+(\d+))?(?:\{([^}]*)\})?(?:%(-?\d+:-?\d+))?", text).groups()
        sizes = [int(one) for one in sizes.split(",") if one]
        dtype = DTYPES[dtype]
        if values:
            words = {"T": 1, "F": 0}
            tensor = torch.tensor([words[one] if one in words else int(one) for one in values.split(",")]).reshape(sizes).to(dtype)
        elif bounds:
            least, most = map(int, bounds.split(":"))
            tensor = torch.arange(max(1, torch.Size(sizes).numel())).mul(7919).remainder(most - least + 1).add(least)
            tensor = tensor[:torch.Size(sizes).numel()].reshape(sizes).to(dtype)
        else:
            tensor = torch.arange(torch.Size(sizes).numel()).mul(0.61803398875).frac().mul(0.98).add(0.01).reshape(sizes).to(dtype)
        if strides:
            strides = [int(one) for one in strides.split(",")]
            result = torch.empty_strided(sizes, strides, dtype=dtype)
            tensor = result if 0 in strides else result.copy_(tensor)
        return tensor
    if text[0] == "=":
        return so_far[int(text[1:])]
    if text[0] == '"':
        return text[1:]
    if text[0] == ":":
        named = {"cpu": torch.device("cpu"), "strided": torch.strided} | {name: one for one, name in opinfo.FORMATS.items()}
        return named.get(text[1:], DTYPES.get(text[1:]))
    if text in ("-", "T", "F"):
        return {"-": None, "T": True, "F": False}[text]
    if text[0] == "c":
        return complex(*map(float, text[1:].split(",")))
    return float(text) if re.search("[.einf]", text) else int(text)


def is_taken(name, texts):
    schema = schema_of(name)
    base, _, overload = name.removeprefix("aten::").partition(".")
    values = []
    for argument, text in zip(schema.arguments, texts):
        values.append(value_of(text, str(argument.real_type), values))
    positional = [one for one, argument in zip(values, schema.arguments) if not argument.kwarg_only]
    named = {argument.name: one for one, argument in zip(values, schema.arguments) if argument.kwarg_only}
    try:
        with torch.no_grad():
            getattr(getattr(torch.ops.aten, base), overload or "default")(*positional, **named)
        return True
    except Exception:
        return False


GUESSES = {"Tensor": "f32[4,4]", "number": "2", "int": "1", "float": "0.5", "bool": "F", "str": '"mean', "Device": ":cpu"}


def guess(argument):
    kind = str(argument.real_type)
    if argument.has_default_value() and not isinstance(argument.default_value, str):
        default = argument.default_value
        if default is None:
            return "-"
        names = {"ScalarType": TYPES, "MemoryFormat": FORMATS}
        known = next((names[one] for one in names if one in kind), None)
        if known is not None:
            return ":" + known[default]
        if isinstance(default, (list, tuple)):
            return "( " + "".join(opinfo.number(one) + " " for one in default) + ")"
        if isinstance(default, (bool, int, float)):
            return opinfo.number(default)
    if kind.startswith("Optional"):
        return "-"
    if kind.startswith("List"):
        return {"List[Tensor]": "( f32[4,4] f32[4,4] )", "List[bool]": "( T T T )"}.get(kind, "( 1 )")
    return GUESSES.get(kind, ":f32")


def stem(name):
    return name.removeprefix("aten::").split(".")[0].strip("_").replace("_copy", "")


def types_of_results(count):
    """Types that tensors which are written may have."""
    for one in ("f32", "i64", "b8", "c64"):
        yield [one] * count
    if count > 1:
        for last in ("i64", "i32", "b8"):
            for others in range(1, count):
                yield ["f32"] * others + [last] * (count - others)


def filled(arguments, given, results):
    texts = []
    for one in arguments:
        if one.is_out and str(one.real_type) == "List[Tensor]":  # as many as there are in the first list
            first = next((text for text in texts if text.startswith("( ") and "[" in text), "( f32[0] f32[0] )")
            texts.append("( " + f"{results.pop(0)}[0] " * len(split(first[2:-2])) + ")")
        elif one.is_out:
            texts.append(f"{results.pop(0)}[0]")
        else:
            text = given.get(one.name, "=")
            texts.append(guess(one) if text.startswith("=") else text)
    return texts


def candidates(name, schema, known):
    """Arguments to try, those of the operator most alike first."""
    arguments = schema.arguments
    wanted = {(one.name, str(one.real_type)) for one in arguments if not one.is_out}
    ranked = []
    for other, (signature, lines) in known.items():
        alike = len(wanted & signature)
        if wanted and alike == 0:
            continue
        ranked.append((stem(other) == stem(name), alike - 0.5 * len(signature - wanted), stem(name) in other, other))
    ranked.sort(reverse=True)
    outs = list(types_of_results(sum(one.is_out for one in arguments)))
    for *_, other in ranked[:TRIALS]:
        for line in known[other][1][:6]:
            given = dict(zip((one.name for one in schema_of(other).arguments), split(line)))
            for out in outs:
                yield filled(arguments, given, list(out))
    for out in outs:
        yield filled(arguments, {}, list(out))


def make(names, known, results):
    """In a process of its own: an operator may crash on what it is given."""
    for name in names:
        results.put((name, None))
        for texts in candidates(name, schema_of(name), known):
            signal.alarm(5)
            try:
                is_good = is_taken(name, texts)
            except Exception:
                is_good = False
            finally:
                signal.alarm(0)
            if is_good:
                results.put((name, " ".join(texts)))
                break


def main():
    signal.signal(signal.SIGALRM, opinfo.alarm)
    known_lines = collections.defaultdict(list)
    for line in (FOLDER / "calls.txt").read_text().splitlines():
        name, _, texts = line.partition(" ")
        known_lines[name].append(texts)
    wanted = [name for name in operators() if name not in known_lines and not REFUSED.match(name)]
    calls = {name: texts for name, texts in record(set(wanted)).items() if texts}
    for line in WRITTEN.strip().splitlines():
        name, _, texts = line.partition(" ")
        calls.setdefault(name, [texts])
    print("recorded", len(calls), "of", len(wanted), file=sys.stderr)
    known = {}
    for name, lines in (known_lines | calls).items():
        usable = [one for one in lines if re.search(r"f32\[", one) and not re.search(r"\[[^]]*\b0\b[^]]*\]", one)] or lines
        usable.sort(key=lambda one: "/" in one)
        known[name] = ({(one.name, str(one.real_type)) for one in schema_of(name).arguments}, usable)
    left = [name for name in wanted if name not in calls]
    while left:
        results = multiprocessing.SimpleQueue()  # what was put is there, though the process crashes
        worker = multiprocessing.Process(target=make, args=(left, known, results))
        worker.start()
        last = None
        while worker.is_alive() or not results.empty():
            if results.empty():
                time.sleep(0.05)
                continue
            last, texts = results.get()
            if texts is not None:
                calls[last] = [texts]
        left = left[left.index(last) + 1:] if worker.exitcode != 0 else []
    for name in sorted(calls):
        for texts in calls[name]:
            print(f"{name} {texts}".rstrip())
    print("no call of", " ".join(name for name in wanted if name not in calls), file=sys.stderr)


if __name__ == "__main__":
    main()
