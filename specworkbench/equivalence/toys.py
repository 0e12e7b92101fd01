"""Toy models, small enough that every way a decoding can go may be enumerated, through the real code.

`toy_model` is a small random Llama of transformers with its real caches. `TableModel` is faster by far: its row is a
random function of the whole prefix, looked up in a table, and its cache holds the prefix itself, so that a cache
fault changes the rows as it does in a real model.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specworkbench.engine.contracts import Context, Proposal, Proposer, Verifier
from specworkbench.engine.kvcache import KVCache
from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import DraftModelProposer
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.setup import Setup

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
    """A random Llama in float64. `rows` gives the output matrix padding rows; `sharpness` scales the logits.

    >>> target = toy_model(vocab=5, eos=4)
    >>> target.decode([0, 1, 2]), target.vocab_size, target.eos_ids
    ('abc', 5, (4,))
    """
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


class TableNetwork(torch.nn.Module):
    """Logits as a random function of the whole prefix: normal, with standard deviation `sharpness`.

    near: a network whose logits these follow, with normal noise of standard deviation `sharpness` added. Padding rows
    get a large logit, so that whoever forgets to cut them off draws them.
    """

    def __init__(self, config: LlamaConfig, vocab: int, seed: int, sharpness: float, near: TableNetwork | None):
        super().__init__()
        self.config, self.vocab, self.seed, self.sharpness, self.near = config, vocab, seed, sharpness, [near]
        self.dtype_and_device = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=False)
        self._rows: dict[tuple[int, ...], torch.Tensor] = {}

    def row(self, prefix: tuple[int, ...]) -> torch.Tensor:
        """(rows,) logits after the prefix."""
        if prefix not in self._rows:
            noise = np.random.default_rng((self.seed, len(prefix), *prefix)).standard_normal(self.vocab)
            row = torch.full((self.config.vocab_size,), 30.0, dtype=torch.float64)
            row[: self.vocab] = self.sharpness * torch.from_numpy(noise)
            if self.near[0] is not None:
                row[: self.vocab] += self.near[0].row(prefix)[: self.vocab]
            self._rows[prefix] = row
        return self._rows[prefix]

    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: PrefixCache,
        use_cache: bool = True,
        logits_to_keep: int = 0,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """input_ids: (1, n), appended to the cached prefix. Gives logits (1, logits_to_keep or n, rows).

        With a mask (1, 1, n, past + n), 0 where a row sees a token, a row's prefix is what it sees; `position_ids`
        must be the places in it.
        """
        tokens = past_key_values.tokens
        tokens.extend(input_ids[0].tolist())
        if attention_mask is None:
            ends = range(len(tokens) - input_ids.shape[1] + 1, len(tokens) + 1)
            prefixes = [tuple(tokens[:end]) for end in ends]
        else:
            seen = (attention_mask[0, 0] == 0).tolist()
            prefixes = [tuple(token for token, see in zip(tokens, row, strict=True) if see) for row in seen]
            if [len(prefix) - 1 for prefix in prefixes] != position_ids[0].tolist():
                raise ValueError("the positions are not the places in what the rows see")
        rows = [self.row(prefix) for prefix in prefixes[-logits_to_keep:]]
        return SimpleNamespace(logits=torch.stack(rows).unsqueeze(0))


class PrefixCache:
    """What a cache of transformers is to a real model: here the tokens themselves."""

    layers = ()

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def crop(self, count: int) -> None:
        """Negative: take so many tokens back, as transformers' caches do."""
        del self.tokens[len(self.tokens) + count :]


class TokenCache(KVCache):
    """The engine's cache adapter over a `PrefixCache`."""

    def __init__(self) -> None:
        self.cache = PrefixCache()
        self.length = 0
        self._records_past = False

    def _move(self, last: int, kept: Sequence[int]) -> None:
        tokens, start = self.cache.tokens, self.length - last
        tokens[start : start + len(kept)] = [tokens[start + number] for number in kept]

    @property
    def content(self) -> tuple[int, ...]:
        """The tokens it holds."""
        return tuple(self.cache.tokens)

    def restore(self, content: tuple[int, ...]) -> None:
        """Hold these tokens and no others."""
        self.cache.tokens[:] = content
        self.length = len(content)


class TableModel(LanguageModel):
    """A `TableNetwork` as the engine sees a model; all but the cache is `LanguageModel`'s own code.

    >>> target = TableModel(vocab=3)
    >>> draft = TableModel(vocab=3, seed=1, near=target)
    >>> target.forward(torch.tensor([0, 1, 0]), target.new_cache()).logits.shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        vocab: int = 5,
        *,
        seed: int = 0,
        sharpness: float = 1.0,
        near: TableModel | None = None,
        eos: tuple[int, ...] = (),
        rows: int | None = None,
        context: int = 64,
    ):
        config = LlamaConfig(
            vocab_size=rows or vocab, max_position_embeddings=context, eos_token_id=list(eos) or None,
            bos_token_id=None, pad_token_id=None,
        )  # fmt: skip
        network = TableNetwork(config, vocab, seed, sharpness, near and near.model)
        super().__init__(network, toy_tokenizer(vocab), f"table-{seed}")

    def new_cache(self) -> TokenCache:
        return TokenCache()


class SporadicDraft(DraftModelProposer):
    """A draft model that stops short of gamma, or proposes nothing, depending on the length of the context."""

    name = "sporadic"

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        n = min(gamma, len(context.tokens) % 3)
        return super().propose(context, n, choose) if n else nothing(context)


def table_setup(
    seed: int = 0,
    *,
    vocab: int = 5,
    length: int = 3,
    gamma: int = 2,
    sampling: SamplingSettings | None = None,
    draft_sampling: SamplingSettings | None = None,
    proposer: Proposer | type[DraftModelProposer] = DraftModelProposer,
    rule: str | Verifier | None = None,
    prompt: tuple[int, ...] = (0, 1, 0),
    eos: tuple[int, ...] = (),
    rows: tuple[int | None, int | None] = (None, None),
    draft_context: int = 64,
    sharpness: float = 1.0,
    noise: float = 1.0,
) -> Setup:
    """A `TableModel` as target and one that follows it, with noise, as draft.

    rows: the sizes to which target and draft are padded; rule: a verifier or its name, by default as in decoding.

    >>> from specworkbench.equivalence import run
    >>> setup = table_setup(length=6, gamma=3, rule="block")
    >>> setup.verifier.name, len(run(setup, setup.streams(seed=0)))
    ('block', 6)
    """
    target = TableModel(vocab, seed=2 * seed, sharpness=sharpness, eos=eos, rows=rows[0])
    draft = TableModel(
        vocab, seed=2 * seed + 1, sharpness=noise, near=target, eos=eos, rows=rows[1], context=draft_context
    )
    settings = DecodeSettings(gamma, length, sampling or SamplingSettings(), draft_sampling)
    if isinstance(proposer, type):
        proposer = proposer(draft)
    if rule is None or isinstance(rule, str):
        rule = make_verifier(rule, settings.sampling, proposer)
    return Setup(target, prompt, settings, proposer, rule)
