"""The twelve claims are complete, and each has studies, words and a rule."""

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.claims import CLAIMS, claims_named, studies_for
from specworkbench.experiments.claims.studies import needed

ASKED = {
    "break-even", "gamma-3-to-5", "late-positions", "temperature", "code-over-prose", "draft-size", "stronger-slower",
    "short-outputs", "long-prompts", "quantised-target", "retrieval", "acceptance-alone",
}  # fmt: skip


def test_all_twelve_are_there_once():
    names = [claim.name for claim in CLAIMS]
    assert set(names) == ASKED and len(names) == 12


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_says_what_it_is_where_it_is_said_and_what_would_change_it(claim):
    assert claim.statement.endswith(".") and claim.said and claim.experiment and claim.effect and claim.change
    assert claim.quantifier in ("every", "some") and claim.region.low < claim.region.high
    assert claim.region.low > -float("inf") or claim.region.high < float("inf")


@pytest.mark.parametrize("quick", [False, True])
def test_every_claim_finds_its_studies(quick):
    studies = studies_for(quick=quick)
    assert all(name in studies for claim in CLAIMS for name in claim.studies)
    assert set(needed(CLAIMS, studies)) == set(studies)  # and no study is decoded for nothing


def test_a_pair_is_tested_with_its_own_draft():
    studies = studies_for("some/target", ["some/draft"])
    assert all(study.target == ("some/target",) for study in studies.values())
    assert "draft_model:some/draft" in studies["proposers"].proposer
    with pytest.raises(InputError, match="drafts of its own"):
        studies_for("embedded", ["some/draft"])


def test_claims_are_chosen_by_name_in_their_own_order():
    assert [claim.name for claim in claims_named("retrieval, break-even")] == ["break-even", "retrieval"]
    assert claims_named(None) == CLAIMS
    with pytest.raises(InputError, match="there is no claim 'nonsense'"):
        claims_named("nonsense")
