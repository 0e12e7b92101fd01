"""Every proposer holds the proposer contract, and every check of it notices the fault it is there for."""

import re
from functools import partial

import pytest
import torch

from specworkbench.engine.contracts import Context, Decision, Proposal, Proposer
from specworkbench.engine.proposers import PROPOSERS, DraftModelProposer, NgramProposer, SuffixProposer
from specworkbench.engine.rng import Chooser
from specworkbench.paths import PACKAGE
from tests.engine import proposer_checks as checks
from tests.engine.proposer_cases import CASES, Case, toy_draft

every_proposer = pytest.mark.parametrize("case", CASES, ids=str)
check_processed_law = partial(checks.check_law, processed=True)


def test_every_proposer_is_listed_under_labels_of_their_own():
    assert {case.name for case in CASES} == set(PROPOSERS), "list every proposer in tests/engine/proposer_cases.py"
    assert len({str(case) for case in CASES}) == len(CASES)


@every_proposer
def test_rows_reported_are_the_rows_drawn_from(case):
    checks.check_reported_rows(case)


@every_proposer
def test_after_every_kind_of_round_it_guesses_as_one_that_reads_the_context_anew(case):
    if not case.memoryless:
        pytest.skip(f"{case} guesses from more than the context")
    checks.check_state(case)


@every_proposer
def test_at_most_gamma_tokens_are_proposed_for_every_length_of_prompt(case):
    checks.check_sizes(case)


@every_proposer
def test_limits_and_eos_inside_a_proposal_end_the_sequence(case):
    checks.check_ends(case)


@every_proposer
def test_the_same_prompt_gives_the_same_trace_whatever_came_between(case):
    checks.check_repeats(case)


@every_proposer
def test_the_law_is_the_targets_own(case):
    checks.check_law(case)


@every_proposer
def test_the_law_with_top_k_penalty_and_eos_is_the_targets_own(case):
    check_processed_law(case)


@every_proposer
def test_what_a_round_cost_is_recorded(case):
    checks.check_cost(case)


@every_proposer
def test_traces_keep_their_contracts_whatever_is_captured(case):
    checks.check_traces(case)


@every_proposer
def test_it_describes_itself_and_its_settings(case):
    checks.check_description(case)


# ---------------------------------------------------------------- one fault for each check


class WrongRows(DraftModelProposer):
    """Reports flatter rows than it drew from."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        flatter = (proposal.probs + 1 / context.vocab_size) / 2
        return Proposal(proposal.tokens, flatter, forwards=proposal.forwards, positions=proposal.positions)


class OwnGenerator(DraftModelProposer):
    """Draws from a generator of its own."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return super().propose(context, gamma, _Multinomial())


class _Multinomial:
    def draw(self, probs: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(probs, 1).squeeze(-1)


class StaleCache(DraftModelProposer):
    """Leaves another token in its cache where a guess was rejected."""

    def observe(self, decision: Decision) -> None:
        super().observe(decision)
        if decision.accepted < len(decision.proposed):
            self._cache.rollback(1)
            self.draft.forward(torch.tensor([3]), self._cache, rows=1)


class StaleAfterEos(DraftModelProposer):
    """Keeps what was accepted and never emitted, after an EOS in mid-proposal."""

    def observe(self, decision: Decision) -> None:
        if decision.emitted > decision.accepted:
            super().observe(decision)


class OneTooMany(NgramProposer):
    """Guesses one token more than it is asked for."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return super().propose(context, gamma + 1, choose)


class PairsAtLeast(NgramProposer):
    """Guesses two tokens where only one is left to decode."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        return super().propose(context, max(gamma, 2), choose)


class Rememberer(SuffixProposer):
    """Remembers the prompt before."""

    def __init__(self):
        super().__init__(corpus=True)


class Understated(DraftModelProposer):
    """Does not count its forwards."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        return Proposal(proposal.tokens, proposal.probs)


class Leaky(DraftModelProposer):
    """Keeps its old cache in memory, and counts it, after a reset."""

    def reset(self) -> None:
        self._old = getattr(self, "_cache", None)
        super().reset()

    @property
    def cache_bytes(self) -> int:
        return super().cache_bytes + (self._old.nbytes if self._old else 0)


class HalfRows(DraftModelProposer):
    """Reports weights that are not normalised."""

    def propose(self, context: Context, gamma: int, choose: Chooser) -> Proposal:
        proposal = super().propose(context, gamma, choose)
        return Proposal(proposal.tokens, proposal.probs / 2, forwards=1, positions=1)


class Untold(NgramProposer):
    """Has a setting that it does not keep as it was given."""

    def __init__(self, min_n: int = 1, max_n: int = 3):
        super().__init__(min_n, max_n)
        self.max_n = {max_n}


FAULTS = (
    (WrongRows, checks.check_reported_rows, AssertionError),
    (WrongRows, checks.check_law, AssertionError),
    (WrongRows, check_processed_law, AssertionError),
    (OwnGenerator, checks.check_reported_rows, AssertionError),
    (OwnGenerator, checks.check_repeats, AssertionError),
    (StaleCache, checks.check_state, AssertionError),
    (StaleAfterEos, checks.check_state, RuntimeError),  # it has nothing left to forward
    (OneTooMany, checks.check_sizes, AssertionError),
    (PairsAtLeast, checks.check_ends, ValueError),  # the loop itself refuses them
    (Rememberer, checks.check_repeats, AssertionError),
    (Understated, checks.check_cost, AssertionError),
    (Leaky, checks.check_cost, AssertionError),
    (HalfRows, checks.check_traces, AssertionError),
    (Untold, checks.check_description, TypeError),  # what JSON says of a set
)


@pytest.mark.parametrize("kind, check, error", FAULTS)
def test_a_fault_is_noticed(kind, check, error):
    drafts = issubclass(kind, DraftModelProposer)
    case = Case(kind.name, weights=toy_draft if drafts else None, kind=kind, runs_model=drafts, caches=drafts)
    with pytest.raises(error):
        check(case)


def test_every_check_has_a_fault_that_it_notices():
    assert {check for _, check, _ in FAULTS} >= set(checks.CHECKS)


# ---------------------------------------------------------------- the documentation's own proposer


@pytest.fixture(scope="module")
def documented() -> Case:
    """The proposer that CONTRIBUTING.md shows, as a case."""
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(source.splitlines()) < 40
    names: dict[str, object] = {"__name__": "documented"}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    (kind,) = [
        found for found in names.values()
        if isinstance(found, type) and issubclass(found, Proposer) and found is not Proposer
    ]  # fmt: skip
    return Case(kind.name, kind=kind)


@pytest.mark.parametrize("check", [*checks.CHECKS, check_processed_law])
def test_the_proposer_of_the_documentation_holds_the_contract(check, documented):
    check(documented)
