"""What the exact tests demand of a law, and the matrix they share: every lossless rule, kind of proposal and setting.

`cases()` leaves out only what decoding refuses: the greedy rule above temperature 0, rules of chains with trees.
"""

from dataclasses import replace
from itertools import product

import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.proposers import DraftModelProposer, NgramProposer, NoProposer
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.equivalence.law import largest_difference, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.equivalence.toys import SporadicDraft, table_setup
from specworkbench.equivalence.tree_toys import KINDS, tree_setup

EXACT = 1e-12
SEEN = 1e-3
"""A law that differs is to differ by at least this much in total variation."""

WARM, GREEDY = SamplingSettings(), SamplingSettings(temperature=0.0)
CUT = SamplingSettings(temperature=0.8, top_k=3, top_p=0.95, min_p=0.05, repetition_penalty=1.3)
OWN = SamplingSettings(temperature=1.3, repetition_penalty=1.1)

SETTINGS = {
    "temperature 1": {},
    "temperature 0.7": {"sampling": SamplingSettings(temperature=0.7)},
    "temperature 0": {"sampling": GREEDY},
    "temperature 0, warm draft": {"sampling": GREEDY, "draft_sampling": WARM},
    "hot draft": {"draft_sampling": SamplingSettings(temperature=2.0)},
    "greedy draft": {"draft_sampling": GREEDY},
    "top-k": {"sampling": SamplingSettings(top_k=2)},
    "top-k of the draft alone": {"draft_sampling": SamplingSettings(top_k=2)},
    "top-p": {"sampling": SamplingSettings(top_p=0.7)},
    "min-p": {"sampling": SamplingSettings(min_p=0.4)},
    "penalty": {"sampling": SamplingSettings(repetition_penalty=1.7)},
    "penalty of the draft alone": {"draft_sampling": SamplingSettings(repetition_penalty=1.7)},
    "EOS": {"eos": (1,)},
    "several EOS": {"eos": (0, 1)},
    "minimum length": {"eos": (1,), "least": 2},
    "minimum length, all of it": {"eos": (1,), "least": 3},
    "minimum length, temperature 0": {"sampling": GREEDY, "eos": (0,), "least": 2},
    "padding rows": {"rows": (7, None)},
    "padding rows of the draft": {"rows": (6, 9)},
    "everything": {"sampling": CUT, "draft_sampling": OWN, "eos": (1,), "rows": (5, 6), "least": 1},
    "everything, temperature 0": {
        "sampling": replace(CUT, temperature=0.0), "draft_sampling": OWN, "eos": (1,), "rows": (5, 6), "least": 1
    },
}  # fmt: skip
"""Options of `table_setup`; least: `min_new_tokens`."""

CHAINS = {
    "draft_model": {},
    "truncated draft": {"draft_top_k": 2},
    "ngram": {"proposer": NgramProposer(1, 2)},
    "sporadic": {"proposer": SporadicDraft},
    "short draft context": {"draft_context": 4},
    "none": {"proposer": NoProposer()},
}
"""Kinds of chains: drawn, drawn from cut rows, certain (one-hot), at times short or empty, cut short, never any."""

SAMPLED = ("without replacement", "independent", "independent, at times none")
"""Kinds of trees whose guesses are drawn."""

LOSSLESS = tuple(name for name, rule in VERIFIERS.items() if rule.lossless)
LOSSY = tuple(name for name, rule in VERIFIERS.items() if not rule.lossless)


def cases() -> list[tuple[str, str, str]]:
    """(rule, kind of proposal, setting), of every combination that decoding does not refuse."""
    return [
        (rule, kind, setting)
        for rule, kind, setting in product(LOSSLESS, (*CHAINS, *KINDS), SETTINGS)
        if (kind in CHAINS or VERIFIERS[rule].judges_trees)
        and (not VERIFIERS[rule].greedy_only or SETTINGS[setting].get("sampling", WARM).greedy)
    ]


def setup_of(rule: str, kind: str, setting: str, **size) -> Setup:
    """The case on table models. size: vocab, length and gamma where they are to be others."""
    options = SETTINGS[setting] | size
    least = options.pop("least", 0)
    if kind in KINDS:
        # Equality looks at every drawn node: of three tokens there are thousands of ways to guess and to judge them.
        small = rule == "equality" and kind in SAMPLED
        setup = tree_setup(7, kind=kind, **{"vocab": 2 if small else 3, "rule": rule} | options)
    else:
        options = {"vocab": 4, "rule": rule, "proposer": DraftModelProposer} | options | CHAINS[kind]
        if top_k := options.pop("draft_top_k", None):
            own = options.get("draft_sampling") or options.get("sampling") or WARM
            options["draft_sampling"] = replace(own, temperature=own.temperature or 1.0, top_k=top_k)
        setup = table_setup(7, **options)
    return setup.but(settings=replace(setup.settings, min_new_tokens=least))


def assert_exact(setup, law):
    """The law is the target's own product law, outcome by outcome and in total."""
    expected = product_law(setup.target, setup.prompt, setup.settings)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert largest_difference(law, expected) < EXACT
    assert total_variation(law, expected) < EXACT
