"""Tokens as bytes: every kind of tokenizer, what two share, and how one's text reads in the other's tokens."""

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from specworkbench.engine.vocabulary import Reader, Vocabulary, shared_tokens, token_bytes
from specworkbench.errors import InputError
from specworkbench.paths import embedded_dir
from tests.engine.toy_tokenizers import byte_level, ids, sentence_piece, speaker, spelled

TEXTS = st.text() | st.text("ab \n\t'éß中🙂<|0x>▁", max_size=12)


@lru_cache
def embedded() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(embedded_dir() / "target", local_files_only=True)


@lru_cache
def embedded_vocabulary() -> Vocabulary:
    return Vocabulary(speaker(embedded()))


@lru_cache
def piecewise() -> Vocabulary:
    return Vocabulary(speaker(sentence_piece("▁", "a", "b", "▁a", "ab", "é")))


def read(target, draft, tokens) -> list[int] | None:
    ours, theirs = Vocabulary(target), Vocabulary(draft)
    return Reader(ours, theirs, shared_tokens(ours, theirs)).read(tokens)


def test_every_byte_is_one_token_of_the_embedded_tokenizer():
    single = [data for data in token_bytes(embedded()).values() if data is not None and len(data) == 1]
    assert sorted(single) == [bytes([byte]) for byte in range(256)]


@settings(deadline=None)
@given(TEXTS)
def test_the_bytes_of_byte_level_tokens_are_the_texts_own(text):
    vocabulary = embedded_vocabulary()
    assert vocabulary.spell(vocabulary.encode(text)) == text.encode()


@settings(deadline=None)
@given(TEXTS.filter(lambda text: "▁" not in text))
def test_the_bytes_of_sentence_pieces_are_the_texts_own_after_a_space(text):
    vocabulary = piecewise()
    assert vocabulary.lead == b" "
    assert vocabulary.spell(vocabulary.encode(text)) == (b" " + text.encode() if text else b"")


def test_the_same_text_is_the_same_bytes_in_every_kind_of_tokenizer():
    kinds = spelled(" a", " ", "a"), byte_level("Ġa", "Ġ", "a"), sentence_piece("▁a", "▁", "a")
    found = [{data: token for token, data in token_bytes(kind).items()} for kind in kinds]
    assert all({b" a", b" ", b"a"} <= tokens.keys() for tokens in found)


def test_a_byte_that_is_no_character_is_the_same_byte_in_both_kinds():
    target, draft = Vocabulary(speaker(byte_level("a", "Ã", "©"))), piecewise()
    shared = shared_tokens(target, draft)
    assert {target.bytes[ours]: draft.texts[theirs] for ours, theirs in shared.items()} == {
        b"a": "a", b"\xc3": "<0xC3>", b"\xa9": "<0xA9>",
    }  # fmt: skip


def test_special_tokens_have_no_bytes_and_words_added_to_a_byte_level_vocabulary_are_written_as_they_are():
    tokenizer = byte_level("a", "b", eos="<end>")
    tokenizer.add_tokens(["é b"])
    found = {tokenizer.convert_ids_to_tokens(token): data for token, data in token_bytes(tokenizer).items()}
    assert found == {"a": b"a", "b": b"b", "<end>": None, "é b": "é b".encode()}


@pytest.mark.parametrize("decoder", [None, decoders.WordPiece(), decoders.Replace("x", "y")])
def test_a_tokenizer_whose_bytes_are_not_known_is_refused(decoder):
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    if decoder is not None:
        tokenizer.decoder = decoder
    with pytest.raises(InputError, match="byte-level BPE or SentencePiece"):
        token_bytes(PreTrainedTokenizerFast(tokenizer_object=tokenizer))


def test_a_written_token_comes_before_the_byte_fallback_of_the_same_bytes():
    target, draft = Vocabulary(speaker(spelled("b", "a", "c"))), piecewise()
    shared = {target.texts[ours]: draft.texts[theirs] for ours, theirs in shared_tokens(target, draft).items()}
    assert shared == {"a": "a", "b": "b", "c": "<0x63>"}


def test_special_tokens_are_shared_by_name_and_ends_by_what_they_are():
    target, draft = speaker(spelled("a", "<x>", "</s>", eos="</s>"), 2), speaker(spelled("<end>", "a", "<x>"), 0)
    target.tokenizer.add_special_tokens({"additional_special_tokens": ["<x>"]})
    draft.tokenizer.add_special_tokens({"eos_token": "<end>"})
    ours, theirs = Vocabulary(target), Vocabulary(draft)
    assert shared_tokens(ours, theirs) == {0: 1, 2: 0}  # <x> is text to the draft
    draft.tokenizer.add_special_tokens({"additional_special_tokens": ["<x>"]})
    assert shared_tokens(ours, Vocabulary(draft)) == {0: 1, 1: 2, 2: 0}


