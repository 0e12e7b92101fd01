"""The closed forms are the code's truth: the real rules, enumerated over one guess, give the same laws."""

import numpy as np
import pytest
import torch

from specworkbench.engine.contracts import Proposal
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.engine.verifiers.chain import one_hot_best
from specworkbench.engine.verifiers.token import TokenVerifier
from specworkbench.equivalence.choosers import enumerate_paths
from specworkbench.equivalence.mutants import rules
from specworkbench.theory.one_position import RULES, emitted_law, one_position
from specworkbench.theory.one_position import SETTINGS as theory_settings

EXACT = 1e-12


class Floored(TokenVerifier):
    """`FlooredDraft` with any floor."""

    def __init__(self, floor):
        self.floor = floor

    def accept_probs(self, proposal, p, q):
        return super().accept_probs(proposal, p, q.clamp(min=self.floor))


FAULTS = {
    "always accept": rules.AcceptAlways,
    "resample from p": rules.ResampleFromTarget,
    "resample from q": rules.RedrawnFromDraft,
    "residual |p − q|": rules.AbsoluteResidual,
    "residual q − p": rules.ReversedResidual,
    "softmax of the residual": rules.SoftmaxResidual,
    "ratio q/p": rules.InvertedRatio,
    "accept with p": rules.AcceptWithTarget,
    "q floored": Floored,
    "raw q": TokenVerifier,
    "greedy draft": TokenVerifier,
}


def verifier(rule, **settings):
    """The real code of a rule, right or wrong."""
    code = FAULTS.get(rule) or VERIFIERS[rule]
    return code(**settings) if rule in VERIFIERS or code is Floored else code()


def drawn_from(rule, q, **settings):
    """What the draft really draws its guess from."""
    row = torch.tensor(q)
    if rule == "raw q":
        return row.masked_fill(row < row.topk(settings["k"]).values[-1], 0.0).numpy() / sum(sorted(q)[-settings["k"] :])
    if rule == "greedy draft":
        return one_hot_best(row.unsqueeze(0), torch.tensor(0))[0].numpy()
    return q


def enumerated(rule, p, q, **settings):
    """(law of the first token, probability of acceptance) of the real code."""
    code, guesses = verifier(rule, **settings), drawn_from(rule, q, **settings)
    rows = torch.tensor(np.stack([p, np.full(len(p), 1 / len(p))]))
    law, accepted = np.zeros(len(p)), 0.0
    for guess, share in enumerate(guesses):
        if share == 0:
            continue
        proposal = Proposal(torch.tensor([guess]), torch.tensor(q).unsqueeze(0))
        for verdict, weight in enumerate_paths(lambda choose, it=proposal: code.verify(it, rows, choose)):
            kept = int(verdict.accepted) == 1
            accepted += share * weight * kept
            law[guess if kept else int(verdict.next_token)] += share * weight
    return law, accepted


def pairs():
    random = np.random.default_rng(7)
    for size in (2, 3, 5, 8):
        yield tuple(random.dirichlet(np.ones(size), size=2))
    yield np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.0, 0.1, 0.3, 0.6])
    yield np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 0.25, 0.75])
    yield np.array([0.6, 0.3, 0.1]), np.array([0.0, 1.0, 0.0])
    yield np.array([0.6, 0.3, 0.1]), np.array([0.6, 0.3, 0.1])


SETTINGS = {
    "lenient": [{"leniency": 0.8}, {"leniency": 0.3}],
    "ensemble": [{"weight": 0.8}, {"weight": 0.3}],
    "typical": [{"epsilon": 0.09, "delta": 0.3}, {"epsilon": 0.5, "delta": 0.9}],
    "raw q": [{"k": 1}, {"k": 2}],
    "q floored": [{"floor": 0.05}, {"floor": 0.4}],
}


@pytest.mark.parametrize("rule", RULES)
def test_the_closed_form_is_what_the_real_code_does(rule):
    for p, q in pairs():
        for settings in SETTINGS.get(rule, [{}]):
            position = one_position(p, q, rule, **settings)
            law, accepted = enumerated(rule, p, q, **settings)
            assert position.emitted == pytest.approx(law, abs=EXACT)
            assert position.acceptance == pytest.approx(accepted, abs=EXACT)


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if name in VERIFIERS])
def test_a_rule_of_the_engine_is_called_exact_where_it_is_lossless(rule):
    assert (RULES[rule].kind == "exact") == VERIFIERS[rule].lossless


@pytest.mark.parametrize("rule", ["block", "tree"])
def test_with_one_guess_these_are_the_token_rule(rule):
    for p, q in pairs():
        law, accepted = enumerated(rule, p, q)
        assert law == pytest.approx(emitted_law(p, q), abs=EXACT)
        assert accepted == pytest.approx(np.minimum(p, q).sum(), abs=EXACT)


def test_the_floor_of_the_mutant_is_the_default():
    assert SETTINGS["q floored"][0]["floor"] == theory_settings["floor"].default == 0.05
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.02, 0.08, 0.9])
    rows = torch.tensor(np.stack([p, p]))
    proposal = Proposal(torch.tensor([0]), torch.tensor(q).unsqueeze(0))
    ours = Floored(0.05).accept_probs(proposal, rows, proposal.probs)
    assert torch.equal(ours, rules.FlooredDraft().accept_probs(proposal, rows, proposal.probs)) and ours == 1.0


def test_no_two_rules_are_the_same_code():
    """So that a closed form cannot be right for another rule's code."""
    p, q = np.array([0.35, 0.3, 0.2, 0.13, 0.02]), np.array([0.1, 0.22, 0.15, 0.5, 0.03])
    found = [enumerated(rule, p, q, **SETTINGS.get(rule, [{}])[-1]) for rule in RULES]
    assert len({(*law.round(9), round(accepted, 9)) for law, accepted in found}) == len(RULES)
