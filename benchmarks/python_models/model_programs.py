"""Programs that use models of public packages: random weights made from a configuration, random inputs, nothing downloaded.

The sizes are reduced, so that two steps take seconds on one core. A program is a function that imports what it needs and returns what
is measured: a function of the device.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch

STEPS = 2

Run = Callable[[str], object]


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    #: Distributions that it needs beside torch.
    packages: tuple[str, ...]
    prepare: Callable[[], Run]


PROGRAMS: dict[str, Program] = {}


def program(name: str, *packages: str) -> Callable[[Callable[[], Run]], Callable[[], Run]]:
    def register(prepare: Callable[[], Run]) -> Callable[[], Run]:
        PROGRAMS[name] = Program(name, packages, prepare)
        return prepare

    return register


def train(model: Any, device: str, loss_of: Callable[[Any], Any]) -> None:
    model.to(device).train()
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4)
    for _ in range(STEPS):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tokens(device: str, batch: int = 2, length: int = 128, vocabulary: int = 4096) -> torch.Tensor:
    return torch.randint(vocabulary, (batch, length), device=device)


def language_model(make: Callable[[], Any], **shape: int) -> Run:
    """Trains a model of transformers on the next token."""

    def run(device: str) -> None:
        def loss_of(model: Any) -> Any:
            words = tokens(device, **shape)
            return model(input_ids=words, labels=words).loss

        train(make(), device, loss_of)

    return run


# --- torch


@program("torch: transformer encoder")
def encoder() -> Run:
    def run(device: str) -> None:
        layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        train(model, device, lambda model: model(torch.randn(8, 96, 128, device=device)).square().mean())

    return run


@program("torch: convolutions")
def convolutions() -> Run:
    def run(device: str) -> None:
        layers: list[torch.nn.Module] = []
        for before, after in ((3, 32), (32, 64), (64, 128)):
            layers += [torch.nn.Conv2d(before, after, 3, stride=2, padding=1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 100))

        def loss_of(model: Any) -> Any:
            images, labels = torch.randn(8, 3, 64, 64, device=device), torch.randint(100, (8,), device=device)
            return torch.nn.functional.cross_entropy(model(images), labels)

        train(model, device, loss_of)

    return run


# --- transformers


#: Of the decoders that are like Llama.
DECODER = dict(
    vocab_size=4096, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
    max_position_embeddings=512,
)


@program("transformers: GPT-2", "transformers")
def gpt2() -> Run:
    from transformers import GPT2Config, GPT2LMHeadModel

    return language_model(lambda: GPT2LMHeadModel(GPT2Config(vocab_size=4096, n_embd=256, n_layer=4, n_head=8, n_positions=256)))


@program("transformers: Llama", "transformers")
def llama() -> Run:
    from transformers import LlamaConfig, LlamaForCausalLM

    return language_model(lambda: LlamaForCausalLM(LlamaConfig(**DECODER)))


@program("transformers: Mistral", "transformers")
def mistral() -> Run:
    from transformers import MistralConfig, MistralForCausalLM

    return language_model(lambda: MistralForCausalLM(MistralConfig(**DECODER, sliding_window=64)))


@program("transformers: Mixtral", "transformers")
def mixtral() -> Run:
    from transformers import MixtralConfig, MixtralForCausalLM

    return language_model(lambda: MixtralForCausalLM(MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)))


@program("transformers: Qwen3", "transformers")
def qwen3() -> Run:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return language_model(lambda: Qwen3ForCausalLM(Qwen3Config(**DECODER, head_dim=32)))


@program("transformers: DeepSeek-V3 (MLA), dense", "transformers")
def deepseek() -> Run:
    return language_model(lambda: _deepseek(first_k_dense_replace=4))


@program("transformers: DeepSeek-V3 (MLA), experts", "transformers")
def deepseek_experts() -> Run:
    return language_model(lambda: _deepseek(first_k_dense_replace=1))


def _deepseek(**options: int) -> Any:
    """Attention with compressed keys and values; feed-forward layers of experts from `first_k_dense_replace` on."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    shape = {**DECODER, "num_key_value_heads": 8}
    compressed = dict(q_lora_rank=96, kv_lora_rank=64, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32)
    experts = dict(moe_intermediate_size=128, n_routed_experts=8, num_experts_per_tok=2, n_group=2, topk_group=1, n_shared_experts=1)
    return DeepseekV3ForCausalLM(DeepseekV3Config(**shape, **compressed, **experts, **options))


