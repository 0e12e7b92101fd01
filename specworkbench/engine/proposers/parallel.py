"""One forward drafts the whole block: masks stand where the guesses will be, and every row comes at once.

Two public families. PARD (An et al. 2025, arXiv 2504.18583; vLLM's `parallel_drafting`): an ordinary causal draft model
that was taught a mask token: after the context and gamma - 1 masks, the last gamma rows are those of the gamma guesses.
DFlash (Chen, Liang, Liu 2026, arXiv 2602.06036; vLLM's and transformers' `dflash`): see `engine.heads.dflash`.

Row j depends on the context alone, not on the guesses before it. So the guesses are drawn independently, each from its
own row, and that row is its true q: the distribution of x_j given the context and x_1..x_(j-1) is q_j whatever those
were. The rules, which ask for no more than that, stay lossless; what independence costs is acceptance at the later
positions, where q_j is an average over all that could have been guessed before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch.nn import functional

from specworkbench.engine.contracts import Context, Needs, Proposal, Proposer
from specworkbench.engine.heads.checkpoint import Checkpoint
from specworkbench.engine.heads.dflash import ContextCache, DFlashHead, load_dflash
from specworkbench.engine.heads.dflash_config import is_dflash
from specworkbench.engine.heads.feature import over_vocabulary
from specworkbench.engine.loading import check_same_vocabulary
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.products import describe_products, products_of
from specworkbench.engine.proposers.chains import draw_chain
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.errors import InputError

MASK_KEYS = ("pard_token", "ptd_token_id", "mask_token_id")
"""Where a config.json may name the mask token, in the order in which vLLM looks."""


class ParallelDraft(Protocol):
    """What drafts a block at once. `limit`: the most guesses after so many tokens, and why no more."""

    needs: Needs

    def fits(self, target: LanguageModel) -> ParallelDraft:
        """The draft for this target. Raises `InputError` where it cannot be."""

    def reset(self) -> None: ...

    def read(self, context: Context) -> None:
        """Take in what is new in the context, but its last token."""

    def limit(self, length: int, gamma: int) -> tuple[int, str]: ...

    def rows(self, context: Context, n: int) -> tuple[torch.Tensor, int]:
        """(n, vocab) logits of the next n tokens, and how many positions the forward had."""

    @property
    def cache_bytes(self) -> int: ...

    def describe(self) -> dict[str, Any]: ...


class ParallelProposer(Proposer):
    """Draws up to gamma tokens, independently, from the rows of one forward of a PARD draft model or a DFlash head.

    A DFlash head fills blocks of the size it was trained for, so it guesses block_size - 1 tokens at most.
    """

    name = "parallel"
    summary = "a draft that was taught masks guesses the whole block in one forward"
    paper = "An et al. 2025 (PARD); Chen et al. 2026 (DFlash)"
    weights = "a PARD draft model or a DFlash head"
    needs_target = True

    def __init__(self, draft: ParallelDraft):
        self.draft, self.needs = draft, draft.needs
        self.reset()

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> ParallelDraft:
        checkpoint = Checkpoint(weights, revision)
        if is_dflash(checkpoint.config):
            return DFlashDraft(target.speed_up(load_dflash(checkpoint, target.dtype, target.device)))
        mask_token = mask_token_of(checkpoint.config, weights)
        return PardDraft(super().load(weights, target, revision), mask_token)

    @classmethod
    def build(cls, target: LanguageModel, draft: ParallelDraft, **settings: Any) -> ParallelProposer:
        return cls(draft.fits(target), **settings)

    def reset(self) -> None:
        self.draft.reset()

    def prefill(self, context: Context) -> None:
        self.draft.read(context)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        n, shortened = self.draft.limit(len(context.tokens), gamma)
        if n <= 0:
            return nothing(context, shortened)
        logits, positions = self.draft.rows(context, n)
        tokens, probs = _drawn(logits[:, : context.vocab_size], context, choose)
        return Proposal(tokens, probs, forwards=1, positions=positions, shortened=shortened)

    @property
    def cache_bytes(self) -> int:
        return self.draft.cache_bytes

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"draft": self.draft.describe()}


def _drawn(logits: torch.Tensor, context: Context, choose: Chooser) -> tuple[torch.Tensor, torch.Tensor]:
    """(n,) guesses and the (n, vocab) rows they were drawn from.

    A repetition penalty is the one thing that ties a row to the guesses before it: then row follows row.
    """
    if not context.sampler.penalises:
        probs = context.sampler(logits)
        return choose.draw(probs), probs
    each = logits.split(1)

    return draw_chain(context, len(each), choose, lambda guesses: each[len(guesses)])


def mask_token_of(entry: Mapping[str, Any], name: str) -> int:
    """The mask token that a config.json names. Raises `InputError` where it names none, or is of another kind."""
    if kind := entry.get("speculators_model_type"):
        raise InputError(
            f"{name!r} is a speculator of type {kind!r}; the proposer parallel reads dflash and PARD models"
        )
    for key in MASK_KEYS:
        if entry.get(key) is not None:
            return int(entry[key])
    raise InputError(
        f"{name!r} is no parallel draft: its config.json has no dflash_config and names no mask token "
        f"({', '.join(MASK_KEYS)}); the proposer draft_model takes ordinary models"
    )


class PardDraft:
    """A causal language model with a mask token, and its cache, which holds the context and never a mask."""

    needs = Needs()

    def __init__(self, model: LanguageModel, mask_token: int):
        rows = model.model.config.get_text_config().vocab_size
        if not 0 <= mask_token < rows:
            raise InputError(
                f"the mask token of {model.name} is {mask_token}, but it embeds tokens 0 to {rows - 1} only"
            )
        self.model, self.mask_token = model, mask_token
        self.reset()

    def fits(self, target: LanguageModel) -> PardDraft:
        """The same vocabulary, the mask token apart, which may be the draft's own."""
        own = {text: token for text, token in self.model.tokenizer.get_vocab().items() if token != self.mask_token}
        shared = {text: token for text, token in target.tokenizer.get_vocab().items() if token != self.mask_token}
        if own != shared:
            check_same_vocabulary(target, self.model)
        return self

    def reset(self) -> None:
        self._cache = self.model.new_cache()

    def read(self, context: Context) -> None:
        if self._cache.length + 1 < len(context.tokens) <= self.model.max_context:
            self.model.forward(context.ids(self._cache.length, -1), self._cache, rows=1)
            self._cache.rollback(0)

    def limit(self, length: int, gamma: int) -> tuple[int, str]:
        n = min(gamma, self.model.max_context - length + 1)
        return n, "draft_context" if n < gamma else ""

    def rows(self, context: Context, n: int) -> tuple[torch.Tensor, int]:
        masks = torch.full((n - 1,), self.mask_token, dtype=torch.int64, device=context.device)
        inputs = torch.cat([context.ids(self._cache.length), masks])
        logits = self.model.forward(inputs, self._cache, rows=n).logits
        self._cache.rollback(n - 1)
        return logits, inputs.shape[0]

    @property
    def cache_bytes(self) -> int:
        return self._cache.nbytes

    def describe(self) -> dict[str, Any]:
        return self.model.describe() | {"family": "PARD", "mask_token": self.mask_token}


