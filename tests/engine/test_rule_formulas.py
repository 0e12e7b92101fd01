"""Each rule's formula against numbers by hand, a literal implementation, or another program's."""

import math
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import pytest
import torch
from transformers.generation.utils import _speculative_sampling

from specworkbench.engine.contracts import Proposal
from specworkbench.engine.rng import UniformChooser
from specworkbench.engine.sampling import SamplingSettings
from specworkbench.engine.verifiers import (
    BlockVerifier,
    EnsembleVerifier,
    EqualityVerifier,
    LenientVerifier,
    TokenVerifier,
    TypicalVerifier,
    make_verifier,
)
from specworkbench.equivalence.choosers import enumerate_paths
from specworkbench.errors import InputError
from tests.engine.verifier_cases import CHAINS, PROPOSALS, chain, random_rows
from tests.engine.verifier_checks import FIELDS, assert_same, uniforms

EXACT = 1e-12
P, Q = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64), torch.tensor([2 / 3, 1 / 3], dtype=torch.float64)


def first_tokens(rows):
    """Every chain of tokens, one a row, with its probability."""
    for tokens in product(range(rows.shape[1]), repeat=rows.shape[0]):
        yield torch.tensor(tokens), math.prod(rows[place, token].item() for place, token in enumerate(tokens))


def joint_law(rule, proposal, p):
    """Probability of (accepted length, next token), over all ways the rule's choices can fall."""
    law = {}
    for verdict, weight in enumerate_paths(lambda choose: rule.verify(proposal, p, choose)):
        key = int(verdict.accepted), int(verdict.next_token)
        law[key] = law.get(key, 0.0) + weight
    return law


def small_rows(n, seed):
    """(n, 3) probabilities."""
    rows = random_rows(n, seed)[:, :3]
    return rows / rows.sum(-1, keepdim=True)


def expected_accepted(rule, p, q):
    """E[accepted] over guesses drawn from q: (n, vocab) and the rule's own choices; p: (n + 1, vocab)."""
    return sum(
        chance * weight * length
        for tokens, chance in first_tokens(q)
        for (length, _), weight in joint_law(rule, Proposal(tokens, q), p).items()
    )


# ---------------------------------------------------------------- block


@pytest.mark.parametrize("rule, expected", [(TokenVerifier(), 10 / 9), (BlockVerifier(), 11 / 9)])
def test_the_papers_toy_accepts_ten_ninths_by_token_and_eleven_by_block(rule, expected):
    assert expected_accepted(rule, P.expand(3, 2), Q.expand(2, 2)) == pytest.approx(expected, abs=EXACT)


def test_block_compares_with_the_numbers_worked_by_hand():
    """Guesses 0, 1: b = (1/2, 1), r_1 = max(1/6 - 2/3, 0) + max(1/3 - 1/3, 0) = 0. Guesses 1, 0: b = (1, 1/2)."""
    for tokens, h in (([0, 1], [0.0, 1.0]), ([1, 0], [1.0, 0.5]), ([0, 0], [0.0, 0.25]), ([1, 1], [1.0, 1.0])):
        proposal = Proposal(torch.tensor(tokens), Q.expand(2, 2))
        verdict = BlockVerifier().verify(proposal, P.expand(3, 2), uniforms(2, 0))
        assert verdict.accept_probs.tolist() == pytest.approx(h, abs=EXACT)


def test_block_draws_from_b_p_minus_q_where_it_stops():
    p, q = random_rows(4, 3), random_rows(3, 5)
    for seed in range(20):
        proposal = replace(chain(seed), probs=q)
        ratios = [(p[i, token] / q[i, token]).item() for i, token in enumerate(proposal.tokens)]
        kept = [1.0]
        for ratio in ratios:
            kept.append(min(1.0, kept[-1] * ratio))
        verdict = BlockVerifier().verify(proposal, p, uniforms(3, seed))
        tau = int(verdict.accepted)
        expected = p[3] if tau == 3 else (kept[tau] * p[tau] - q[tau]).clamp(min=0.0)
        assert torch.allclose(verdict.next_probs, expected, rtol=0, atol=EXACT)


def test_block_keeps_at_least_i_guesses_with_b_i():
    """P(tau >= i | the first i guesses) = b_i, so that E[tau] is the expectation of the sum of all b."""
    p, q = small_rows(4, 7), small_rows(3, 8)
    reached, expected = {}, {}
    for tokens, chance in first_tokens(q):
        law, kept = joint_law(BlockVerifier(), Proposal(tokens, q), p), 1.0
        for place, token in enumerate(tokens.tolist(), start=1):
            kept = min(1.0, kept * (p[place - 1, token] / q[place - 1, token]).item())
            first = tuple(tokens[:place].tolist())
            beyond = sum(weight for (length, _), weight in law.items() if length >= place)
            reached[first] = reached.get(first, 0.0) + chance * beyond
            expected[first] = expected.get(first, 0.0) + chance * kept
    assert len(reached) == 3 + 9 + 27
    assert all(reached[first] == pytest.approx(expected[first], abs=EXACT) for first in expected)


