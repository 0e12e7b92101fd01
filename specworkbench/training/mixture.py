"""Token streams of the three buckets and the batches drawn from them, as a pure function of the sequence's number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specworkbench.training.corpus import BUCKETS, Corpus
from specworkbench.training.tokenizer import END_OF_TEXT_ID

__all__ = ["encode_documents", "encode_corpus", "Mixture"]

SHARES = (0.55, 0.20, 0.25)  # of tokens: code, prose, structured
GOLDEN = 0.6180339887498949


def encode_documents(tokenizer, texts: list[str], end: int | None = END_OF_TEXT_ID) -> np.ndarray:
    """All texts in order, each ended by the token `end` unless that is None: (tokens,) uint16 or uint32.

    >>> from specworkbench.training.tokenizer import train_tokenizer
    >>> encode_documents(train_tokenizer(["a b a b"], 258), ["a", "b"]).tolist()[1::2]
    [0, 0]
    """
    dtype = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
    pieces = [np.empty(0, dtype)]
    for encoding in tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False):
        pieces += [np.asarray(encoding.ids, dtype), np.asarray([] if end is None else [end], dtype)]
    return np.concatenate(pieces)


def encode_corpus(
    tokenizer, corpus: Corpus, heldout: bool, end: int | None = END_OF_TEXT_ID
) -> dict[str, np.ndarray]:
    """{bucket: (tokens,)} of one side of the split; training documents shuffled by a fixed seed.

    >>> from specworkbench.training.corpus import Document
    >>> from specworkbench.training.tokenizer import train_tokenizer
    >>> corpus = Corpus((Document("mine", "prose", "a b a b", heldout=True),))
    >>> list(encode_corpus(train_tokenizer(["a b a b"], 258), corpus, heldout=True))
    ['code', 'prose', 'structured']
    """
    streams = {}
    for bucket in BUCKETS:
        texts = corpus.texts(bucket, heldout)
        if not heldout:
            texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
        streams[bucket] = encode_documents(tokenizer, texts, end)
    return streams


@dataclass(frozen=True)
class Mixture:
    """Windows from the streams in the proportions of `shares`; nearly every window of a stream is seen once an epoch.

    Sequence number i belongs to a bucket by a golden-ratio sequence, so that any run of sequences has nearly the shares
    asked for. It takes window i * share of a permutation that changes with every epoch: within two of the number of the
    bucket's earlier sequences, so that a few windows in a hundred are seen twice or not at all.

    >>> mixture = Mixture({"text": np.arange(100)}, shares=(1.0,))
    >>> mixture.batch(first=0, count=2, length=8).shape
    (2, 9)
    """

    streams: dict[str, np.ndarray]
    seed: int = 0
    shares: tuple[float, ...] = SHARES

    def batch(self, first: int, count: int, length: int) -> np.ndarray:
        """Sequences `first` to `first + count - 1`: (count, length + 1) int64 token ids."""
        return np.stack([self._sequence(first + i, length) for i in range(count)])

    def _sequence(self, index: int, length: int) -> np.ndarray:
        point = (index + 0.5) * GOLDEN % 1.0
        which = int(np.searchsorted(np.cumsum(self.shares)[:-1], point, side="right"))
        stream = list(self.streams.values())[which]
        windows = (len(stream) - 1) // length - 1
        epoch, slot = divmod(int(index * self.shares[which]), windows)
        rng = np.random.default_rng((self.seed, which, epoch, length))
        offset = int(rng.integers(length))  # windows start elsewhere in every epoch
        start = offset + int(rng.permutation(windows)[slot]) * length
        return stream[start : start + length + 1].astype(np.int64)