@program("transformers: BERT, masked words", "transformers")
def bert() -> Run:
    from transformers import BertConfig, BertForMaskedLM

    sizes = dict(vocab_size=4096, hidden_size=256, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1024)
    return language_model(lambda: BertForMaskedLM(BertConfig(**sizes)))


@program("transformers: T5", "transformers")
def t5() -> Run:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = dict(vocab_size=4096, d_model=256, d_kv=32, d_ff=1024, num_layers=3, num_heads=8, decoder_start_token_id=0)
    return language_model(lambda: T5ForConditionalGeneration(T5Config(**sizes)))


@program("transformers: ViT", "transformers")
def vit() -> Run:
    from transformers import ViTConfig, ViTForImageClassification

    def run(device: str) -> None:
        sizes = dict(hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768, image_size=112, patch_size=16)

        def loss_of(model: Any) -> Any:
            images, labels = torch.randn(8, 3, 112, 112, device=device), torch.randint(100, (8,), device=device)
            return model(pixel_values=images, labels=labels).loss

        train(ViTForImageClassification(ViTConfig(**sizes, num_labels=100)), device, loss_of)

    return run


@program("transformers: Mamba", "transformers")
def mamba() -> Run:
    from transformers import MambaConfig, MambaForCausalLM

    sizes = dict(vocab_size=4096, hidden_size=192, state_size=8, num_hidden_layers=3)
    return language_model(lambda: MambaForCausalLM(MambaConfig(**sizes)), batch=2, length=64)


@program("transformers: Whisper", "transformers")
def whisper() -> Run:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    def run(device: str) -> None:
        config = WhisperConfig(
            vocab_size=4096, d_model=192, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
            encoder_ffn_dim=768, decoder_ffn_dim=768, max_source_positions=200, max_target_positions=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
        )

        def loss_of(model: Any) -> Any:
            sound = torch.randn(4, config.num_mel_bins, 400, device=device)
            return model(input_features=sound, labels=tokens(device, 4, 48)).loss

        train(WhisperForConditionalGeneration(config), device, loss_of)

    return run


@program("transformers: CLIP", "transformers")
def clip() -> Run:
    from transformers import CLIPConfig, CLIPModel

    def run(device: str) -> None:
        sizes = dict(hidden_size=192, intermediate_size=768, num_hidden_layers=3, num_attention_heads=6)
        text = dict(**sizes, vocab_size=4096, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=4095)
        vision = dict(**sizes, image_size=112, patch_size=16)
        model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=128))

        def loss_of(model: Any) -> Any:
            images = torch.randn(8, 3, 112, 112, device=device)
            return model(input_ids=tokens(device, 8, 32), pixel_values=images, return_loss=True).loss

        train(model, device, loss_of)

    return run


@program("transformers: GPT-2, generate() with a cache", "transformers")
def gpt2_generates() -> Run:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = dict(vocab_size=4096, n_embd=256, n_layer=4, n_head=8, n_positions=256)
    return lambda device: _generate(GPT2LMHeadModel(GPT2Config(**sizes)), device)


@program("transformers: Llama, generate() with a cache", "transformers")
def llama_generates() -> Run:
    from transformers import LlamaConfig, LlamaForCausalLM

    return lambda device: _generate(LlamaForCausalLM(LlamaConfig(**DECODER)), device)


def _generate(model: Any, device: str) -> None:
    """As many tokens as are allowed: no token ends the text, which a simulation would not know."""
    model.to(device).eval()
    model.generation_config.eos_token_id = None
    words = tokens(device, 2, 64)
    mask = torch.ones_like(words)
    made = model.generate(words, attention_mask=mask, max_new_tokens=32, do_sample=False, use_cache=True, pad_token_id=0)
    assert made.shape == (2, 96)


