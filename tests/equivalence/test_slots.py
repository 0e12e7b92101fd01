"""The slot property: given that a slot of a round is reached, and what came before, its token follows p.

Sampled tests rest on it: they may sort the tokens by slot, as whether a slot is reached is settled before its token is.
"""

import pytest
import torch

from specworkbench.engine import SamplingSettings
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.choosers import BranchingStreams, enumerate_paths
from specworkbench.equivalence.law import fresh_row, slot_law, too_early
from specworkbench.equivalence.toys import table_setup
from tests.equivalence.exact import EXACT, SEEN, cases, setup_of

CHOSEN = ("temperature 1", "several EOS", "everything")
SLOTTED = [case for case in cases() if case[2] in CHOSEN and case[1] not in ("none", "short draft context")]


def target_row(setup, output):
    banned = too_early(setup.target, len(output), setup.settings)
    return fresh_row(setup.target, (*setup.prompt, *output), setup.settings.sampling, banned)


def alternative(setup, output, p):
    """p mixed with the draft's row, as a sampled test bets, on p's own tokens."""
    settings = setup.settings
    draft = getattr(setup.proposer, "draft", None)
    q = torch.ones_like(p) if draft is None else fresh_row(
        draft, (*setup.prompt, *output), settings.draft_sampling or settings.sampling
    )  # fmt: skip
    mixed = (0.5 * p + 0.5 * q / q.sum()) * (p > 0)
    return mixed / mixed.sum()


def worst(setup, law):
    """By slot, the largest difference from p of a token's conditional probability, and from 1 of a bet's mean."""
    found = {}
    for (output, slot), tokens in law.items():
        p, total = target_row(setup, output), sum(tokens.values())
        share = torch.tensor([tokens.get(token, 0.0) / total for token in range(len(p))], dtype=p.dtype)
        ratio = torch.where(p > 0, alternative(setup, output, p) / p, 0.0)
        off = max(float((share - p).abs().max()), abs(float((share * ratio).sum()) - 1.0))
        found[slot] = max(found.get(slot, 0.0), off)
    return found


@pytest.mark.parametrize("rule, kind, setting", SLOTTED)
def test_the_token_of_every_slot_follows_the_targets_row(rule, kind, setting):
    setup = setup_of(rule, kind, setting)
    found = worst(setup, slot_law(setup))
    assert max(found.values()) < EXACT
    assert set(found) == {1, 2, 3} or kind != "draft_model"


@pytest.mark.parametrize("rule", ["token", "block", "equality", "tree"])
def test_slots_that_a_round_decided_and_eos_cut_off_follow_it_too(rule):
    """Of the first round, all that the rule decided, after an EOS as well."""
    setup = setup_of(rule, "draft_model", "several EOS")
    law = {}

    def decided(root):
        sequence = setup.start(BranchingStreams(root))
        sequence.prefill()
        decision = sequence.round().decision
        return (*decision.kept, decision.next_token)

    for block, weight in enumerate_paths(decided):
        for at, token in enumerate(block):
            tokens = law.setdefault((block[:at], at + 1), {})
            tokens[token] = tokens.get(token, 0.0) + weight
    assert any(output and output[-1] in (0, 1) for output, _ in law)
    found = worst(setup, law)
    assert set(found) == {1, 2, 3} and max(found.values()) < EXACT


def test_reached_slots_are_as_many_as_emitted_tokens():
    setup = setup_of("block", "draft_model", "temperature 1")
    assert sum(sum(tokens.values()) for tokens in slot_law(setup).values()) == pytest.approx(3.0, abs=EXACT)


class BonusFromLastRow(TokenVerifier):
    def next_row(self, proposal, p, q, accepted):
        return p[accepted - 1 : accepted] if 0 < accepted == len(q) else super().next_row(proposal, p, q, accepted)


def test_a_fault_shows_at_its_slot_and_only_there():
    setup = setup_of("token", "draft_model", "temperature 1")
    found = worst(setup, slot_law(setup.but(verifier=BonusFromLastRow())))
    assert found[1] < EXACT and found[2] > SEEN and found[3] > SEEN  # slot 2 is the bonus of a round of one guess
    setup = table_setup(7, vocab=4, rule="lenient")
    assert worst(setup, slot_law(setup))[1] > SEEN


def test_accepted_tokens_alone_do_not_follow_it():
    """Sorting by slot is allowed; sorting by what became of a guess is not: kept ones follow min(p, q), normalised."""
    setup, kept = setup_of("token", "draft_model", "temperature 1"), {}

    def first(root):
        sequence = setup.start(BranchingStreams(root))
        sequence.prefill()
        return sequence.round().decision.kept[:1]

    for token, weight in enumerate_paths(first):
        if token:
            kept[token[0]] = kept.get(token[0], 0.0) + weight
    p, q = (fresh_row(model, setup.prompt, SamplingSettings()) for model in (setup.target, setup.proposer.draft))
    least = torch.minimum(p, q)
    share = torch.tensor([kept.get(token, 0.0) for token in range(4)], dtype=p.dtype) / sum(kept.values())
    assert torch.allclose(share, least / least.sum(), atol=EXACT) and (share - p).abs().max() > SEEN
