"""`rules`: everything that is registered, as it describes itself, and whether it is lossless."""

import pytest

from specworkbench.engine.contracts import Verifier
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.trace.rule import LOSSY
from tests.experiments.toys import strict_json


@pytest.fixture
def toy(monkeypatch):
    class Toy(Verifier):
        name, summary, paper = "toy", "decides", "Somebody 2020"
        lossless, judges_trees = False, True

        def __init__(self, share: float = 0.5, strict: bool = True):
            self.share, self.strict = share, strict

    monkeypatch.setitem(VERIFIERS, "toy", Toy)
    return Toy


def test_json_lists_everything_that_is_registered_in_its_order(command, toy):
    code, out, _ = command("rules", "--json")
    listed = strict_json(out)["rules"]
    assert code == 0 and [entry["name"] for entry in listed] == list(VERIFIERS)
    for entry, kind in zip(listed, VERIFIERS.values(), strict=True):
        for name in ("summary", "paper", "lossless", "greedy_only", "judges_trees"):
            assert entry[name] == getattr(kind, name)
        assert entry["settings"] == kind.settings()


def test_the_table_says_it_in_words(command, toy):
    code, out, _ = command("rules")
    _, _, row = out.partition("toy ")
    assert code == 0 and all(name in out for name in VERIFIERS)
    for words in ("no: lossy", "decides", "chains, trees", "share=0.5", "strict=true", "Somebody 2020", LOSSY):
        assert words in row
    lines = {line.split()[0]: line for line in out.splitlines() if line.split() and line.split()[0] in VERIFIERS}
    for name, kind in VERIFIERS.items():
        assert ("no: lossy" in lines[name]) == (not kind.lossless)
    assert "at temperature 0" in lines["greedy"] and " yes " in lines["token"]


def test_every_registered_rule_says_what_it_does_and_who_found_it():
    assert all(kind.summary and kind.paper for kind in VERIFIERS.values())
