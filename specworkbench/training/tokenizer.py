"""Byte-level BPE tokenizer of the embedded family: every text decodes to itself, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

__all__ = ["train_tokenizer"]

END_OF_TEXT = "<|endoftext|>"  # ends every document; also named as bos and pad; never added by itself
END_OF_TEXT_ID = 0
CONTEXT = 1024  # tokens
# Letters with one leading blank, up to two digits, punctuation, indentation as one piece, line ends.
PIECES = r" ?\p{L}+| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]+|\n+|[ \t]+(?=\S)|\s+"


def train_tokenizer(texts: Iterable[str], vocab_size: int = 4096) -> PreTrainedTokenizerFast:
    """Learn the merges; ids: 0 is END_OF_TEXT, then 256 bytes, then merges.

    >>> tokenizer = train_tokenizer(["a b a b"], vocab_size=260)
    >>> tokenizer.decode(tokenizer("b a ☃")["input_ids"])
    'b a ☃'
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END_OF_TEXT], show_progress=False, min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return wrap(tokenizer)


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The tokenizer as transformers loads it."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT, pad_token=END_OF_TEXT,
        model_max_length=CONTEXT, clean_up_tokenization_spaces=False,
    )  # fmt: skip