# --- what trains models of transformers


class _RandomText(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = torch.randint(4096, (128,))
        return {"input_ids": words, "labels": words}


@program("transformers: Trainer, GPT-2", "transformers", "accelerate")
def trainer() -> Run:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    def run(device: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder, per_device_train_batch_size=4, max_steps=STEPS, logging_steps=1, save_strategy="no", report_to="none",
                use_cpu=device == "cpu", disable_tqdm=True, dataloader_pin_memory=False,
            )
            model = GPT2LMHeadModel(GPT2Config(vocab_size=4096, n_embd=256, n_layer=4, n_head=8, n_positions=256))
            Trainer(model=model, args=arguments, train_dataset=_RandomText()).train()

    return run


@program("accelerate: a loop, Llama", "transformers", "accelerate")
def accelerated() -> Run:
    from accelerate import Accelerator
    from transformers import LlamaConfig, LlamaForCausalLM

    def run(device: str) -> None:
        accelerator = Accelerator(cpu=device == "cpu")
        model = LlamaForCausalLM(LlamaConfig(**DECODER))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        loader = torch.utils.data.DataLoader(_RandomText(), batch_size=4)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        assert next(model.parameters()).device.type == device
        model.train()
        for batch in loader:
            loss = model(**batch).loss
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return run


@program("peft: LoRA, Llama", "transformers", "peft")
def lora() -> Run:
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    options = dict(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=targets, task_type="CAUSAL_LM")
    return language_model(lambda: get_peft_model(LlamaForCausalLM(LlamaConfig(**DECODER)), LoraConfig(**options)))


# --- images


@program("diffusers: UNet2DModel", "diffusers")
def unet() -> Run:
    from diffusers import UNet2DModel

    def run(device: str) -> None:
        model = UNet2DModel(
            sample_size=32, block_out_channels=(32, 64, 64), norm_num_groups=8, attention_head_dim=8, layers_per_block=1,
            down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        )

        def loss_of(model: Any) -> Any:
            noise, times = torch.randn(4, 3, 32, 32, device=device), torch.randint(1000, (4,), device=device)
            return torch.nn.functional.mse_loss(model(torch.randn_like(noise), times).sample, noise)

        train(model, device, loss_of)

    return run


@program("diffusers: UNet2DConditionModel", "diffusers")
def conditional_unet() -> Run:
    from diffusers import UNet2DConditionModel

    def run(device: str) -> None:
        model = UNet2DConditionModel(
            sample_size=32, block_out_channels=(32, 64), norm_num_groups=8, attention_head_dim=8, layers_per_block=1, cross_attention_dim=64,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        )

        def loss_of(model: Any) -> Any:
            noise, times = torch.randn(4, 4, 32, 32, device=device), torch.randint(1000, (4,), device=device)
            text = torch.randn(4, 16, 64, device=device)
            return torch.nn.functional.mse_loss(model(torch.randn_like(noise), times, text).sample, noise)

        train(model, device, loss_of)

    return run


def _timm(name: str, size: int, batch: int, **options: Any) -> Run:
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "accuracy"))
    import torchvision_stand_in

    torchvision_stand_in.install()
    import timm

    def run(device: str) -> None:
        def loss_of(model: Any) -> Any:
            images, labels = torch.randn(batch, 3, size, size, device=device), torch.randint(100, (batch,), device=device)
            return torch.nn.functional.cross_entropy(model(images), labels)

        train(timm.create_model(name, num_classes=100, **options), device, loss_of)

    return run


@program("timm: ResNet", "timm")
def resnet() -> Run:
    return _timm("resnet50", 64, 4)


@program("timm: ConvNeXt", "timm")
def convnext() -> Run:
    return _timm("convnext_atto", 64, 4)


@program("timm: Swin", "timm")
def swin() -> Run:
    return _timm("swin_tiny_patch4_window7_224", 112, 2, img_size=112, depths=(2, 2, 2, 2), embed_dim=48)
