"""Programs whose peaks on a GPU are recorded and compared with the simulation's: those of benchmarks/python_models, and larger ones."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import torch

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(BENCHMARKS / "python_models"), str(BENCHMARKS / "accuracy")]

import model_programs  # noqa: E402
from model_programs import Program as Program, Run as Run  # noqa: E402

STEPS = 3


def _timm(name: str, batch: int, *, bf16: bool = False, channels_last: bool = False, adamw: bool = False, search: bool = False) -> Run:
    """A model of timm in its own size. With `search`, cuDNN tries its algorithms and takes the fastest (`cudnn.benchmark`)."""
    import torchvision_stand_in

    torchvision_stand_in.install()
    import timm

    def run(device: str) -> None:
        torch.backends.cudnn.benchmark = search
        model = timm.create_model(name).to(device).train()
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        optimizer: torch.optim.Optimizer
        if adamw:
            optimizer = torch.optim.AdamW(model.parameters())
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=2e-5)
        shape = model.default_cfg["input_size"]
        for _ in range(STEPS):
            images = torch.randn(batch, *shape, device=device)
            if channels_last:
                images = images.contiguous(memory_format=torch.channels_last)
            labels = torch.zeros(batch, dtype=torch.long, device=device)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
                output = model(images)
                loss: Any = torch.nn.functional.cross_entropy(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def _gpt2(batch: int, length: int, *, bf16: bool, attention: str) -> Run:
    """GPT-2 with 124M parameters."""
    from transformers import GPT2Config, GPT2LMHeadModel

    def run(device: str) -> None:
        model = GPT2LMHeadModel(GPT2Config(attn_implementation=attention)).to(device).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for _ in range(STEPS):
            words = torch.randint(50257, (batch, length), device=device)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
                loss = model(input_ids=words, labels=words).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def _bf16(model_class: str, config_class: str, batch: int = 2, length: int = 128, **sizes: int) -> Run:
    """A model of transformers whose parameters are bfloat16, too."""
    import transformers

    def run(device: str) -> None:
        model = getattr(transformers, model_class)(getattr(transformers, config_class)(**sizes)).to(device, torch.bfloat16).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for _ in range(STEPS):
            words = torch.randint(4096, (batch, length), device=device)
            loss = model(input_ids=words, labels=words).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def _timm_programs() -> Iterator[Program]:
    def of(name: str, batch: int, title: str = "", **options: bool) -> Program:
        return Program(f"timm {name} b{batch}{title}", ("timm",), lambda: _timm(name, batch, **options))

    models = (
        "resnet50", "vgg16", "convnext_tiny", "vit_base_patch16_224", "efficientnet_b0", "swin_tiny_patch4_window7_224",
        "mobilenetv3_large_100", "densenet121",
    )
    for name in models:
        for batch in (8, 32, 128):
            yield of(name, batch)
    for name in ("resnet50", "vgg16", "efficientnet_b0"):
        yield of(name, 32, " bf16", bf16=True)
        yield of(name, 32, " channels_last", channels_last=True)
        yield of(name, 32, " bf16 channels_last adamw", bf16=True, channels_last=True, adamw=True)
        yield of(name, 32, " benchmark", search=True)


def _gpt2_programs() -> Iterator[Program]:
    def of(batch: int, length: int, dtype: str, attention: str) -> Program:
        title = f"gpt2 b{batch} s{length} {dtype} {attention}"
        return Program(title, ("transformers",), lambda: _gpt2(batch, length, bf16=dtype == "bf16", attention=attention))

    yield of(4, 512, "fp32", "sdpa")
    yield of(8, 1024, "fp32", "sdpa")
    yield of(8, 1024, "bf16", "sdpa")
    yield of(8, 1024, "bf16", "eager")
    yield of(16, 1024, "bf16", "sdpa")


def _bf16_programs() -> Iterator[Program]:
    def of(title: str, name: str, config: str, batch: int = 2, length: int = 128, **sizes: int) -> Program:
        return Program(title, ("transformers",), lambda: _bf16(name, config, batch, length, **sizes))

    small = model_programs.DECODER
    billion = dict(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4,
    )
    t5 = dict(vocab_size=4096, d_model=256, d_kv=32, d_ff=1024, num_layers=3, num_heads=8, decoder_start_token_id=0)
    bert = dict(vocab_size=4096, hidden_size=256, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1024)
    yield of("llama bf16", "LlamaForCausalLM", "LlamaConfig", **small)
    yield of("llama 1b bf16 b2 s2048", "LlamaForCausalLM", "LlamaConfig", 2, 2048, **billion)
    yield of("qwen3 bf16", "Qwen3ForCausalLM", "Qwen3Config", **small, head_dim=32)
    yield of("t5 bf16", "T5ForConditionalGeneration", "T5Config", **t5)
    yield of("bert bf16", "BertForMaskedLM", "BertConfig", **bert)
    yield of("mixtral bf16", "MixtralForCausalLM", "MixtralConfig", **small, num_local_experts=4, num_experts_per_tok=2)


#: By name, in the order in which they run.
PROGRAMS: dict[str, Program] = {
    **model_programs.PROGRAMS,
    **{each.name: each for programs in (_timm_programs, _gpt2_programs, _bf16_programs) for each in programs()},
}


def first_uses(device: str) -> Iterator[str]:
    """Uses one after another what loads a library or kernels into the device's memory, and says what it was."""
    yield "CUDA's initialisation"
    a = torch.randn(1024, 1024, device=device)
    yield "random numbers"
    a @ a
    yield "a product of matrices (cuBLAS)"
    b = a.bfloat16()
    b @ b
    yield "one in bfloat16"
    layer = torch.nn.Linear(1024, 1024, device=device)
    layer(a).sum().backward()
    yield "a linear layer, forward and backward (cuBLASLt)"
    convolution = torch.nn.Conv2d(16, 16, 3, device=device)
    y = convolution(torch.randn(8, 16, 64, 64, device=device))
    yield "a convolution (cuDNN)"
    y.sum().backward()
    yield "its backward pass"
    q = torch.randn(2, 8, 256, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    attended: Any = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    attended.sum().backward()
    yield "attention, forward and backward"
