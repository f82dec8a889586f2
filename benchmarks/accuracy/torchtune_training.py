"""Steps of torchtune's recipes full_finetune_single_device and lora_finetune_single_device, for Llama 3.2 3B in bfloat16."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

#: From the second on, the optimizer's state is there.
STEPS = 2


@dataclasses.dataclass(frozen=True)
class Options:
    """Of the recipe, as in its configuration."""

    lora: bool = False
    chunked_loss: bool = False
    checkpointing: bool = False
    optimizer_in_backward: bool = False
    offloading: bool = False
    #: Of torch.compile, what it makes of the loss. The blocks are run as they are.
    compiled_loss: bool = False


class _CompiledCrossEntropy(torch.autograd.Function):
    """Cross-entropy in single precision as torch.compile fuses it: neither the logits in single precision nor their logarithms are made;
    the logits that came, and a number for each of their rows, are kept for the backward pass, which makes gradients of the logits' type."""

    @staticmethod
    def forward(context: Any, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        sums = torch.empty(logits.shape[0], dtype=torch.float32, device=logits.device)
        context.save_for_backward(logits, labels, sums)
        return torch.empty((), dtype=torch.float32, device=logits.device)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        logits, _, _ = context.saved_tensors
        return torch.empty_like(logits), None


def _compiled_cross_entropy(logits: torch.Tensor, labels: torch.Tensor, normalize: bool = True) -> torch.Tensor:
    made: torch.Tensor = _CompiledCrossEntropy.apply(logits, labels)
    return made


def _model(options: Options) -> Any:
    from torchtune import modules, training
    from torchtune.models.llama3_2 import llama3_2_3b, lora_llama3_2_3b
    from torchtune.modules.peft import get_adapter_params, set_trainable_params

    with training.set_default_dtype(torch.bfloat16), torch.device("cuda"):
        if options.lora:  # as recipes/configs/llama3_2/3B_lora_single_device.yaml
            model = lora_llama3_2_3b(["q_proj", "v_proj", "output_proj"], apply_lora_to_mlp=True, lora_rank=64, lora_alpha=128)
            set_trainable_params(model, get_adapter_params(model))
        else:
            model = llama3_2_3b()
    if options.checkpointing:
        training.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerSelfAttentionLayer})
    return model


def _update_in_backward(parameters: list[torch.nn.Parameter]) -> None:
    from torchtune import training

    optimizers = {each: torch.optim.AdamW([each], lr=2e-5, fused=True) for each in parameters}

    class Wrapped(torch.nn.Module):
        def parameters(self, recurse: bool = True) -> Any:
            return iter(parameters)

    training.register_optim_in_bwd_hooks(model=Wrapped(), optim_dict=optimizers)


def train(options: Options, batch: int, sequence: int) -> None:
    """Trains for some steps on packed sequences. The recipe gives attention a mask of blocks, for which it compiles a kernel that makes no
    probabilities; causal attention without a mask, as here, makes none either, and keeps the same."""
    from torchtune import training
    from torchtune.modules.loss import CEWithChunkedOutputLoss

    model = _model(options)
    loss_function: Any = CEWithChunkedOutputLoss() if options.chunked_loss else torch.nn.CrossEntropyLoss()
    if options.chunked_loss:
        model.set_num_output_chunks(loss_function.num_output_chunks)
    if options.compiled_loss:
        loss_function.compute_cross_entropy = _compiled_cross_entropy
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = None
    if options.optimizer_in_backward:
        _update_in_backward(trained)
    else:
        optimizer = torch.optim.AdamW(trained, lr=2e-5, fused=True)
    activations = training.get_act_offloading_ctx_manager(model, options.offloading)
    for _ in range(STEPS):
        tokens, labels, positions = torch.zeros(3, batch, sequence, dtype=torch.long, device="cuda").unbind()
        count = (labels != loss_function.ignore_index).sum()
        with activations:
            logits = model(tokens=tokens, input_pos=positions)
        if not options.chunked_loss:
            labels, logits = labels.reshape(-1), logits.reshape(-1, logits.size(-1))
        loss = loss_function(logits, labels) * count
        del logits
        loss.backward()
        if optimizer is not None:
            training.scale_grads(model, 1 / count)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
