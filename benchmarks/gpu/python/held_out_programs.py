"""Programs that were measured on a GPU only after the simulation's rules had been written: none of these was made to fit them.

What they allocate also depends on which results are still alive when the next ones are made, so the order of the statements and the
names that keep results are part of the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from gpu_programs import Program, Run

STEPS = 2

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "fused AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adafactor": lambda parameters: torch.optim.Adafactor(parameters),
}


def _autocast(dtype: str) -> torch.autocast:
    """Without a dtype, it does nothing."""
    return torch.autocast("cuda", dtype=getattr(torch, dtype or "bfloat16"), enabled=dtype != "")


# --- models of transformers


def _language_model(
    name: str, *, batch: int = 4, length: int = 256, dtype: str = "", autocast: str = "", optimizer: str = "AdamW",
    checkpoints: bool = False, clip: bool = False, accumulate: int = 1, **sizes: Any,
) -> Run:
    """Training on the next token, or on masked ones. `dtype` is that of the parameters, `accumulate` the backward passes of a step."""
    import transformers

    def run(device: str) -> None:
        config = getattr(transformers, _config_of(name))(**sizes)
        model = getattr(transformers, name)(config).to(device)
        if dtype:
            model = model.to(getattr(torch, dtype))
        model.train()
        if checkpoints:
            model.gradient_checkpointing_enable()
        steps = OPTIMIZERS[optimizer](model.parameters())
        scaler = torch.amp.GradScaler("cuda", enabled=autocast == "float16")
        for _ in range(STEPS):
            for _ in range(accumulate):
                words = torch.randint(config.vocab_size, (batch, length), device=device)
                with _autocast(autocast):
                    loss = model(input_ids=words, labels=words).loss / accumulate
                scaler.scale(loss).backward()
            scaler.unscale_(steps)
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(steps)
            scaler.update()
            steps.zero_grad()

    return run


def _images(name: str, *, batch: int = 8, autocast: str = "", **sizes: Any) -> Run:
    """Training on images of 224 x 224 with two labels."""
    import transformers

    def run(device: str) -> None:
        model = getattr(transformers, name)(getattr(transformers, _config_of(name))(**sizes)).to(device).train()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(STEPS):
            images = torch.randn(batch, 3, 224, 224, device=device)
            labels = torch.randint(2, (batch,), device=device)
            with _autocast(autocast):
                loss = model(pixel_values=images, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def _generation(name: str, *, dtype: str, batch: int, prompt: int, **sizes: Any) -> Run:
    """40 tokens: none ends the text, which a simulation would not know."""
    import transformers

    def run(device: str) -> None:
        model = getattr(transformers, name)(getattr(transformers, _config_of(name))(**sizes)).to(device, getattr(torch, dtype)).eval()
        model.generation_config.eos_token_id = None
        words = torch.randint(8192, (batch, prompt), device=device)
        with torch.inference_mode():
            model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=40, do_sample=False, pad_token_id=0)

    return run


def _config_of(name: str) -> str:
    """The name of the configuration's class."""
    return name.split("For")[0] + "Config"


DECODER = dict(hidden_size=512, intermediate_size=1408, num_hidden_layers=6, num_attention_heads=8, vocab_size=8192)
OPT = dict(
    hidden_size=512, num_hidden_layers=4, ffn_dim=2048, num_attention_heads=8, vocab_size=8192, word_embed_proj_dim=512,
    max_position_embeddings=512,
)
DISTILBERT = dict(dim=512, hidden_dim=2048, n_layers=4, n_heads=8, vocab_size=8192)
BART = dict(
    d_model=256, encoder_layers=3, decoder_layers=3, encoder_ffn_dim=1024, decoder_ffn_dim=1024, encoder_attention_heads=8,
    decoder_attention_heads=8, vocab_size=8192,
)
FALCON = dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, vocab_size=8192)
GPTJ = dict(n_embd=512, n_layer=4, n_head=8, rotary_dim=32, vocab_size=8192, n_positions=512)
BLOOM = dict(hidden_size=512, n_layer=4, n_head=8, vocab_size=8192)
MAMBA2 = dict(hidden_size=256, num_hidden_layers=3, num_heads=8, head_dim=64, vocab_size=8192, state_size=32, n_groups=1, chunk_size=64)
SWIN: dict[str, Any] = dict(embed_dim=48, depths=[2, 2, 2, 2], num_heads=[2, 4, 8, 16])
BEIT = dict(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536)


