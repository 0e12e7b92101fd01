"""Small random models with the real code: a few letters of vocabulary, float64, everything through transformers."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specworkbench.engine.models import LanguageModel

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def toy_tokenizer(vocab: int, eos: int | None = None) -> PreTrainedTokenizerFast:
    """One token a letter."""
    words = Tokenizer(models.WordLevel({LETTERS[i]: i for i in range(vocab)}, unk_token=LETTERS[0]))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    words.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token=None if eos is None else LETTERS[eos])


def toy_model(
    vocab: int = 5,
    *,
    seed: int = 0,
    layers: int = 2,
    width: int = 16,
    context: int = 64,
    eos: int | None = None,
    rows: int | None = None,
    sharpness: float = 6.0,
    **config: object,
) -> LanguageModel:
    """A random Llama in float64. `rows` gives the output matrix padding rows; `sharpness` scales the logits."""
    settings = LlamaConfig(
        vocab_size=rows or vocab,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=context,
        eos_token_id=eos,
        bos_token_id=None,
        pad_token_id=None,
        **config,
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = LlamaForCausalLM(settings).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=parameter.shape[-1] ** -0.5)
        model.lm_head.weight.mul_(sharpness / 2)
    torch.random.set_rng_state(state)
    return LanguageModel(model, toy_tokenizer(vocab, eos), f"toy-{seed}")
