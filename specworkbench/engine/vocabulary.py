"""Tokens as bytes: what two vocabularies have in common, and how the text of one model's tokens reads in another's.

Byte-level BPE writes ' world' as 'Ġworld' and a lone byte as one odd letter; SentencePiece writes '▁world' and
'<0xE4>'. Compared as bytes they are the same tokens.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from specworkbench.engine.models import LanguageModel
from specworkbench.errors import InputError

WINDOW = 16
"""Tokens of context that are encoded again in front of a continuation."""

_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def token_bytes(tokenizer: Any) -> dict[int, bytes | None]:
    """{id: what the token adds to the text}; None for a special token, which adds nothing.

    The bytes of a text's tokens, one after the other, are the text's own bytes in UTF-8 (after what the tokenizer's
    normaliser made of it; SentencePiece puts a space in front). A token may hold a part of a character. Raises
    `InputError` for a tokenizer that decodes in another way than byte-level BPE, SentencePiece or letter by letter.
    """
    added = tokenizer.added_tokens_decoder
    special = {*tokenizer.all_special_ids, *(token for token, entry in added.items() if entry.special)}
    spell = _speller(tokenizer)
    return {
        token: None if token in special else spell(text, token in added)
        for text, token in tokenizer.get_vocab().items()
    }


class Vocabulary:
    """A model's tokens as bytes, and its tokenizer from text to ids.

    bytes: {id: bytes, or None for special tokens}, of the tokens that can be drawn; begin: the ids that the tokenizer
    puts in front of every text; lead: the space that SentencePiece puts there, or nothing.
    """

    def __init__(self, model: LanguageModel):
        self.tokenizer, self.eos_ids = model.tokenizer, model.eos_ids
        self.bytes = {token: data for token, data in token_bytes(model.tokenizer).items() if token < model.vocab_size}
        self.texts = {token: text for text, token in model.tokenizer.get_vocab().items() if token in self.bytes}
        start = list(model.tokenizer("").input_ids[:1])
        self.begin = start if start == [model.tokenizer.bos_token_id] else []
        probe = self.spell(self.encode("a"))
        self.lead = probe[:-1] if probe.endswith(b"a") else b""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text alone; what looks like a special token in it stays text."""
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False).input_ids)

    def spell(self, tokens: Sequence[int]) -> bytes:
        """The bytes of these tokens; special ones add none."""
        return b"".join(self.bytes.get(token) or b"" for token in tokens)

    def continuation(self, tokens: Sequence[int], text: str) -> list[int]:
        """Tokens that say `text` as the tokenizer would write it after `tokens`, up to what it has no token for.

        The end of the context is encoded together with the text, for the sake of the border. Where a token spans the
        border, the text is encoded after a line break, then alone: tokens already there cannot be taken back.
        """
        for before in (self._end_of(tokens), "\n", ""):
            found = self._after(before.encode(), text.encode(), self.encode(before + text))
            if found:
                return found
        return []

    def _after(self, before: bytes, data: bytes, ids: Sequence[int]) -> list[int]:
        """Those of the ids that begin where `before` ends, as long as they say `data`."""
        for front in (self.lead + before, before):
            passed, said, found = b"", b"", []
            for token in ids:
                piece = self.bytes.get(token) or b""
                if passed != front:
                    passed += piece
                elif piece and data.startswith(said + piece):
                    said += piece
                    found.append(token)
                else:
                    break
            if found:
                return found
        return []

    def _end_of(self, tokens: Sequence[int]) -> str:
        """Text of the last tokens, back to a special one at most, from the beginning of a character on."""
        end: list[int] = []
        for token in reversed(tokens[-WINDOW:]):
            if self.bytes.get(token) is None:
                break
            end.insert(0, token)
        return self.spell(end).lstrip(bytes(range(0x80, 0xC0))).decode("utf-8", "replace")


def shared_tokens(target: Vocabulary, draft: Vocabulary) -> dict[int, int]:
    """{target id: draft id} of the tokens that mean the same in both, one to one.

    Ordinary tokens by their bytes (where several have the same, a written token comes before a byte fallback, then the
    lowest id); special ones by their text; and the end of a text, whatever it is called. With equal tokenizers every
    token is its own partner.
    """
    if same_tokenizer(target, draft):
        return {token: token for token in target.bytes if token in draft.bytes}
    ours, theirs = (_by_meaning(vocabulary) for vocabulary in (target, draft))
    shared = {token: theirs[meaning] for meaning, token in ours.items() if meaning in theirs}
    ends = [next((t for t in side.eos_ids if side.bytes.get(t, b"") is None), None) for side in (target, draft)]
    if None not in ends and ends[0] not in shared and ends[1] not in shared.values():
        shared[ends[0]] = ends[1]
    return shared


