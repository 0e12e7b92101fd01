"""The instruments: acceptance is what was set, at every position, and the law is the target's own all the same."""

import numpy as np
import pytest
import torch
from scipy import stats

from specworkbench import analysis, theory
from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.proposers.dial import dialled
from specworkbench.equivalence.law import decode_law_memoised, product_law, total_variation
from specworkbench.equivalence.toys import TableModel, table_setup
from specworkbench.errors import InputError
from tests.engine.toys import toy_model

EXACT = 1e-12
LEVEL = 1e-6
GREEDY = SamplingSettings(temperature=0.0)
TARGET, DRAFT = toy_model(5, eos=4, sharpness=2.0), toy_model(5, seed=1, layers=1, eos=4)
SAMPLINGS = {
    "temperature 0": {"sampling": GREEDY},
    "temperature 1": {},
    "top-k 3": {"sampling": SamplingSettings(top_k=3)},
    "penalty": {"sampling": SamplingSettings(temperature=0.7, repetition_penalty=1.6)},
    "a draft sampled otherwise": {
        "sampling": SamplingSettings(repetition_penalty=1.3),
        "draft_sampling": SamplingSettings(temperature=2.0, top_k=2),
    },
    "a draft with a penalty": {"draft_sampling": SamplingSettings(repetition_penalty=1.6)},
}
references = pytest.mark.parametrize("draft", [None, DRAFT], ids=["uniform", "draft"])


def proposed_positions(trace):
    return trace.positions[trace.positions["outcome"].isin(["accepted", "rejected", "discarded"])]


@references
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.8, 1.0])
def test_the_overlap_is_alpha_at_every_position(alpha, sampling, draft):
    """Or the least of p where no q overlaps less, which only alpha = 0 can ask for with five tokens."""
    proposer = make_proposer("dial", target=TARGET, draft=draft, alpha=alpha)
    expected = []
    trace = decode(
        "abcab", target=TARGET, proposer=proposer, gamma=3, max_new_tokens=30, seed=3, ignore_eos=True,
        on_round=lambda step: expected.append(step.target_probs[:-1].amin(-1).clamp(min=alpha)), **SAMPLINGS[sampling],
    ).trace  # fmt: skip
    overlap = proposed_positions(trace)["overlap"].to_numpy()
    assert len(overlap) > 20
    np.testing.assert_allclose(overlap, torch.cat(expected).numpy(), rtol=0, atol=EXACT)


def test_rows_are_distributions_and_turn_no_further_than_the_reference():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0]], dtype=torch.float64)
    r = torch.full_like(p, 1 / 3)
    for alpha in (0.0, 0.05, 0.3, 0.7, 0.95, 1.0):
        q = dialled(p, r, alpha)
        assert torch.allclose(q.sum(-1), torch.ones(3, dtype=p.dtype), rtol=0, atol=EXACT) and q.min() >= 0
        overlap = torch.minimum(p, q).sum(-1)
        assert torch.allclose(overlap, p.amin(-1).clamp(min=alpha), rtol=0, atol=EXACT)
    assert torch.allclose(dialled(p, r, 0.95)[0], p[0] + 0.05 / (0.7 - 1 / 3) * (r - p)[0], atol=EXACT)
    assert dialled(p, p, 0.6)[1].tolist() == pytest.approx([0.4 * 3 / 7, 0.3 * 3 / 7 + 4 / 7, 0.3 * 3 / 7])
    assert torch.equal(dialled(p, r, 1.0), p)


@pytest.mark.parametrize(
    "gamma, alpha, sampling, rule",
    [
        (2, 0.2, SamplingSettings(), "token"),
        (6, 0.9, SamplingSettings(), "token"),
        (4, 0.6, SamplingSettings(top_k=3, repetition_penalty=1.3), "token"),
        (4, 0.6, GREEDY, "token"),
        (4, 0.6, GREEDY, "greedy"),
    ],
)
def test_acceptance_and_block_efficiency_are_those_of_the_formula(gamma, alpha, sampling, rule):
    """Examined positions are independent trials of probability alpha, the first so many of them a binomial sample."""
    target = TableModel(5, seed=5, context=128)
    proposer = make_proposer("dial", target=target, alpha=alpha)
    decoder = Decoder(target, proposer, rule=rule, settings=DecodeSettings(gamma, 100, sampling))
    for _ in range(12):
        decoder.run("abc")
    trace = decoder.trace()
    outcomes = trace.positions["outcome"][trace.positions["outcome"].isin(["accepted", "rejected"])]
    first = outcomes.to_numpy()[:700]
    assert len(first) == 700
    assert stats.binomtest(int((first == "accepted").sum()), len(first), alpha).pvalue > LEVEL
    efficiency = analysis.block_efficiency(trace)
    lengths = np.arange(1, gamma + 2)
    share = np.append(alpha ** (lengths[:-1] - 1) * (1 - alpha), alpha**gamma)
    mean = share @ lengths
    deviation = np.sqrt((share @ lengths**2 - mean**2) / efficiency.n)
    assert mean == pytest.approx(theory.expected_tokens(alpha, gamma), abs=EXACT)
    assert abs(efficiency.value - mean) < stats.norm.isf(LEVEL / 2) * deviation


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_oracle_has_every_guess_accepted(sampling):
    proposer = make_proposer("oracle", target=TARGET)
    trace = decode(
        "abcab", target=TARGET, proposer=proposer, gamma=4, max_new_tokens=40, ignore_eos=True, **SAMPLINGS[sampling]
    ).trace
    assert (trace.rounds["accepted"] == trace.rounds["proposed"]).all() and len(trace.rounds) == 8
    np.testing.assert_allclose(proposed_positions(trace)["overlap"], 1.0, rtol=0, atol=EXACT)


