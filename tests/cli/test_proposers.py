"""`proposers`: everything that is registered, as it describes itself."""

import pytest

from specworkbench.engine.contracts import Proposer
from specworkbench.engine.proposers import PROPOSERS
from tests.experiments.toys import strict_json


@pytest.fixture
def toy(monkeypatch):
    class Toy(Proposer):
        name, summary, paper, weights = "toy", "guesses well", "Somebody 2020", "a head of its own"
        default_weights, needs_target, drafts_trees, instrument = "embedded/toy", True, True, True

        def __init__(self, draft, widths: tuple = (3, 2), strict: bool = True, share: float = 0.5):
            pass

    monkeypatch.setitem(PROPOSERS, "toy", Toy)
    return Toy


def test_json_lists_everything_that_is_registered_in_its_order(command, toy):
    code, out, _ = command("proposers", "--json")
    listed = strict_json(out)["proposers"]
    assert code == 0 and [entry["name"] for entry in listed] == list(PROPOSERS)
    for entry, kind in zip(listed, PROPOSERS.values(), strict=True):
        for name in ("summary", "paper", "default_weights", "needs_target", "deterministic", "drafts_trees"):
            assert entry[name] == getattr(kind, name)
        assert entry["instrument"] == kind.instrument and set(entry["settings"]) == set(kind.settings())


def test_json_says_what_a_proposer_says_of_itself(command, toy):
    entry = strict_json(command("proposers", "--json")[1])["proposers"][-1]
    assert entry == {
        "name": "toy",
        "summary": "guesses well",
        "weights": "a head of its own",
        "default_weights": "embedded/toy",
        "needs_target": True,
        "deterministic": False,
        "drafts_trees": True,
        "instrument": True,
        "settings": {"widths": [3, 2], "strict": True, "share": 0.5},
        "paper": "Somebody 2020",
    }


def test_the_table_says_it_in_words_and_settings_as_they_are_written(command, toy):
    code, out, _ = command("proposers")
    _, _, row = out.partition("toy ")
    said = ("guesses well", "a head of its own", "works on the target", "default: embedded/toy", "drawn", "trees")
    assert code == 0
    for words in (*said, "instrument", "widths=3,2", "strict=true", "share=0.5", "Somebody 2020"):
        assert words in row
    assert all(name in out for name in PROPOSERS)


def test_every_registered_proposer_says_what_it_does():
    assert all(kind.summary for kind in PROPOSERS.values())
