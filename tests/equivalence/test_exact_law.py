"""The joint law of the real code is the target's product law: every rule, kind of proposal and setting, memoised.

Each case enumerates hundreds of real rounds of a `TableModel`; `test_exact_loop.py` runs whole loops unmemoised.
"""

from dataclasses import replace

import pytest

from specworkbench.engine import SamplingSettings
from specworkbench.engine.proposers import DraftModelProposer, NgramProposer, NoProposer
from specworkbench.equivalence.law import (
    decode_law,
    decode_law_memoised,
    largest_difference,
)
from specworkbench.equivalence.toys import SporadicDraft, table_setup
from tests.equivalence.exact import assert_exact

GREEDY = SamplingSettings(temperature=0.0)
SETTINGS = {
    "temperature 1": {},
    "temperature 0.7": {"sampling": SamplingSettings(temperature=0.7)},
    "temperature 0": {"sampling": GREEDY, "rule": "token"},
    "greedy rule": {"sampling": GREEDY, "rule": "greedy"},
    "greedy rule, warm draft": {"sampling": GREEDY, "draft_sampling": SamplingSettings(), "rule": "greedy"},
    "hot draft": {"draft_sampling": SamplingSettings(temperature=2.0)},
    "greedy draft": {"draft_sampling": GREEDY},
    "top-k": {"sampling": SamplingSettings(top_k=3)},
    "top-p": {"sampling": SamplingSettings(top_p=0.8)},
    "min-p": {"sampling": SamplingSettings(min_p=0.3)},
    "penalty": {"sampling": SamplingSettings(repetition_penalty=1.7)},
    "penalty of the draft alone": {"draft_sampling": SamplingSettings(repetition_penalty=1.7)},
    "EOS": {"eos": (1,)},
    "several EOS": {"eos": (1, 3), "rule": "token"},
    "padding rows": {"rows": (7, None)},
    "padding rows of the draft": {"rows": (6, 9)},
    "everything": {
        "sampling": SamplingSettings(temperature=0.8, top_k=3, top_p=0.95, min_p=0.05, repetition_penalty=1.3),
        "draft_sampling": SamplingSettings(temperature=1.3, repetition_penalty=1.1),
        "eos": (2,),
        "rows": (5, 6),
    },
}
PROPOSALS = {
    "draft_model": {"proposer": DraftModelProposer},
    "truncated draft": {"proposer": DraftModelProposer, "top_k": 2},
    "ngram": {"proposer": NgramProposer(1, 2)},
    "sporadic": {"proposer": SporadicDraft},
    "short draft context": {"proposer": DraftModelProposer, "draft_context": 4},
    "none": {"proposer": NoProposer()},
}


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_law_is_the_targets_own(setting, proposal):
    options = {"vocab": 4, **SETTINGS[setting], **PROPOSALS[proposal]}
    if top_k := options.pop("top_k", None):
        own = options.get("draft_sampling") or options.get("sampling") or SamplingSettings()
        options["draft_sampling"] = replace(own, temperature=own.temperature or 1.0, top_k=top_k)
    setup = table_setup(7, **options)
    assert_exact(setup, decode_law_memoised(setup))


@pytest.mark.parametrize("proposer", [DraftModelProposer, NgramProposer(1, 2)], ids=["draft_model", "ngram"])
@pytest.mark.parametrize("vocab, length, gamma", [(6, 3, 1), (5, 3, 2), (5, 3, 3), (4, 4, 2), (4, 4, 3)])
def test_at_every_size(vocab, length, gamma, proposer):
    setup = table_setup(8, vocab=vocab, length=length, gamma=gamma, proposer=proposer)
    assert_exact(setup, decode_law_memoised(setup))


def test_memoising_leaves_the_law_as_it_is():
    setup = table_setup(9, vocab=3, eos=(2,), sampling=SamplingSettings(repetition_penalty=1.3))
    assert largest_difference(decode_law(setup), decode_law_memoised(setup)) < 1e-15