@pytest.mark.parametrize("seed", range(4))
def test_block_accepts_at_least_what_token_accepts(seed):
    p, q = small_rows(3, seed), small_rows(2, 50 + seed)
    assert expected_accepted(BlockVerifier(), p, q) >= expected_accepted(TokenVerifier(), p, q) - EXACT


def test_with_certain_guesses_block_has_the_law_of_the_token_rule():
    """Which guesses are kept with which uniforms differs: with b_2 = p(x_1) p(x_2) one comparison decides on both."""
    for seed in range(6):
        proposal, p = PROPOSALS["one-hot"](seed), random_rows(4, seed, kept=3 if seed % 2 else 5)
        token, block = (joint_law(rule, proposal, p) for rule in (TokenVerifier(), BlockVerifier()))
        assert all(
            token.get(key, 0.0) == pytest.approx(block.get(key, 0.0), abs=EXACT) for key in token.keys() | block.keys()
        )


def test_of_a_single_certain_guess_block_and_token_agree_bit_for_bit():
    for seed in range(50):
        proposal, p = Proposal(torch.tensor([seed % 5])), random_rows(2, seed)
        assert_same(*(rule.verify(proposal, p, uniforms(1, seed)) for rule in (TokenVerifier(), BlockVerifier())))


def test_block_in_float32_never_leaves_the_probabilities():
    """With b = 1 and a little left over, h is 1 and not what r + 1 - 1 rounds to."""
    for left in (1e-3, 1e-7, 1e-9, 1e-20):
        q = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
        p = torch.tensor([[0.5, 0.5], [0.5 + left, 0.5], [1.0, 0.0]])
        verdict = BlockVerifier().verify(Proposal(torch.tensor([0, 0]), q), p, uniforms(2, 0, torch.float32))
        assert ((verdict.accept_probs >= 0) & (verdict.accept_probs <= 1)).all()


# ---------------------------------------------------------------- equality


def literal_equality(proposal, p):
    """Draw the target's own token at every position, keep guesses while they equal it, then its own: the joint law."""
    law = {}
    for own, weight in first_tokens(p):
        if weight:
            equal = [a == b for a, b in zip(own.tolist(), proposal.tokens.tolist(), strict=False)]
            length = [*equal, False].index(False)
            key = length, int(own[length])
            law[key] = law.get(key, 0.0) + weight
    return law


@pytest.mark.parametrize("kind", CHAINS)
def test_equality_has_the_law_of_drawing_everywhere_and_comparing(kind):
    for seed in range(4):
        proposal = PROPOSALS[kind](seed)
        p = random_rows(proposal.size + 1, seed, kept=3)
        found, expected = joint_law(EqualityVerifier(), proposal, p), literal_equality(proposal, p)
        assert found.keys() == expected.keys()
        assert all(found[key] == pytest.approx(expected[key], abs=EXACT) for key in expected)


def test_another_rules_joint_law_is_told_from_it():
    proposal, p = chain(1), random_rows(4, 1)
    found, expected = joint_law(TokenVerifier(), proposal, p), literal_equality(proposal, p)
    assert max(abs(found.get(key, 0.0) - expected.get(key, 0.0)) for key in found.keys() | expected.keys()) > 1e-3


def test_equality_accepts_with_the_overlap_of_p_times_q():
    p, q = random_rows(2, 1), random_rows(1, 2)
    accepted = expected_accepted(EqualityVerifier(), p, q)
    assert accepted == pytest.approx((p[0] * q[0]).sum().item(), abs=EXACT)


def test_equality_does_not_look_at_q():
    for seed in range(10):
        proposal, p = chain(seed), random_rows(4, seed)
        for other in (replace(proposal, probs=random_rows(3, 77)), replace(proposal, probs=None)):
            verdicts = (EqualityVerifier().verify(given, p, uniforms(3, seed)) for given in (proposal, other))
            assert_same(*verdicts)


# ---------------------------------------------------------------- the lossy ones


@pytest.mark.parametrize("leniency", [1.0, 0.7, 0.2])
def test_lenient_accepts_with_the_sum_of_min_p_over_leniency_and_q(leniency):
    p, q = random_rows(2, 3), random_rows(1, 4)
    expected = torch.minimum(p[0] / leniency, q[0]).sum().item()
    assert expected_accepted(LenientVerifier(leniency), p, q) == pytest.approx(expected, abs=EXACT)