class DFlashDraft:
    """A DFlash head beside its target: the target embeds the block and reads the result."""

    def __init__(self, head: DFlashHead, target: LanguageModel | None = None):
        self.head, self.target = head, target
        self.needs = Needs(hidden_layers=head.config.hidden_layers)
        self.reset()

    def fits(self, target: LanguageModel) -> DFlashDraft:
        config, theirs = self.head.config, target.model.config.get_text_config()
        own = (config.decoder.hidden_size, config.target_width)
        if own != (theirs.hidden_size, theirs.hidden_size):
            raise InputError(
                f"the DFlash head {self.head.name} is {own[0]} wide and reads hidden states of width {own[1]}; "
                f"those of {target.name} are {theirs.hidden_size} wide: it belongs to another target"
            )
        if max(config.hidden_layers) > theirs.num_hidden_layers or min(config.hidden_layers) < 0:
            raise InputError(
                f"the DFlash head {self.head.name} reads the hidden states {config.hidden_layers}; {target.name} has "
                f"{theirs.num_hidden_layers} layers, so 0 to {theirs.num_hidden_layers}: it belongs to another target"
            )
        draft = DFlashDraft(self.head, target)
        embedded = draft._embedding().shape[0]
        if not 0 <= config.mask_token < embedded:
            raise InputError(
                f"the mask token of the DFlash head {self.head.name} is {config.mask_token}, but {target.name} embeds "
                f"tokens 0 to {embedded - 1} only: it belongs to another target"
            )
        return draft

    def reset(self) -> None:
        self._cache = ContextCache()

    def read(self, context: Context) -> None:
        """Raises `ValueError` where rounds without this proposer have let hidden states pass unread."""
        if new := len(context.tokens) - 1 - self._cache.length:
            features = torch.cat([context.hidden[layer] for layer in self.head.config.hidden_layers], dim=-1)
            if features.shape[0] < new:
                raise ValueError(
                    f"the head has {new} tokens to read; the context has {features.shape[0]} hidden states"
                )
            self.head.read(features[-new:], self._cache)

    def limit(self, length: int, gamma: int) -> tuple[int, str]:
        return min(gamma, self.head.config.block_size - 1), ""

    def rows(self, context: Context, n: int) -> tuple[torch.Tensor, int]:
        config, before = self.head.config, self._cache.length
        self.read(context)
        masks = torch.full((config.block_size - 1,), config.mask_token, dtype=torch.int64, device=context.device)
        block = functional.embedding(torch.cat([context.ids(-1), masks]), self._embedding()) * config.embedding_scale
        hidden = self.head(block, self._cache)[1 : n + 1]
        return self._logits(hidden), self._cache.length - before + config.block_size

    def _embedding(self) -> torch.Tensor:
        own = self.head.embed_tokens
        return self.target.model.get_input_embeddings().weight if own is None else own

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(n, vocab) from (n, width); tokens outside a reduced vocabulary get no weight."""
        head, config = self.head, self.head.config
        logits = self.target.head(hidden) if head.lm_head is None else functional.linear(hidden, head.lm_head)
        logits = logits * config.output_multiplier
        if config.softcap:
            logits = torch.tanh(logits / config.softcap) * config.softcap
        return over_vocabulary(logits, head.target_ids, self.target.vocab_size)

    @property
    def cache_bytes(self) -> int:
        return self._cache.nbytes

    def describe(self) -> dict[str, Any]:
        config = self.head.config
        return {
            "name": self.head.name,
            "family": "DFlash",
            "dtype": str(self.head.fc.weight.dtype).removeprefix("torch."),
            "parameters": sum(parameter.numel() for parameter in self.head.parameters()),
            "products": describe_products(products_of(self.head)),
            "mask_token": config.mask_token,
            "block_size": config.block_size,
            "hidden_layers": list(config.hidden_layers),
        }