def test_random_guesses_have_the_uniform_row_whatever_the_sampling():
    rows = []
    decode(
        "abcab", target=TARGET, proposer=make_proposer("random"), gamma=3, max_new_tokens=20,
        sampling=SamplingSettings(temperature=0.5, top_k=2, repetition_penalty=1.4),
        on_round=lambda step: rows.append(step.proposal.probs),
    )  # fmt: skip
    rows = torch.cat([row for row in rows if row is not None])
    assert torch.equal(rows, torch.full_like(rows, 1 / 5))


LAWS = {
    "temperature 1": {},
    "temperature 0, token rule": {"sampling": GREEDY, "rule": "token"},
    "greedy rule": {"sampling": GREEDY, "rule": "greedy"},
    "hot draft": {"draft_sampling": SamplingSettings(temperature=2.0)},
    "everything": {
        "sampling": SamplingSettings(temperature=0.8, top_k=3, repetition_penalty=1.3),
        "draft_sampling": SamplingSettings(temperature=1.3, repetition_penalty=1.1), "eos": (2,), "rows": (5, 6),
    },
}  # fmt: skip
INSTRUMENTS = {
    "dial": lambda target, draft: make_proposer("dial", target=target, alpha=0.6),
    "dial at 0": lambda target, draft: make_proposer("dial", target=target, alpha=0.0),
    "dial towards a draft": lambda target, draft: make_proposer("dial", target=target, draft=draft, alpha=0.6),
    "oracle": lambda target, draft: make_proposer("oracle", target=target),
    "random": lambda target, draft: make_proposer("random"),
}


@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_law_is_the_targets_own(law, instrument):
    setup = table_setup(11, vocab=4, **LAWS[law])
    setup = setup.but(proposer=INSTRUMENTS[instrument](setup.target, setup.proposer.draft))
    expected = product_law(setup.target, setup.prompt, setup.settings)
    assert total_variation(decode_law_memoised(setup), expected) < EXACT


@references
@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.0])
def test_caches_equal_a_fresh_forward_after_every_kind_of_round(alpha, draft):
    proposer, kinds = make_proposer("dial", target=TARGET, draft=draft, alpha=alpha), set()
    for seed, prompt in enumerate(("abc", "d", "abdca", "ba", "ccc")):
        sequence = Decoder(TARGET, proposer, settings=DecodeSettings(3, 40), seed=seed).start(prompt)
        for step in decode_rounds(sequence):
            accepted, emitted = step.decision.accepted, step.decision.emitted
            kinds |= {"none" if accepted == 0 else "all" if accepted == 3 else "some", step.stop_reason}
            kinds |= {"cut"} if emitted <= accepted else set()
            tokens = sequence.context.tokens
            for reader in proposer._readers:
                cached = reader.cache.length
                assert cached <= len(tokens) - 1
                row = reader.model.forward(torch.tensor(tokens[cached:]), reader.cache, rows=1).logits
                reader.cache.rollback(len(tokens) - cached)
                fresh = reader.model.forward(torch.tensor(tokens), reader.model.new_cache(), rows=1).logits
                assert torch.allclose(row, fresh, rtol=0, atol=1e-10)
    assert kinds >= ({"all", "eos", "cut"} if alpha == 1 else {"some", "eos"})


def test_its_work_is_counted_and_its_cost_is_said_to_be_set():
    proposer = make_proposer("dial", target=TARGET, draft=DRAFT, alpha=0.7, c=0.2)
    trace = decode("abcab", target=TARGET, proposer=proposer, gamma=3, max_new_tokens=24).trace
    rounds = trace.rounds
    assert (rounds["draft_forwards"] == 2 * rounds["proposed"]).all()
    assert (rounds["draft_positions"] >= rounds["draft_forwards"]).all()
    said = trace.manifest["proposer"]
    assert said["reads_target_ahead"] is True and said["cost_set"] == 0.2
    assert said["settings"] == {"alpha": 0.7, "reference": "draft", "c": 0.2} and said["draft"] == DRAFT.describe()
    assert analysis.draft_cost(trace).value == 0.2
    assert make_proposer("oracle", target=TARGET, c=0.1).describe()["settings"] == {"c": 0.1}
    assert "cost_set" not in make_proposer("random").describe()


def test_past_the_drafts_context_the_rounds_are_plain_and_say_so():
    proposer = make_proposer("dial", target=TARGET, draft=toy_model(5, seed=1, context=12, eos=4))
    options = {"gamma": 3, "max_new_tokens": 20, "ignore_eos": True}
    rounds = decode("abcab", target=TARGET, proposer=proposer, **options).trace.rounds
    late = rounds[rounds["context_length"] > 12]
    assert len(late) and (late["proposed"] == 0).all()
    assert set(late[late["asked"] == 3]["shortened"]) == {"draft_context"}


@pytest.mark.parametrize(
    "settings, sentence",
    [({"alpha": 1.5}, "alpha .* 1.5; .* between 0 and 1"), ({"alpha": -0.1}, "alpha"),
     ({"alpha": float("nan")}, "alpha"), ({"c": -1.0}, "c of .* -1.0; .* at least 0"), ({"c": float("inf")}, "finite"),
     ({"reference": "zipf"}, "no reference 'zipf'.* uniform, draft"), ({"reference": "draft"}, "none is given")],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        make_proposer("dial", target=TARGET, **settings)


def test_a_missing_target_and_a_foreign_vocabulary_are_refused():
    for name in ("dial", "oracle"):
        with pytest.raises(InputError, match="give it the target"):
            make_proposer(name)
    with pytest.raises(InputError, match="another vocabulary"):
        make_proposer("dial", target=TARGET, draft=toy_model(6))
