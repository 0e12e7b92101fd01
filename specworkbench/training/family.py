"""The three models: their shapes, their making, their export as ordinary Hugging Face folders."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specworkbench.training.tokenizer import CONTEXT, END_OF_TEXT_ID

__all__ = ["make_config", "make_model", "count_parameters", "export"]

VOCABULARY = 4096
SHAPES = {  # about 6.6 million, 0.63 million and 0.16 million parameters
    "target": dict(
        hidden_size=256, num_hidden_layers=8, intermediate_size=640, num_attention_heads=4, num_key_value_heads=2
    ),
    "draft-m": dict(
        hidden_size=96, num_hidden_layers=2, intermediate_size=288, num_attention_heads=3, num_key_value_heads=3
    ),
    "draft-s": dict(
        hidden_size=36, num_hidden_layers=1, intermediate_size=96, num_attention_heads=2, num_key_value_heads=2
    ),
}


def make_config(vocab_size: int = VOCABULARY, **shape: int) -> LlamaConfig:
    """Llama with tied embeddings; one token is begin, end and padding.

    >>> make_config(512, hidden_size=32, num_hidden_layers=2).vocab_size
    512
    """
    return LlamaConfig(
        vocab_size=vocab_size, max_position_embeddings=CONTEXT, tie_word_embeddings=True, rms_norm_eps=1e-6,
        bos_token_id=END_OF_TEXT_ID, eos_token_id=END_OF_TEXT_ID, pad_token_id=END_OF_TEXT_ID, **shape,
    )  # fmt: skip


def make_model(config: LlamaConfig, seed: int = 0) -> LlamaForCausalLM:
    """A fresh float32 model; projections that write into the residual stream start at zero.

    >>> shape = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
    >>> make_model(make_config(300, **shape)).dtype
    torch.float32
    """
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config).float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
    return model


def count_parameters(model: torch.nn.Module) -> int:
    """Parameters, the tied embedding once.

    >>> count_parameters(torch.nn.Linear(3, 4))
    16
    """
    return sum(weight.numel() for weight in model.parameters())


def export(model: LlamaForCausalLM, tokenizer, folder: Path) -> None:
    """Write config, float16 weights and tokenizer; no generation settings, so that none are applied unasked.

    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.training.tokenizer import train_tokenizer
    >>> shape = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
    >>> with TemporaryDirectory() as folder:
    ...     export(make_model(make_config(300, **shape)), train_tokenizer(["a b a b"], 300), Path(folder))
    ...     (Path(folder) / "model.safetensors").is_file()
    True
    """
    folder.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config).to(torch.float16)
    half.load_state_dict({name: value.to(torch.float16) for name, value in model.state_dict().items()})
    half.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)  # written for the owner only; a wheel is for everyone
    config = json.loads((folder / "config.json").read_text())
    if config.get("dtype") != "float16":
        raise ValueError(f"{folder}/config.json says dtype {config.get('dtype')}, not float16; the export is wrong.")
