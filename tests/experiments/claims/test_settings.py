"""Figures of cells by kind of text."""

import pytest

from specworkbench.experiments.claims.sample import Sample
from specworkbench.experiments.claims.settings import by_bucket
from tests.experiments.claims.evidence_cases import evidence


def test_figures_are_told_apart_by_kind_of_text_each_with_its_interval():
    alphas = {"code": 0.5, "prose": 0.3, "structured": 0.9}
    made = evidence({"proposer": "draft_model:a/small", "alpha": alphas}, {"temperature": 1.0, "alpha": 0.2})
    table = by_bucket(made, Sample.alpha)
    assert table["proposer"].tolist() == ["small"] * 3 + ["ngram"] * 3
    assert dict(zip(table["bucket"][:3], table["value"][:3], strict=True)) == pytest.approx(alphas, rel=0.05)
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()
    assert table["temperature"].tolist() == [0.0] * 3 + [1.0] * 3