def same_tokenizer(target: Vocabulary, draft: Vocabulary) -> bool:
    """Whether both give every id the same meaning."""
    return target.tokenizer.get_vocab() == draft.tokenizer.get_vocab()


class Reader:
    """The target's tokens as the draft would have had them: decoded, and encoded again with the draft's tokenizer.

    Shared special tokens stay what they are, others are left out; each model's own beginning of a text is respected.
    Bytes that are no text read as U+FFFD. With equal tokenizers the ids are kept as they are.
    """

    def __init__(self, target: Vocabulary, draft: Vocabulary, partners: dict[int, int]):
        self.target, self.draft, self.partners = target, draft, partners
        self._same = same_tokenizer(target, draft)

    def read(self, tokens: Sequence[int]) -> list[int] | None:
        """The draft's ids for a context; None where it ends within a character, which no text can say."""
        if self._same:
            return list(tokens)
        target, begin, lead = self.target, len(self.target.begin), self.target.lead
        ids, piece = list(self.draft.begin), bytearray()
        for token in tokens[begin:] if list(tokens[:begin]) == target.begin else tokens:
            data = target.bytes.get(token)
            if data is not None:
                piece += data.removeprefix(lead)
                lead = b""
            elif token in self.partners:
                ids += [*self._encoded(piece)[0], self.partners[token]]
                piece.clear()
        end, unfinished = self._encoded(piece)
        return None if unfinished else ids + end

    def _encoded(self, piece: bytearray) -> tuple[list[int], bool]:
        """Ids of a piece of text, and whether it ends within a character."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(bytes(piece))
        return self.draft.encode(text), bool(decoder.getstate()[0])


def _by_meaning(vocabulary: Vocabulary) -> dict[tuple[bool, bytes], int]:
    """{(special, bytes or name): id}; tokens that add nothing to a text have no meaning."""
    found: dict[tuple[bool, bytes], int] = {}
    order = sorted(vocabulary.bytes, key=lambda token: (bool(_FALLBACK.fullmatch(vocabulary.texts[token])), token))
    for token in order:
        data = vocabulary.bytes[token]
        meaning = (True, vocabulary.texts[token].encode()) if data is None else (False, data)
        if meaning[1]:
            found.setdefault(meaning, token)
    return found


def _speller(tokenizer: Any) -> Callable[[str, bool], bytes]:
    """From a vocabulary entry (and whether it was added beside the vocabulary) to its bytes, as the decoder has it."""
    steps = _decoder_steps(tokenizer)
    kinds = {step["type"] for step in steps}
    if kinds == {"ByteLevel"}:
        return _byte_level
    spaces = [_space_sign(step) for step in steps if step["type"] in ("Metaspace", "Replace")]
    if not steps or kinds - {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"} or None in spaces:
        raise InputError(
            f"the tokenizer {type(tokenizer).__name__} decodes with {', '.join(sorted(kinds)) or 'nothing'}, so the "
            "bytes of its tokens are not known; choose a model with byte-level BPE or SentencePiece"
        )

    def sentence_piece(text: str, added: bool) -> bytes:
        byte = _FALLBACK.fullmatch(text) if "ByteFallback" in kinds else None
        if byte:
            return bytes([int(byte[1], 16)])
        for sign in spaces:
            text = text.replace(sign, " ")
        return text.encode()

    return sentence_piece


def _decoder_steps(tokenizer: Any) -> list[dict[str, Any]]:
    """The parts of the tokenizer's decoder, as its JSON has them; SentencePiece's for a tokenizer without a backend."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return [{"type": "Metaspace", "replacement": "▁"}, {"type": "ByteFallback"}]
    if backend.decoder is None:
        return []
    decoder = json.loads(backend.decoder.__getstate__())
    return decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]


def _space_sign(step: dict[str, Any]) -> str | None:
    """The sign that stands for a space; None for a replacement of another kind."""
    if step["type"] == "Metaspace":
        return step["replacement"]
    return step["pattern"].get("String") if step["content"] == " " else None


def _alphabet() -> dict[str, int]:
    """The letter byte-level BPE writes for each byte (GPT-2): printable ones themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_LETTERS = _alphabet()


def _byte_level(text: str, added: bool) -> bytes:
    if added or any(letter not in _LETTERS for letter in text):
        return text.encode()
    return bytes(_LETTERS[letter] for letter in text)
