"""Every rule holds the verifier contract, and every check of it notices the fault it is there for."""

from dataclasses import replace

import pytest
import torch

from specworkbench.engine.verifiers import VERIFIERS, LenientVerifier, TokenVerifier, TreeVerifier
from tests.engine import verifier_checks as checks
from tests.engine.verifier_cases import CASES, Case


def test_every_rule_is_listed_under_labels_of_their_own():
    assert {case.name for case in CASES} == set(VERIFIERS), "list every rule in tests/engine/verifier_cases.py"
    assert len({str(case) for case in CASES}) == len(CASES)


def test_every_setting_has_a_value_that_is_refused():
    refused = {(case.name, name) for case in CASES for given in case.refused for name in given}
    assert refused == {(rule.name, name) for rule in VERIFIERS.values() for name in rule.settings()}


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_holds_the_contract(case, check):
    check(case)


# ---------------------------------------------------------------- one fault for each check


class AlwaysDouble(TokenVerifier):
    """Gives the weights of the next token in float64, whatever the rows are."""

    def next_row(self, proposal, p, q, accepted):
        return super().next_row(proposal, p, q, accepted).double()


class Looks(TokenVerifier):
    """Looks at the accepted length on the host."""

    def next_row(self, proposal, p, q, accepted):
        return p[-1:] if accepted == len(q) else super().next_row(proposal, p, q, accepted)


class ReadsToHost(TokenVerifier):
    """Reads the flags as a list."""

    def length(self, flags):
        return torch.tensor([*flags.tolist(), False].index(False))


class Remembers(TokenVerifier):
    """Is more lenient from its second round on."""

    seen = 0

    def accept_probs(self, proposal, p, q):
        self.seen += 1
        return super().accept_probs(proposal, p, q) * (0.5 if self.seen > 1 else 1.0)


class DrawsTwice(TokenVerifier):
    """Draws the next token again."""

    def verify(self, proposal, target_probs, choose):
        verdict = super().verify(proposal, target_probs, choose)
        again = choose.draw(verdict.next_probs.unsqueeze(0), at=verdict.accepted.unsqueeze(0))
        return replace(verdict, next_token=again.squeeze(0))


class NotStrict(TokenVerifier):
    """Accepts at u equal to the probability, too."""

    def verify(self, proposal, target_probs, choose):
        return super().verify(proposal, target_probs, _JustAbove(choose))


class _JustAbove:
    def __init__(self, choose):
        self.choose, self.draw = choose, choose.draw

    def accept(self, probs):
        return self.choose.accept(torch.nextafter(probs, torch.full_like(probs, 2.0)))


class OneForAll(TokenVerifier):
    """Keeps all guesses or none, as the first one passes."""

    def length(self, flags):
        return flags[:1].expand(flags.shape).long().sum()


class FlagsLater(TokenVerifier):
    """Reports the flags up to the first refused guess, not what each uniform said."""

    def verify(self, proposal, target_probs, choose):
        verdict = super().verify(proposal, target_probs, choose)
        return replace(verdict, flags=verdict.flags.long().cumprod(0).bool())


class CountsAll(TokenVerifier):
    """Keeps as many guesses as passed anywhere."""

    def length(self, flags):
        return flags.long().sum()


class FlatWhenEmpty(TokenVerifier):
    """Draws from all tokens alike where nothing was proposed."""

    def next_row(self, proposal, p, q, accepted):
        return super().next_row(proposal, p, q, accepted) if len(q) else torch.full_like(p, 1 / p.shape[-1])


class NeverQuiteZero(TokenVerifier):
    """Accepts with a thousandth at least."""

    def accept_probs(self, proposal, p, q):
        return super().accept_probs(proposal, p, q).clamp(min=1e-3)


class Floored(TokenVerifier):
    """Draws from a residual that leaves no token out."""

    def next_row(self, proposal, p, q, accepted):
        return super().next_row(proposal, p, q, accepted) + 1e-9


class TreesFromTarget(TreeVerifier):
    """Corrects from p in a tree."""

    def next_row(self, proposal, target_probs, left, row):
        return target_probs.index_select(0, row.unsqueeze(0))


class Resamples(TokenVerifier):
    """Says it is lossless, and draws from p where it refused a guess."""

    def next_row(self, proposal, p, q, accepted):
        return p.index_select(0, accepted.unsqueeze(0))


class Modest(TokenVerifier):
    """Says it is lossy, and is not."""

    lossless = False


class SaysHalf(TokenVerifier):
    """Reports half of what it compares with."""

    def verify(self, proposal, target_probs, choose):
        verdict = super().verify(proposal, target_probs, choose)
        return replace(verdict, accept_probs=verdict.accept_probs / 2)


class TakesAnything(LenientVerifier):
    """Has no limits."""

    def __init__(self, leniency: float = 0.8):
        self.leniency = leniency


class Untold(LenientVerifier):
    """Does not keep its setting as it was given."""

    def __init__(self, leniency: float = 0.8):
        super().__init__(leniency)
        self.leniency = leniency / 2


LENIENT = dict(settings={"leniency": 0.5}, refused=({"leniency": 0.0},))
FAULTS = (
    (AlwaysDouble, checks.check_shapes, AssertionError),
    (Looks, checks.check_values_unseen, RuntimeError),
    (ReadsToHost, checks.check_values_unseen, (RuntimeError, NotImplementedError)),
    (Remembers, checks.check_repeats, AssertionError),
    (DrawsTwice, checks.check_uniforms, ValueError),
    (NotStrict, checks.check_uniforms, AssertionError),
    (FlagsLater, checks.check_uniforms, AssertionError),
    (OneForAll, checks.check_length, AssertionError),
    (CountsAll, checks.check_length, AssertionError),
    (FlatWhenEmpty, checks.check_empty, AssertionError),
    (NeverQuiteZero, checks.check_impossible, AssertionError),
    (Floored, checks.check_impossible, AssertionError),
    (TreesFromTarget, checks.check_chain_as_tree, AssertionError),
    (Resamples, checks.check_law, AssertionError),
    (Modest, checks.check_law, AssertionError),
    (SaysHalf, checks.check_traces, AssertionError),
    (TakesAnything, checks.check_settings, pytest.fail.Exception),
    (Untold, checks.check_description, AssertionError),
)


@pytest.mark.parametrize("kind, check, error", FAULTS)
def test_a_fault_is_noticed(kind, check, error):
    case = Case(kind.name, kind=kind, **(LENIENT if issubclass(kind, LenientVerifier) else {}))
    with pytest.raises(error):
        check(case)


def test_every_check_has_a_fault_that_it_notices():
    assert {check for _, check, _ in FAULTS} == set(checks.CHECKS)