def test_with_equal_tokenizers_every_token_is_its_own_partner_and_the_ids_are_read_as_they_are():
    target, draft = (speaker(spelled("a", "b", "ab", "</s>", eos="</s>"), 3) for _ in range(2))
    vocabulary = Vocabulary(target)
    assert shared_tokens(vocabulary, Vocabulary(draft)) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert read(target, draft, [0, 1, 3, 2]) == [0, 1, 3, 2]  # 'a', 'b' is not joined to 'ab'


@pytest.mark.parametrize(
    "tokens, expected",
    [
        (["a", "b"], ["ab"]),
        (["a", "Ã", "©", "b"], ["a", "é", "b"]),
        (["a", "Ã"], None),
        (["Ã", "b", "a"], ["b", "a"]),  # the lone byte is U+FFFD, a letter this draft lacks
        (["a", "</s>", "b"], ["a", "<end>", "b"]),
        (["Ã", "</s>"], ["<end>"]),
    ],
)
def test_a_context_is_read_with_the_drafts_own_tokens(tokens, expected):
    target = speaker(byte_level("a", "b", "Ã", "©", "</s>", eos="</s>"), 4)
    draft = speaker(spelled("<end>", "é", "b", "a", "ab", eos="<end>"), 0)
    found = read(target, draft, ids(target, *tokens))
    assert found == (None if expected is None else list(ids(draft, *expected)))


def test_the_space_in_front_of_sentence_pieces_is_no_text_and_the_drafts_own_is_put_there():
    plain, pieces = speaker(spelled("a", "b", " ")), speaker(sentence_piece("▁", "a", "b", "▁a"))
    assert read(pieces, plain, ids(pieces, "▁a", "b")) == list(ids(plain, "a", "b"))
    assert read(plain, pieces, ids(plain, "a", "b")) == list(ids(pieces, "▁a", "b"))


def test_what_only_looks_like_a_special_token_is_read_as_text():
    target, draft = speaker(spelled("<", "e", ">")), speaker(spelled("<", ">", "e", "<e>", eos="<e>"), 3)
    assert read(target, draft, [0, 1, 2]) == [0, 2, 1]


@pytest.mark.parametrize(
    "context, text, expected",
    [
        (["a"], "cb", ["c", "b"]),
        (["a"], "bc", ["b", "c"]),  # 'ab' is one token, but the 'a' stands already
        (["ab"], "ab", ["ab"]),
        (["a", "b"], "ab", ["ab"]),  # the context is not what the tokenizer would have written
        ([], "ab", ["ab"]),
        (["a"], "cxb", ["c"]),  # no token of the target says x
    ],
)
def test_a_continuation_is_what_the_tokenizer_writes_without_touching_the_context(context, text, expected):
    target = speaker(spelled("c", "b", "a", "ab", "\n"))
    assert Vocabulary(target).continuation(ids(target, *context), text) == list(ids(target, *expected))


def test_a_continuation_in_sentence_pieces_has_no_space_of_its_own():
    target = speaker(sentence_piece("▁", "a", "b", "ab", "▁a"))
    vocabulary = Vocabulary(target)
    for context in (["▁a"], ["b"], ["a", "<0x0A>"], ["</s>"], []):
        for text in ("b", "ab", " ab", "bé"):
            found = vocabulary.continuation(ids(target, *context), text)
            assert vocabulary.spell(found) == text.encode(), (context, text)


@settings(deadline=None)
@given(st.lists(st.integers(0, 4095), max_size=40), TEXTS)
def test_a_continuation_after_any_tokens_says_the_text_and_nothing_else(context, text):
    vocabulary = embedded_vocabulary()
    assert vocabulary.spell(vocabulary.continuation(context, text)) == text.encode()


@settings(deadline=None)
@given(TEXTS.filter(str.strip), st.integers(0, 12))
def test_the_border_of_a_canonical_text_is_found_again(text, cut):
    """Cut between two tokens, the rest is continued with the very tokens that stood there."""
    vocabulary = embedded_vocabulary()
    tokens = vocabulary.encode("so " + text)
    start = min(cut, len(tokens))
    try:
        rest = vocabulary.spell(tokens[start:]).decode()
    except UnicodeDecodeError:
        return
    assert vocabulary.continuation(tokens[:start], rest) == tokens[start:]
