"""The decode loop: a generator of rounds. It knows no printing, no display, no file.

Plain decoding is the same loop with a proposer that proposes nothing. Between rounds the target's cache holds every
token but the last, which the next round forwards in front of the guesses; so every emitted token belongs to a round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import torch

from specworkbench.engine.compiled.rounds import CompiledRound
from specworkbench.engine.contracts import Context, Decision, Proposal, Proposer, Verdict, Verifier, summarised
from specworkbench.engine.controllers import ConstantController, Controller, check_controls
from specworkbench.engine.decode_settings import DecodeSettings
from specworkbench.engine.kvcache import NO_ROLLBACK
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.none import nothing
from specworkbench.engine.rng import RoundUniforms, Streams
from specworkbench.engine.round import Round
from specworkbench.engine.sampling import MinimumLength, Sampler, SamplingSettings, seen_in_tree
from specworkbench.engine.stopping import Stopping
from specworkbench.engine.timing import clock_for
from specworkbench.engine.trees import depths_of, rows_ahead, visible_rows
from specworkbench.engine.verifiers import check_judges_trees
from specworkbench.errors import InputError


class Sequence:
    """One sequence being decoded: its context, the target's cache, and the rounds that move both forward.

    >>> from specworkbench.engine import Decoder, load_model
    >>> sequence = Decoder(load_model("embedded"), settings=DecodeSettings(max_new_tokens=3)).start("a b a b")
    >>> [one.decision.next_token for one in decode_rounds(sequence)] == sequence.output
    True
    """

    def __init__(
        self,
        target: LanguageModel,
        prompt: list[int],
        proposer: Proposer,
        verifier: Verifier,
        settings: DecodeSettings,
        streams: Streams,
        index: int = 0,
        compiled: CompiledRound | None = None,
        controller: Controller | None = None,
    ):
        _check_room(target, prompt, settings)
        if proposer.drafts_trees:
            target.check_trees()
            check_judges_trees(verifier, proposer)
        self.controller = controller or ConstantController()
        check_controls(self.controller, proposer)
        self.target, self.proposer, self.verifier, self.settings = target, proposer, verifier, settings
        self.streams, self.index = streams, index
        eos_ids = () if settings.ignore_eos else target.eos_ids
        self.minimum = MinimumLength(eos_ids, target.vocab_size, settings.min_new_tokens, target.device)
        self.compiled = compiled
        self.sampler = self._sampler(settings.sampling)
        self.context = Context(
            list(prompt), len(prompt), self._sampler(settings.draft_sampling or settings.sampling), target.device,
            target.vocab_size, index, target_sampler=self.sampler,
            longest=min(len(prompt) + settings.max_new_tokens + settings.gamma, target.max_context),
            stop_below=self.controller.stop_below,
        )  # fmt: skip
        self.stopping = Stopping(target, settings.stop, eos_ids)
        self.cache = target.new_cache()
        self.clock = clock_for(target.device)
        self.prepare_ms = self.prefill_ms = self.draft_prefill_ms = 0.0

    def _sampler(self, sampling: SamplingSettings) -> Sampler:
        compiled = () if self.compiled is None else (self.compiled.law(sampling), self.compiled.drawn(sampling))
        return Sampler(sampling, self.target.device, self.minimum, *compiled)

    @property
    def output(self) -> list[int]:
        """Tokens emitted so far."""
        return self.context.tokens[self.context.prompt_length :]

    @torch.inference_mode()
    def prepare(self) -> None:
        """What comes before any decoding and is no part of its time: room in the caches, and compiling."""
        started, plain = perf_counter(), self.proposer.name == "none"
        gammas = {0} if plain else {0, *self.controller.gammas(self.settings.gamma)}
        self.proposer.reset()
        self.controller.reset(self.settings.gamma)
        self.cache.reserve(self.context.longest)
        for gamma in gammas:
            self.target.expect(gamma + 1, gamma + 1)
        self.target.prepare(self.cache, self.proposer.needs.hidden_layers)
        self.proposer.prepare(self.context)
        if self.compiled is not None:
            if not plain and not self.proposer.deterministic:
                self.context.sampler.prepare(self.target.blank_logits(1))
            for proposed in gammas:
                rows = self.sampler.law(self.target.blank_logits(proposed + 1))
                self.compiled.prepare(rows, self.proposer.deterministic or not proposed)
        self.prepare_ms = (perf_counter() - started) * 1e3

    @torch.inference_mode()
    def prefill(self) -> None:
        """Prepare; then forward the prompt but its last token, target and proposer apart; times in ms."""
        self.prepare()
        context, needs = self.context, self.proposer.needs
        if self.sampler.penalises or context.sampler.penalises:
            context.seen = torch.zeros(context.vocab_size, dtype=torch.bool, device=context.device)
            context.seen[context.ids()] = True
        self.clock.start()
        if len(context.tokens) > 1:
            forward = self.target.forward(context.ids(0, -1), self.cache, rows=1, layers=needs.hidden_layers)
            self.cache.rollback(0)
            context.hidden = forward.hidden
        if self.proposer.name != "none" and not self.cache.can_rollback:
            raise InputError(NO_ROLLBACK)
        context.cache = self.cache if needs.cache else None
        self.clock.mark("verify")
        self.proposer.prefill(context)
        self.clock.mark("propose")
        times = self.clock.read()
        self.prefill_ms, self.draft_prefill_ms = times["verify"], times["propose"]

    @torch.inference_mode()
    def round(self) -> Round:
        """Propose, verify in one target forward, decide, commit, roll back."""
        context, clock = self.context, self.clock
        length = len(context.tokens)
        gamma = self.controller.gamma()
        asked, shortened = self._asked(gamma, length)
        self.minimum.left = self.settings.min_new_tokens - (length - context.prompt_length)
        clock.start()
        last = context.ids(-1)
        proposal, drafted = self._propose(asked)
        clock.mark("propose")
        unseen = context.hidden
        target_probs = self._target_rows(last, proposal)
        clock.mark("verify")
        choose, uniforms = self.streams.for_verifier(self.index, context.round, proposal.size, drafted)
        verdict = (self.compiled or self.verifier).verify(proposal, target_probs, choose)
        decision = self._synchronise(proposal, target_probs, verdict)
        self._check_depth(decision, asked)
        clock.mark("accept")
        emitted, stop_reason = self._commit([*decision.kept, decision.next_token])
        decision = replace(decision, emitted=emitted)
        self._roll_back(proposal, decision)
        if unseen and not asked:  # no proposal was made from these hidden states: the next one needs them as well
            context.hidden = {layer: torch.cat([unseen[layer], rows]) for layer, rows in context.hidden.items()}
        clock.mark("rollback")
        context.round += 1
        step = Round(
            self.index, context.round - 1, length, gamma, asked, shortened or proposal.shortened,
            proposal, target_probs, verdict, decision, uniforms, stop_reason, clock.read(),
            self.cache.length, self.cache.nbytes, self.proposer.cache_bytes,
        )  # fmt: skip
        self.controller.observe(step)
        return step

    def _asked(self, gamma: int, length: int) -> tuple[int, str]:
        """How many guesses fit, at most gamma, and what limits them: a round emits at most one token more than it
        proposes."""
        budget = self.settings.max_new_tokens - (length - self.context.prompt_length)
        room = self.target.max_context - length
        asked = min(gamma, budget - 1, room - 1)
        shortened = "" if asked == gamma else "budget" if budget <= room else "context"
        return asked, shortened

    def _propose(self, asked: int) -> tuple[Proposal, RoundUniforms]:
        proposer = self.proposer
        most = proposer.most_nodes(asked) if asked else 0
        choose, drafted = self.streams.for_proposer(self.index, self.context.round, most)
        if asked == 0:
            return nothing(self.context), drafted
        proposal = proposer.propose(self.context, asked, choose)
        if proposal.size > most:
            raise ValueError(f"the proposer {proposer.name} gave {proposal.size} tokens, {most} were asked for")
        if proposal.is_tree and not proposer.drafts_trees:
            raise ValueError(f"the proposer {proposer.name} gave a tree; one that drafts trees must say so")
        return proposal, drafted

    def _target_rows(self, last: torch.Tensor, proposal: Proposal) -> torch.Tensor:
        """(n + 1, vocab) probabilities of the target after the last token of the context and after each guess."""
        context, needs = self.context, self.proposer.needs
        ids = torch.cat([last, proposal.tokens])
        visible = visible_rows(proposal.ancestors) if proposal.is_tree else None
        forward = self.target.forward(ids, self.cache, layers=needs.hidden_layers, visible=visible)
        context.hidden = forward.hidden
        if proposal.is_tree:
            penalises, held = self.sampler.penalises, self.minimum.left > 0
            seen = seen_in_tree(context.seen, proposal.tokens, proposal.ancestors) if penalises else None
            target_probs = self.sampler(forward.logits, seen, ahead=rows_ahead(proposal.ancestors) if held else None)
        else:
            target_probs = self.sampler(forward.logits, context.seen, proposal.tokens)
        context.rows = target_probs if needs.rows else None
        return target_probs

    def _synchronise(self, proposal: Proposal, target_probs: torch.Tensor, verdict: Verdict) -> Decision:
        """The round's one synchronisation with the device; how much is emitted is not known yet.

        Raises `InputError` when a row held NaN.
        """
        summary = verdict.summary
        if summary is None:
            summary = summarised(proposal, target_probs, verdict)
        *guesses, accepted, next_token, target_nan, draft_nan = summary.tolist()
        for sick, whose in ((target_nan, "target"), (draft_nan, "draft")):
            if sick:
                raise InputError(
                    f"the {whose}'s probabilities in round {self.context.round} are not numbers (NaN); its weights are "
                    "damaged or its dtype overflows: try dtype float32"
                )
        if not proposal.is_tree:
            return Decision(guesses, accepted, next_token, 0)
        n = proposal.size
        parents, path = guesses[n : 2 * n], guesses[2 * n : 2 * n + accepted]
        return Decision(guesses[:n], accepted, next_token, 0, parents, path)

    def _check_depth(self, decision: Decision, asked: int) -> None:
        """A tree's shape is known on the host only now."""
        if decision.parents is not None and (deepest := max(depths_of(decision.parents))) > asked:
            raise ValueError(f"the proposer {self.proposer.name} gave a tree of depth {deepest}, {asked} was asked for")

    def _commit(self, block: list[int]) -> tuple[int, str | None]:
        """Append the block up to where the sequence stops; how many tokens were appended, and why it stops."""
        context = self.context
        emitted, stop_reason = self.stopping.cut(block, self.output)
        context.tokens.extend(block[:emitted])
        if context.seen is not None:
            context.seen[context.ids(-emitted)] = True
        if stop_reason is None and len(self.output) >= self.settings.max_new_tokens:
            stop_reason = "length"
        if stop_reason is None and len(context.tokens) >= self.target.max_context:
            stop_reason = "context"
        return emitted, stop_reason

    def _roll_back(self, proposal: Proposal, decision: Decision) -> None:
        """Drop from both caches what did not reach the context; the last token of the context is never cached."""
        context, cached = self.context, decision.emitted - 1
        if proposal.is_tree:
            self.cache.keep(proposal.size, decision.path[:cached])
            stayed = torch.tensor([0, *(node + 1 for node in decision.path[:cached])], device=context.device)
            context.hidden = {layer: rows[stayed] for layer, rows in context.hidden.items()}
        else:
            self.cache.rollback(proposal.size - cached)
            context.hidden = {layer: rows[: decision.emitted] for layer, rows in context.hidden.items()}
        self.proposer.observe(decision)


def decode_rounds(sequence: Sequence) -> Iterator[Round]:
    """Prefill, then rounds until the sequence stops.

    >>> from specworkbench.engine import Decoder, load_model, make_proposer
    >>> decoder = Decoder(load_model("embedded"), make_proposer("ngram"), settings=DecodeSettings(max_new_tokens=8))
    >>> sequence = decoder.start("a b a b")
    >>> sum(one.decision.emitted for one in decode_rounds(sequence))
    8
    """
    sequence.prefill()
    while True:
        step = sequence.round()
        yield step
        if step.stop_reason is not None:
            return


def _check_room(target: LanguageModel, prompt: list[int], settings: DecodeSettings) -> None:
    if not prompt:
        raise InputError("the prompt has no tokens; give at least one word to continue from")
    if len(prompt) >= target.max_context:
        raise InputError(
            f"the prompt has {len(prompt)} tokens and {target.name} reads at most {target.max_context}, "
            "one of them new; shorten the prompt or choose a model with a longer context"
        )
    if settings.gamma >= target.max_context:
        raise InputError(f"gamma is {settings.gamma}, past the context of {target.name} ({target.max_context} tokens)")


__all__ = ["DecodeSettings", "Round", "Sequence", "decode_rounds"]
