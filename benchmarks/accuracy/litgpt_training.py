"""Fine-tuning steps as litgpt's scripts make them (litgpt/finetune/{full,lora,adapter,adapter_v2}.py), through the same Fabric."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch

#: Micro-batches whose gradients are accumulated: from the second on, they are there beside the activations. The scripts have more.
MICRO_BATCHES = 2
#: From the second on, the optimizer's state is there.
STEPS = 2


def _model(config: str, script: str, rank: int, parts: str) -> tuple[Any, Any]:
    """The class of the model and its configuration."""
    if script == "lora":
        import litgpt.lora

        everywhere = parts == "all"
        return litgpt.lora.GPT, litgpt.lora.Config.from_name(
            config,
            lora_r=rank,
            lora_alpha=16,
            lora_dropout=0.05,
            lora_query=True,
            lora_key=everywhere,
            lora_value=True,
            lora_projection=everywhere,
            lora_mlp=everywhere,
            lora_head=everywhere,
        )
    if script == "adapter":
        import litgpt.adapter

        return litgpt.adapter.GPT, litgpt.adapter.Config.from_name(config)
    if script == "adapter_v2":
        import litgpt.adapter_v2

        return litgpt.adapter_v2.GPT, litgpt.adapter_v2.Config.from_name(config)
    import litgpt

    return litgpt.GPT, litgpt.Config.from_name(config)


def _freeze(model: Any, script: str) -> None:
    if script == "lora":
        import litgpt.lora

        litgpt.lora.mark_only_lora_as_trainable(model)
    elif script == "adapter":
        import litgpt.adapter

        litgpt.adapter.mark_only_adapter_as_trainable(model)
    elif script == "adapter_v2":
        import litgpt.adapter_v2

        litgpt.adapter_v2.mark_only_adapter_v2_as_trainable(model)


def _validate(model: Any, batch: int, sequence: int) -> None:
    from litgpt.utils import chunked_cross_entropy

    model.eval()
    tokens, targets = torch.zeros(2, batch, sequence, dtype=torch.long, device="cuda")
    with torch.no_grad():
        chunked_cross_entropy(model(tokens)[..., :-1, :], targets[..., 1:], chunk_size=0)
    model.train()


def _micro_batch(fabric: Any, model: Any, batch: int, sequence: int) -> None:
    from litgpt.utils import chunked_cross_entropy

    tokens, targets = torch.zeros(2, batch, sequence, dtype=torch.long, device="cuda")
    logits = model(tokens, lm_head_chunk_size=128)
    logits[-1] = logits[-1][..., :-1, :]
    fabric.backward(chunked_cross_entropy(logits, targets[..., 1:]) / MICRO_BATCHES)


def fine_tune(config: str, script: str, batch: int, sequence: int, rank: int, parts: str, counts: dict[str, int]) -> None:
    """Fine-tunes a model with random weights in bfloat16. `parts` are those with LoRA: queries and values (`qv`) or all linear layers
    (`all`). Writes into `counts` how many parameters there are, and how many are trained, before the first step."""
    import lightning

    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        fabric = lightning.Fabric(accelerator="cuda", devices=1, precision="bf16-true")
        kind, configuration = _model(config, script, rank, parts)
        stack.enter_context(torch.device("cuda"))
        with fabric.init_module(empty_init=False):
            model = kind(configuration)
    _freeze(model, script)
    counts["parameters"] = sum(each.numel() for each in model.parameters())
    counts["trained"] = sum(each.numel() for each in model.parameters() if each.requires_grad)
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=2e-4))
    model.max_seq_length = sequence
    _validate(model, batch, sequence)
    for _ in range(STEPS):
        for _ in range(MICRO_BATCHES):
            _micro_batch(fabric, model, batch, sequence)
        optimizer.step()
        optimizer.zero_grad()
    _validate(model, batch, sequence)
