"""What `estimate --recompute=selective` says a layer keeps, beside PyTorch's selective checkpointing of that layer."""

from __future__ import annotations

import json
import pathlib
from collections import defaultdict
from typing import Any

import memprof
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real device is present")

WIDTH, HEADS, GROUPS, INNER = 256, 8, 2, 704
HEAD = WIDTH // HEADS
#: Flash attention keeps the state of its generator, two numbers and an unused one of eight bytes.
GENERATOR = 24


class Block(nn.Module):
    """Of Llama 3, in torchtitan's order of products."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2))
        self.query, self.key, self.value, self.output, self.gate, self.up, self.down = (
            nn.Linear(inputs, outputs, bias=False)
            for inputs, outputs in (
                (WIDTH, WIDTH),
                (WIDTH, GROUPS * HEAD),
                (WIDTH, GROUPS * HEAD),
                (WIDTH, WIDTH),
                (WIDTH, INNER),
                (WIDTH, INNER),
                (INNER, WIDTH),
            )
        )

    def forward(self, stream: Any) -> Any:
        batch, positions, _ = stream.shape
        normed = self.norms[0](stream)
        query, key, value = (
            product(normed).view(batch, positions, -1, HEAD).transpose(1, 2) for product in (self.query, self.key, self.value)
        )
        key, value = (part.repeat_interleave(HEADS // GROUPS, 1) for part in (key, value))
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.output(attended.transpose(1, 2).reshape(batch, positions, WIDTH))
        normed = self.norms[1](stream)
        return stream + self.down(functional.silu(self.gate(normed)) * self.up(normed))


def selective_contexts() -> Any:
    """Keeps what torchtitan keeps: fused attention, and every second product from the first on."""
    from torch.utils import checkpoint

    aten = torch.ops.aten
    attention = (aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default)
    products: defaultdict[bool, int] = defaultdict(int)

    def policy(context: Any, called: Any, *_: Any, **__: Any) -> Any:
        if called == aten.mm.default:
            products[context.is_recompute] += 1
        is_kept = called in attention or (called == aten.mm.default and products[context.is_recompute] % 2 == 1)
        return checkpoint.CheckpointPolicy.MUST_SAVE if is_kept else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    return checkpoint.create_selective_checkpoint_contexts(policy)


def kept_by_torch(layers: int, batch: int, positions: int) -> int:
    from torch.utils.checkpoint import checkpoint

    with memprof.no_dispatch(device="gpu-80gb") as capture:
        blocks = nn.ModuleList(Block() for _ in range(layers)).to("cuda", torch.bfloat16)
        stream = torch.randn(batch, positions, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        memprof.snapshot("MODEL_CREATION")
        for block in blocks:
            stream = checkpoint(block, stream, use_reentrant=False, context_fn=selective_contexts)
        memprof.snapshot("FORWARD_PASS")
        stream.sum().backward()
    created, forward = capture.profile.space("cuda:0").segments[:2]
    return forward.cumulative_current - created.cumulative_current


def kept_by_estimate(folder: pathlib.Path, layers: int, batch: int, positions: int) -> int:
    config = folder / f"config_{layers}.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": WIDTH,
                "intermediate_size": INNER,
                "num_hidden_layers": layers,
                "num_attention_heads": HEADS,
                "num_key_value_heads": GROUPS,
                "vocab_size": 32,
                "max_position_embeddings": 4096,
                "tie_word_embeddings": False,
            }
        ),
        encoding="utf-8",
    )
    setup = memprof.TrainingSetup(
        batch_size=batch,
        seq_len=positions,
        type="bf16",
        attention="fused",
        recompute="selective",
        layers=memprof.LayerImplementation(transposes_copy=False, works_in_place=False),
    )
    space = memprof.estimate_step(config, setup).profile.space("cpu")
    optimizer, forward = space.segments[1:3]
    return forward.cumulative_current - optimizer.cumulative_current


@pytest.mark.parametrize(("batch", "positions"), [(2, 512), (1, 1024), (3, 256)])
def test_an_estimated_layer_keeps_what_torch_keeps(tmp_path: pathlib.Path, batch: int, positions: int) -> None:
    by_torch = kept_by_torch(3, batch, positions) - kept_by_torch(2, batch, positions)
    estimated = kept_by_estimate(tmp_path, 3, batch, positions) - kept_by_estimate(tmp_path, 2, batch, positions)
    assert by_torch - estimated == GENERATOR