def test_lenient_gives_no_token_more_than_p_over_leniency_by_guessing_it():
    p, q = random_rows(2, 3), random_rows(1, 4)
    for token in range(5):
        proposal = Proposal(torch.tensor([token]), q)
        accept = LenientVerifier(0.4).accept_probs(proposal, p, q).item()
        assert q[0, token] * accept <= p[0, token] / 0.4 + EXACT


@pytest.mark.parametrize("rule", [LenientVerifier(1.0), EnsembleVerifier(1.0)])
def test_at_their_limit_they_are_the_token_rule(rule):
    for seed in range(20):
        proposal, p = chain(seed), random_rows(4, seed)
        verdicts = (given.verify(proposal, p, uniforms(3, seed)) for given in (rule, TokenVerifier()))
        assert_same(*verdicts, names=FIELDS)


@pytest.mark.parametrize("weight", [0.3, 0.8])
def test_ensemble_accepts_and_corrects_as_transformers_does(weight):
    """Their uniforms set just beside our probabilities: they keep what we keep; the row they then draw from is ours."""
    for seed in range(20):
        proposal, p = chain(seed), random_rows(4, seed)
        probs = EnsembleVerifier(weight).accept_probs(proposal, p, proposal.probs)
        for aim in range(3):
            for offset in (-1e-9, 1e-9):
                u = torch.zeros(3, dtype=torch.float64)
                u[aim] = min(probs[aim].item() + offset, 1.0 - 2**-53)
                ours = EnsembleVerifier(weight).verify(proposal, p, UniformChooser(u, torch.rand(4, dtype=u.dtype)))
                theirs, row = transformers_verdict(proposal, p, weight, u)
                assert theirs == ours.accepted, (aim, offset)
                normalised = ours.next_probs / ours.next_probs.sum()
                assert torch.allclose(row, normalised, rtol=0, atol=1e-9)


def transformers_verdict(proposal, p, weight, u):
    """(accepted, the row of the next token) of transformers' own code with these uniforms."""
    drawn_from = []

    def multinomial(row, num_samples):
        drawn_from.append(row)
        return row.argmax(-1, keepdim=True)

    with (
        patch.object(torch, "rand_like", lambda like: u.view_as(like)),
        patch.object(torch, "multinomial", multinomial),
    ):
        _, accepted = _speculative_sampling(
            proposal.tokens[None], proposal.probs.log()[None], proposal.size, p.log()[None], weight
        )
    return int(accepted), drawn_from[0].flatten()


def test_typical_compares_p_with_epsilon_and_the_entropy_by_hand():
    """A row (.7, .2, .1) has H = 0.8018 nats, so delta exp(-H) = .3 x .4485 = .1345; a uniform row of 100 has .003."""
    sharp = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    for epsilon, delta, expected in ((0.09, 0.3, [1, 1, 1]), (0.5, 0.3, [1, 1, 0]), (0.5, 1.0, [1, 0, 0])):
        for token, accepted in enumerate(expected):
            proposal = Proposal(torch.tensor([token]))
            verdict = TypicalVerifier(epsilon, delta).verify(proposal, sharp.expand(2, 3), uniforms(1, 0))
            assert verdict.accept_probs.tolist() == [accepted] and verdict.next_token == 0
    flat = torch.full((2, 100), 0.01, dtype=torch.float64)
    assert TypicalVerifier().verify(Proposal(torch.tensor([5])), flat, uniforms(1, 0)).accepted == 1


def test_typical_is_strict_and_a_row_with_zeros_has_an_entropy():
    row = torch.tensor([[0.5, 0.5, 0.0]] * 2, dtype=torch.float64)  # H = ln 2: delta exp(-H) = delta / 2
    for delta, accepted in ((1.0, 0), (0.99, 1)):
        verdict = TypicalVerifier(1.0, delta).verify(Proposal(torch.tensor([1])), row, uniforms(1, 0))
        assert verdict.accepted == accepted


# ---------------------------------------------------------------- by name


def test_settings_are_written_behind_the_name():
    made = make_verifier("typical, epsilon=0.2,delta=0.4", SamplingSettings())
    assert (made.epsilon, made.delta) == (0.2, 0.4)


@pytest.mark.parametrize(
    "text, said",
    [
        ("magic", "there is no rule 'magic'; choose one of token, greedy,"),
        ("lenient,strength=1", "the rule lenient has no setting 'strength'; it has leniency=0.8"),
        ("token,leniency=1", "the rule token has no setting 'leniency'; it has none"),
        ("lenient,leniency=much", "leniency of the rule lenient is 'much'; write it as its default is, leniency=0.8"),
        ("lenient,leniency=nan", "leniency is nan; it must be above 0"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(text, said):
    with pytest.raises(InputError, match=said):
        make_verifier(text, SamplingSettings())