def _models() -> Iterator[Program]:
    def text(title: str, name: str, **options: Any) -> Program:
        return Program(title, ("transformers",), lambda: _language_model(name, **options))

    def images(title: str, name: str, **options: Any) -> Program:
        return Program(title, ("transformers",), lambda: _images(name, **options))

    yield text("opt fp32", "OPTForCausalLM", **OPT)
    yield text("gpt-neox bf16 autocast", "GPTNeoXForCausalLM", autocast="bfloat16", max_position_embeddings=512, **DECODER)
    phi3 = dict(num_key_value_heads=8, max_position_embeddings=512, pad_token_id=0)
    yield text("phi3 bf16", "Phi3ForCausalLM", dtype="bfloat16", **phi3, **DECODER)
    yield text("gemma2 bf16 autocast", "Gemma2ForCausalLM", autocast="bfloat16", num_key_value_heads=4, head_dim=64, **DECODER)
    yield text("llama fp16 amp clip", "LlamaForCausalLM", autocast="float16", clip=True, num_key_value_heads=8, **DECODER)
    checkpointed = dict(dtype="bfloat16", checkpoints=True, optimizer="fused AdamW", accumulate=3, num_key_value_heads=4)
    yield text("llama ckpt bf16 fused accum", "LlamaForCausalLM", **checkpointed, **DECODER)
    yield text("qwen2 seq 1000 bf16", "Qwen2ForCausalLM", batch=3, length=1000, dtype="bfloat16", num_key_value_heads=2, **DECODER)
    clipped = dict(optimizer="SGD", clip=True, num_key_value_heads=8, sliding_window=None)
    yield text("mistral fp32 sgd clip", "MistralForCausalLM", **clipped, **DECODER)
    yield text("roberta fp32", "RobertaForMaskedLM", length=200, max_position_embeddings=300, **DECODER)
    yield text("distilbert bf16 autocast", "DistilBertForMaskedLM", autocast="bfloat16", **DISTILBERT)
    yield text("albert fp32", "AlbertForMaskedLM", embedding_size=128, **DECODER)
    yield text("deberta fp32", "DebertaV2ForMaskedLM", batch=2, length=128, **DECODER)
    yield text("bart bf16", "BartForConditionalGeneration", dtype="bfloat16", **BART)
    yield text("falcon bf16", "FalconForCausalLM", dtype="bfloat16", **FALCON)
    yield text("gpt-j fp32 adafactor", "GPTJForCausalLM", optimizer="Adafactor", **GPTJ)
    yield text("bloom fp32", "BloomForCausalLM", **BLOOM)
    yield text("mamba2 fp32", "Mamba2ForCausalLM", batch=2, length=128, **MAMBA2)
    yield images("deit fp32", "DeiTForImageClassification")
    yield images("swin bf16 autocast", "SwinForImageClassification", autocast="bfloat16", **SWIN)
    yield images("beit fp32", "BeitForImageClassification", **BEIT)


def _generations() -> Iterator[Program]:
    def of(title: str, name: str, **options: Any) -> Program:
        return Program(title, ("transformers",), lambda: _generation(name, **options))

    yield of("llama generate bf16", "LlamaForCausalLM", dtype="bfloat16", batch=4, prompt=100, num_key_value_heads=4, **DECODER)
    yield of("opt generate fp16", "OPTForCausalLM", dtype="float16", batch=2, prompt=64, **OPT)


# --- models written with torch alone


class _Attention(torch.nn.Module):
    """Causal, of products of matrices and a softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.projections = torch.nn.Linear(width, 3 * width)
        self.output = torch.nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        size = width // self.heads
        query, key, value = self.projections(x).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        weights = query @ key.transpose(-1, -2) * size**-0.5
        weights = weights.masked_fill(torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        weights = weights.softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(batch, length, width))


class _Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention_norm = torch.nn.LayerNorm(width)
        self.attention = _Attention(width, 6)
        self.norm = torch.nn.RMSNorm(width)
        wide = torch.nn.Linear(width, 4 * width)
        self.layers = torch.nn.Sequential(wide, torch.nn.SiLU(), torch.nn.Dropout(0.1), torch.nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.attention_norm(x))
        return x + self.layers(self.norm(x))


def _hand_written(autocast: str = "") -> Run:
    """A language model with tied embeddings, a moving average of its parameters and a measure of its accuracy."""
    width, vocabulary = 384, 8192

    def run(device: str) -> None:
        embedding = torch.nn.Embedding(vocabulary, width)
        blocks = torch.nn.Sequential(*[_Block(width) for _ in range(6)])
        head = torch.nn.Linear(width, vocabulary, bias=False)
        head.weight = embedding.weight
        model = torch.nn.ModuleList([embedding, blocks, head]).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        average = [each.detach().clone() for each in model.parameters()]
        for _ in range(3):
            words = torch.randint(vocabulary, (16, 320), device=device)
            with _autocast(autocast):
                output = head(blocks(embedding(words)))
                loss: Any = torch.nn.functional.cross_entropy(
                    output[:, :-1].flatten(0, 1).float(), words[:, 1:].flatten(), label_smoothing=0.1
                )
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # noqa: F841  (alive until the next)
            optimizer.step()
            torch._foreach_lerp_(average, [each.detach() for each in model.parameters()], 0.01)
            accuracy = (output.argmax(-1)[:, :-1] == words[:, 1:]).float().mean()  # noqa: F841  (as well)

    return run


class _Mixture(torch.nn.Module):
    """Every expert sees everything."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(width, experts)
        self.experts = torch.nn.ModuleList(self._expert(width) for _ in range(experts))

    @staticmethod
    def _expert(width: int) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        weights = self.gate(x).softmax(-1)
        return sum(weights[..., each : each + 1] * expert(x) for each, expert in enumerate(self.experts))


def _mixture(device: str) -> None:
    model = _Mixture(256, 8).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        loss = model(torch.randn(512, 256, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _of_torch_alone() -> Iterator[Program]:
    yield Program("hand-written fp32", (), _hand_written)
    yield Program("hand-written bf16", (), lambda: _hand_written("bfloat16"))
    yield Program("mixture by torch", (), lambda: _mixture)


#: By name, in the order in which they were measured.
HELD_OUT: dict[str, Program] = {each.name: each for programs in (_models, _of_torch_alone, _generations) for each in programs()}
