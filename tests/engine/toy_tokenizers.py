"""Small tokenizers of every kind that `token_bytes` knows, and toy models that have them."""

from collections.abc import Iterable
from types import SimpleNamespace

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from specworkbench.engine.models import LanguageModel
from specworkbench.equivalence.toys import TableModel
from tests.engine.toys import toy_model


def spelled(*tokens: str, eos: str | None = None, unknown: str | None = None) -> PreTrainedTokenizerFast:
    """Tokens that are their own text, ids in this order. A token of several letters joins its parts from the left."""
    return _finished(_bpe(tokens, unk_token=unknown), decoders.Fuse(), eos)


def byte_level(*tokens: str, eos: str | None = None) -> PreTrainedTokenizerFast:
    """Byte-level BPE with GPT-2's letters: 'Ġ' is a space, 'Ã' and '©' the two bytes of é."""
    tokenizer = _bpe(tokens)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _finished(tokenizer, decoders.ByteLevel(), eos)


def sentence_piece(*tokens: str, fallback: Iterable[int] = range(256)) -> PreTrainedTokenizerFast:
    """As Llama 2 has it: a space in front of the text, '▁' for spaces, bytes to fall back on."""
    every = ("<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in fallback), *tokens)
    tokenizer = _bpe(every, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return _finished(tokenizer, decoders.Sequence(parts), "</s>", unk_token="<unk>")


def speaker(tokenizer: PreTrainedTokenizerFast, *eos_ids: int) -> SimpleNamespace:
    """All of a model that its vocabulary asks for."""
    return SimpleNamespace(tokenizer=tokenizer, vocab_size=len(tokenizer.get_vocab()), eos_ids=eos_ids)


def toy(tokenizer: PreTrainedTokenizerFast, seed: int = 0, **settings: object) -> LanguageModel:
    """A small random Llama with this tokenizer."""
    return _with(tokenizer, toy_model(len(tokenizer.get_vocab()), seed=seed, **settings))


def table(tokenizer: PreTrainedTokenizerFast, seed: int = 0, **settings: object) -> TableModel:
    """A table of random rows with this tokenizer."""
    return _with(tokenizer, TableModel(len(tokenizer.get_vocab()), seed=seed, **settings))


def ids(model: LanguageModel, *tokens: str) -> tuple[int, ...]:
    """Ids by their texts."""
    return tuple(model.tokenizer.convert_tokens_to_ids(list(tokens)))


def _bpe(tokens: tuple[str, ...], **options: object) -> Tokenizer:
    vocab = {token: i for i, token in enumerate(tokens)}
    merges = [
        (token[:cut], token[cut:])
        for token in tokens
        for cut in range(1, len(token))
        if token[:cut] in vocab and token[cut:] in vocab
    ]
    return Tokenizer(models.BPE(vocab, merges, **options))


def _finished(tokenizer: Tokenizer, decoder: object, eos: str | None, **special: str) -> PreTrainedTokenizerFast:
    tokenizer.decoder = decoder
    names = {"eos_token": eos} if eos else {}
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in (names | special).values()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, **special)


def _with(tokenizer: PreTrainedTokenizerFast, model: LanguageModel) -> LanguageModel:
    model.tokenizer = tokenizer
    return model
