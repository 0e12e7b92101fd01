"""The grid of a report: nothing twice, plain beside every proposer, nobody always first."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from specworkbench.engine.contracts import Proposer
from specworkbench.engine.proposers import PROPOSERS
from specworkbench.errors import InputError
from specworkbench.experiments.plan import Configuration, Plan, ProposerSpec, proposers_for
from tests.experiments.toys import PROMPTS

SPECS = (ProposerSpec("draft_model", "a"), ProposerSpec("draft_model", "b"), ProposerSpec("ngram"))


def plan(**options):
    return Plan(**{"target": "t", "proposers": SPECS, "prompts": PROMPTS, "gammas": (2, 4)} | options)


def test_every_prompt_meets_every_configuration_once():
    cells = Counter((cell.prompt.id, cell.configuration) for cell in plan().cells())
    assert set(cells.values()) == {1}
    assert len(cells) == len(PROMPTS) * 2 * (1 + 3 * 2)


def test_plain_decoding_does_not_depend_on_gamma():
    plain = [found for found in plan().configurations() if found.plain]
    assert [(found.gamma, found.temperature) for found in plain] == [(None, 0.0), (None, 1.0)]


def test_the_cells_of_a_prompt_and_a_temperature_follow_each_other():
    groups = [(cell.number, cell.configuration.temperature) for cell in plan().cells()]
    changes = sum(before != after for before, after in pairwise(groups))
    assert changes + 1 == len(set(groups))


def test_every_configuration_comes_first_equally_often():
    prompts = PROMPTS * 7
    grid = plan(prompts=prompts, temperatures=(1.0,), gammas=(4,))
    first = Counter(next(c.configuration for c in grid.cells() if c.number == i) for i in range(4))
    assert set(first.values()) == {1}


def test_repeated_gammas_temperatures_and_proposers_count_once():
    assert len(plan(gammas=(2, 2), temperatures=(1.0, 1.0), proposers=SPECS * 2).configurations()) == 1 + 3


def test_proposers_come_in_the_order_given_after_plain_decoding():
    configurations = plan(proposers=SPECS[::-1]).at(1.0)
    labels = ["none", "ngram", "ngram", "draft_model:b", "draft_model:b", "draft_model:a", "draft_model:a"]
    assert [found.label for found in configurations] == labels
    assert [found.gamma for found in configurations] == [None, 2, 4, 2, 4, 2, 4]


def test_a_name_says_proposer_settings_gamma_and_temperature():
    found = Configuration(ProposerSpec.parse("suffix,min_prob=0"), 4, 0.0)
    assert found.name == "suffix,min_prob=0 gamma 4 temperature 0"


class Adjustable(Proposer):
    """Takes weights and a setting of every type."""

    name, weights, default_weights = "adjustable", "a head", "embedded/head"

    def __init__(
        self, draft, layers: tuple = (1, 2), strength: float = 0.5, deep: bool = False, width: int = 3, tag=""
    ):
        pass


@pytest.fixture
def registry(monkeypatch):
    """`registry(...)`: just these proposers are registered beside `none`."""

    def only(*kinds):
        chosen = {kind.name: kind for kind in (PROPOSERS["none"], *kinds)}
        monkeypatch.setattr("specworkbench.engine.proposers.PROPOSERS", chosen)

    return only


@pytest.mark.parametrize(
    "text, label",
    [
        ("ngram", "ngram"),
        (" suffix , min_prob = 0.10 ", "suffix,min_prob=0.1"),
        ("suffix,corpus=yes,max_match=8", "suffix,max_match=8,corpus=true"),
        ("draft_model:embedded/draft-m", "draft_model:embedded/draft-m"),
        ("draft_model:/a,b/c:d", "draft_model:/a,b/c:d"),
        ("adjustable:o/head,width=1,layers=3,5,7,strength=1", "adjustable:o/head,layers=3,5,7,strength=1,width=1"),
        ("adjustable,layers=4,tag=V1.0", "adjustable,layers=4,tag=V1.0"),
        ("adjustable,strength=1e-7", "adjustable,strength=1e-07"),
    ],
)  # fmt: skip
def test_a_label_is_the_text_normalised_and_reads_back_as_the_same(monkeypatch, text, label):
    monkeypatch.setitem(PROPOSERS, "adjustable", Adjustable)
    spec = ProposerSpec.parse(text)
    assert spec.label == label and ProposerSpec.parse(label) == spec


def test_values_have_the_types_of_the_defaults(monkeypatch):
    monkeypatch.setitem(PROPOSERS, "adjustable", Adjustable)
    spec = ProposerSpec.parse("adjustable:x,layers=3,5,strength=1,deep=true,width=2")
    assert (spec.name, spec.weights) == ("adjustable", "x")
    assert dict(spec.settings) == {"layers": (3, 5), "strength": 1.0, "deep": True, "width": 2}
    assert [type(value) for _, value in spec.settings] == [tuple, float, bool, int]


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no proposer ''; choose one of none"),
        ("magic,x=1", "no proposer 'magic'"),
        ("suffix,min_prob", "'min_prob' in the proposer 'suffix,min_prob' is no setting; write it as NAME=VALUE"),
        ("suffix,min_prob=low", "min_prob of the proposer suffix is 'low'"),
        ("suffix,prob=1", "no setting 'prob'; it has max_match=16"),
        ("ngram:embedded/draft-s", "the proposer ngram takes no weights; leave 'embedded/draft-s' out"),
        ("draft_model:", "names no weights after the colon"),
    ],
)
def test_a_text_that_is_no_proposer_is_refused_in_a_sentence(text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        ProposerSpec.parse(text)


def labels(*arguments):
    return [spec.label for spec in proposers_for(*arguments)]


def test_drafts_are_short_for_draft_models_and_come_first():
    given = ("somebody/model", ["ngram,min_n=2", "draft_model:b", "ngram,min_n=2"], ["a", "b", "a"])
    assert labels(*given) == ["draft_model:a", "draft_model:b", "ngram,min_n=2"]


def test_default_weights_are_named_so_that_no_two_labels_mean_the_same():
    assert labels("embedded", ["draft_model", "draft_model:embedded/draft-s"]) == ["draft_model:embedded/draft-s"]


@pytest.mark.parametrize("there", [True, False])
def test_without_names_a_report_compares_whatever_works_without_more(registry, monkeypatch, tmp_path, there):
    """The embedded drafts, then what needs no weights or has its default ones, in the registry's order."""
    kinds = {name: PROPOSERS[name] for name in ("draft_model", "ngram")}
    on_target = type("OnTarget", (Proposer,), {"name": "on_target", "needs_target": True})
    dial = type("Dial", (Proposer,), {"name": "dial", "instrument": True})
    needy = type("Needy", (Proposer,), {"name": "needy", "weights": "a head"})
    registry(on_target, *kinds.values(), Adjustable, dial, needy)
    for name in ("target", "draft-m", "draft-s", *(["head"] if there else [])):
        (tmp_path / "models" / "embedded" / name).mkdir(parents=True)
        (tmp_path / "models" / "embedded" / name / "config.json").write_text("{}")
    monkeypatch.setattr("specworkbench.paths.data_dir", lambda: tmp_path)
    drafts = ["draft_model:embedded/draft-m", "draft_model:embedded/draft-s"]
    head = ["adjustable:embedded/head"] if there else []
    assert labels("embedded") == [*drafts, "on_target", "ngram", *head]
    assert labels("somebody/model") == ["on_target", "ngram"]
    assert labels("somebody/model", ["dial"]) == ["dial"], "an instrument is there when named"


@pytest.mark.parametrize(
    "target, texts, said",
    [
        ("embedded", ["none"], "plain decoding (none) is part of every report"),
        ("somebody/model", ["draft_model"], "needs a draft"),
        ("embedded", ["draft_model:embedded/nothing"], "no weights 'embedded/nothing' for the proposer draft_model"),
        ("embedded", ["draft_model:./nothing"], "no weights './nothing'"),
        ("embedded", ["ngram,min_n=9"], "min 9 and max 4"),
    ],
)
def test_what_can_be_judged_without_loading_is(target, texts, said):
    with pytest.raises(InputError, match=re.escape(said)):
        proposers_for(target, texts)


@pytest.mark.parametrize("empty", ["prompts", "proposers", "gammas", "temperatures"])
def test_an_empty_grid_is_refused(empty):
    with pytest.raises(InputError, match=f"at least one of its {empty}"):
        plan(**{empty: ()})
