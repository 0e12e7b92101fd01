"""A draft model with another tokenizer, losslessly (Timor et al. 2025, arXiv 2502.05202)."""

from __future__ import annotations

from typing import Any

import torch

from specworkbench.engine.contracts import Context, Decision, Proposal, Proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.chains import draw_chain
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import Chooser
from specworkbench.engine.sampling import Sampler, SamplingSettings
from specworkbench.engine.vocabulary import Reader, Vocabulary, shared_tokens
from specworkbench.errors import InputError

METHODS = ("intersection", "text")
LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""


class OtherVocabularyProposer(Proposer):
    """Drafts with a model that cuts text into other tokens. It reads the context's text with its own tokenizer.

    method 'intersection' (Algorithm 4, token level): the draft's logits are restricted to the tokens that both
    vocabularies have and moved to the target's ids, and only then become q by penalty, temperature, top-k and top-p:
    so k counts shared tokens, the penalty falls on the tokens that the target's context holds, and q is a row over the
    target's vocabulary, zero elsewhere, from which the guess is drawn.

    method 'text' (Algorithm 2, string level): the draft's likeliest text, encoded with the target's tokenizer. The
    guesses are certain (one-hot q, accepted with p), so the likeliest text is the best guess at any temperature, and
    of the draft's sampling only the penalty matters. Guesses may hold tokens that the draft does not know. Up to
    2 gamma of the draft's tokens make gamma of the target's.

    'text' is the default since real instruct models accepted more of it: SmolLM2-135M drafting for Qwen2.5-Coder-0.5B,
    gamma 4, 3.1 and 2.6 tokens a round on a chat and a coding prompt at temperature 0 (intersection 3.1 and 1.9), 2.2
    and 2.1 at temperature 1 (1.9 and 1.8). Where the target is unsure (the embedded one's prose at temperature 1, 1.2
    against 1.6), a drawn guess is the better one.

    A context that ends within a UTF-8 character has no text, and gets no guess. Past the end of the draft's context it
    proposes nothing and says so. Raises `InputError` for another method, for 'intersection' of vocabularies that share
    no token, and for a tokenizer that `token_bytes` does not know.
    """

    name = "other_vocabulary"
    summary = "a model with another tokenizer: its tokens that the target has too, or its text"
    paper = "Timor et al. 2025"
    weights = "a language model with another tokenizer"
    needs_target = True

    def __init__(self, target: LanguageModel, draft: LanguageModel, method: str = "text"):
        if method not in METHODS:
            raise InputError(f"the method of other_vocabulary is {method!r}; choose one of {', '.join(METHODS)}")
        self.draft, self.method = draft, method
        self.deterministic = method == "text"
        self.tells_doubt = not self.deterministic
        self._ours, self._theirs = Vocabulary(target), Vocabulary(draft)
        self._partners = shared_tokens(self._ours, self._theirs)
        if not self._partners and method == "intersection":
            raise InputError(
                f"{draft.name} shares no token with {target.name} ({draft.vocab_size} and {target.vocab_size} tokens), "
                "so it has no guess to make; use method=text, or choose another draft"
            )
        self._reader = Reader(self._ours, self._theirs, self._partners)
        self._share = len(self._partners) / target.vocab_size
        self._specials = {theirs: ours for ours, theirs in self._partners.items() if self._ours.bytes[ours] is None}
        pairs = torch.tensor(sorted(self._partners.items()), dtype=torch.int64, device=target.device).reshape(-1, 2)
        self._target_ids, self._draft_ids = pairs.unbind(-1)
        self._to_draft = torch.zeros(target.vocab_size, dtype=torch.int64, device=target.device)
        self._to_draft[self._target_ids] = self._draft_ids
        self.reset()

    @classmethod
    def build(cls, target: LanguageModel, draft: LanguageModel, **settings: Any) -> OtherVocabularyProposer:
        return cls(target, draft, **settings)

    def reset(self) -> None:
        self._cache = self.draft.new_cache()
        self._cached: list[int] = []  # draft ids; guesses of the present round come on top
        self._drafted: list[int] = []  # draft ids, by 'text' in the present round

    def prefill(self, context: Context) -> None:
        """Forward the prompt, as the draft reads it, but its last token."""
        ids = self._reader.read(context.tokens)
        if ids is not None and 1 < len(ids) <= self.draft.max_context:
            self.draft.forward(self._rest_of(ids[:-1]), self._cache, rows=1)

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        ids = self._reader.read(context.tokens)
        if not ids:
            return nothing(context)
        room = self.draft.max_context - len(ids) + 1
        if room <= 0:
            return nothing(context, "draft_context")
        kept = _common_prefix(self._cached, ids[:-1])
        self._cache.rollback(self._cache.length - kept)
        self._cached = self._cached[:kept]
        inputs = self._rest_of(ids)
        if self.method == "text":
            return self._propose_text(context, inputs, gamma, room)
        return self._propose_shared(context, inputs, min(gamma, room), "draft_context" if room < gamma else "", choose)

    def observe(self, decision: Decision) -> None:
        """Keep the context and the accepted guesses that were forwarded. What reads otherwise in the longer text (its
        last tokens may join with new ones) is dropped before the next guess."""
        if self.method == "text":
            kept = self._within(self._ours.spell(decision.proposed[: decision.accepted]))
        else:
            kept = [self._partners[token] for token in decision.proposed[:-1][: decision.accepted]]
        self._drafted = []
        self._cached += kept
        self._cache.rollback(self._cache.length - len(self._cached))

    @property
    def cache_bytes(self) -> int:
        return self._cache.nbytes

    def describe(self) -> dict[str, Any]:
        """With shared_tokens, how many tokens both have, and shared_share, their share of the target's."""
        shared = {"shared_tokens": len(self._partners), "shared_share": self._share}
        return super().describe() | {"draft": self.draft.describe()} | shared

    def _rest_of(self, ids: list[int]) -> torch.Tensor:
        """(m,) the ids that the cache lacks, which are about to enter it."""
        rest = ids[len(self._cached) :]
        self._cached = ids
        return torch.tensor(rest, dtype=torch.int64, device=self.draft.device)

    def _propose_shared(
        self, context: Context, inputs: torch.Tensor, n: int, shortened: str, choose: Chooser
    ) -> Proposal:
        """n guesses drawn from the shared tokens; within the round the draft goes on from its own tokens."""

        def logits_after(guesses: list[torch.Tensor]) -> torch.Tensor:
            new = self._to_draft[guesses[-1]] if guesses else inputs
            return self._restricted(self.draft.forward(new, self._cache, rows=1).logits)

        tokens, rows = draw_chain(context, n, choose, logits_after)
        forwards = tokens.shape[0]
        return Proposal(tokens, rows, forwards=forwards, positions=inputs.shape[0] + forwards - 1, shortened=shortened)

    def _restricted(self, logits: torch.Tensor) -> torch.Tensor:
        """Draft logits (1, draft vocab) as logits (1, target vocab), -inf for what the draft cannot say."""
        row = logits.new_full((1, self._to_draft.shape[0]), -torch.inf)
        row[:, self._target_ids] = logits[:, self._draft_ids]
        return row

    def _propose_text(self, context: Context, inputs: torch.Tensor, gamma: int, room: int) -> Proposal:
        """The draft's likeliest text, token by token, until it is gamma of the target's tokens."""
        positions, limit = inputs.shape[0] - 1, min(2 * gamma, room)
        penalty = context.sampler.settings.repetition_penalty
        sampler = Sampler(SamplingSettings(temperature=0.0, repetition_penalty=penalty), self.draft.device)
        seen = None
        if sampler.penalises:
            seen = torch.zeros(self.draft.vocab_size, dtype=torch.bool, device=self.draft.device)
            seen[torch.tensor(self._cached, device=seen.device)] = True
        self._drafted, guesses, more = [], [], True
        while more and len(self._drafted) < limit and len(guesses) < gamma:
            logits = self.draft.forward(inputs, self._cache, rows=1).logits
            inputs = sampler(logits, seen).argmax(-1)
            if seen is not None:
                seen[inputs] = True
            self._drafted.append(int(inputs))
            guesses, more = self._in_target_tokens(context.tokens)
        at_the_end = more and len(self._drafted) == room and len(guesses) < gamma
        return Proposal(
            torch.tensor(guesses[:gamma], dtype=torch.int64, device=context.device),
            forwards=len(self._drafted),
            positions=positions + len(self._drafted),
            shortened="draft_context" if at_the_end else "",
        )

    def _in_target_tokens(self, tokens: list[int]) -> tuple[list[int], bool]:
        """What was drafted in this round as target tokens after these, and whether more text may follow.

        Whole characters only; a shared special token at the end; nothing beyond what the target has no token for.
        """
        data, last = self._theirs.spell(self._drafted), self._drafted[-1]
        text = _whole_characters(data)
        guesses = self._ours.continuation(tokens, text) if text else []
        said = self._ours.spell(guesses)
        if self._theirs.bytes.get(last) is None:
            special = [self._specials[last]] if last in self._specials and said == data else []
            return guesses + special, False
        return guesses, said == text.encode() and len(data) - len(said) < LONGEST_CHARACTER

    def _within(self, data: bytes) -> list[int]:
        """The drafted tokens, of those that were forwarded, whose text lies within these accepted bytes."""
        left = len(data)
        for count, token in enumerate(self._drafted[:-1]):
            left -= len(self._theirs.spell([token]))
            if left < 0:
                return self._drafted[:count]
        return self._drafted[:-1]


def _common_prefix(one: list[int], other: list[int]) -> int:
    """Number of tokens that both begin with."""
    limit = min(len(one), len(other))
    return next((i for i in range(limit) if one[i] != other[i]), limit)


def _whole_characters(data: bytes) -> str:
    """The text of these bytes, up to the first that is part of no character."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
