"""What panels offer is what the engine has, and only what is there."""

import pytest

from specworkbench.paths import HEAD_MARK
from specworkbench.widgets.offered import (
    CONTROLLERS,
    ENTRIES,
    INSTRUMENTS,
    ON_REQUEST,
    RULES,
    controller_options,
    proposers_for,
    rule_options,
    targets,
)


def test_the_names_are_those_of_the_engine():
    engine = pytest.importorskip("specworkbench.engine", reason="torch is not installed (the extra 'engine')")
    assert {name: rule.lossless for name, rule in engine.VERIFIERS.items()} == RULES
    assert list(engine.CONTROLLERS) == list(CONTROLLERS)
    assert {name for name, kind in engine.PROPOSERS.items() if kind.instrument} - {"none"} < set(INSTRUMENTS.values())
    named = {name for name, _ in ENTRIES.values()} | set(INSTRUMENTS.values()) | set(ON_REQUEST)
    assert named == set(engine.PROPOSERS)


def test_every_offer_for_the_embedded_target_can_be_parsed_and_suits_it():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    from specworkbench.experiments.plan import ProposerSpec

    for text in proposers_for("embedded").values():
        assert ProposerSpec.parse(text).label == text and ProposerSpec.parse(text).fitted("embedded")


def test_local_models_and_heads_are_offered_for_other_targets(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECWORKBENCH_MODELS", str(tmp_path))
    for name, config in (("large", "{}"), ("small", "{}"), ("head", f'{{"{HEAD_MARK}": "eagle"}}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config)
    found = list(proposers_for(str(tmp_path / "large")).values())
    assert found[:2] == [f"draft_model:{tmp_path / 'small'}", f"eagle:{tmp_path / 'head'}"]
    assert {"ngram", "suffix", "layer_skip", "oracle"} <= set(found) and "none" not in found
    assert not any("embedded" in spec for spec in found)
    assert targets() == ["embedded", str(tmp_path / "large"), str(tmp_path / "small")]


def test_rules_are_labelled_and_controllers_explained():
    words = {name: text for text, name in rule_options()}
    assert all(("lossy" in words[name]) != lossless for name, lossless in RULES.items())
    assert words[""].startswith("what suits") and all(": " in text for text, _ in controller_options())
