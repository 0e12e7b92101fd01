"""The proposer of trees: its rows, its cache, its shapes and its limits."""

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.engine.sampling import Sampler
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.test_kvcache import windowed
from tests.engine.toys import toy_model

NEAR = 1e-10
TARGET, DRAFT = toy_model(5), toy_model(5, seed=1, layers=1)


def path_to(node: int, parents: list[int]) -> list[int]:
    return [] if node < 0 else [*path_to(parents[node], parents), node]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("gamma", [1, 3])
def test_the_drafts_cache_equals_a_fresh_forward_after_every_round(sampled, gamma):
    proposer = TreeDraftProposer(DRAFT, nodes=7, width=2, branching="sampled" if sampled else "top-k")
    options = DecodeSettings(gamma, 40, draft_sampling=SamplingSettings(temperature=2.0, repetition_penalty=1.3))
    lengths = set()
    for prompt in ("abc", "d"):
        sequence = Decoder(TARGET, proposer, settings=options).start(prompt)
        for step in decode_rounds(sequence):
            lengths.add(step.decision.accepted)
            tokens, cached = sequence.context.tokens, proposer._cache.length
            assert cached <= len(tokens) - 1
            row = DRAFT.forward(torch.tensor(tokens[cached:]), proposer._cache, rows=1).logits
            proposer._cache.rollback(len(tokens) - cached)
            fresh = DRAFT.forward(torch.tensor(tokens), DRAFT.new_cache(), rows=1).logits
            assert torch.allclose(row, fresh, atol=NEAR)
    assert lengths >= {0, 1}


@pytest.mark.parametrize("sampled", [False, True])
def test_the_drafts_rows_are_those_its_guesses_were_drawn_from(sampled):
    """Each node's declared row is the processed row of a fresh forward over its path, without its earlier siblings."""
    steps = []
    plain = SamplingSettings(temperature=0.7, repetition_penalty=1.5)
    proposer = TreeDraftProposer(DRAFT, nodes=8, width=2, branching="sampled" if sampled else "top-k")
    options = dict(gamma=3, max_new_tokens=12, draft_sampling=plain, on_round=steps.append)
    decode("abcab", target=TARGET, proposer=proposer, **options)
    context, device = [TARGET.encode("abcab")], "cpu"
    tokens = list(context[0])
    for step in steps:
        proposal = step.proposal
        parents = proposal.parents.tolist() if proposal.is_tree else []
        for node, parent in enumerate(parents):
            path = tokens + proposal.tokens[path_to(parent, parents)].tolist()
            logits = DRAFT.forward(torch.tensor(path), DRAFT.new_cache(), rows=1).logits
            seen = torch.zeros(5, dtype=torch.bool).index_fill(0, torch.tensor(path), True)
            row = Sampler(plain, device)(logits, seen)[0]
            siblings = [i for i in range(node) if parents[i] == parent]
            row[proposal.tokens[siblings]] = 0.0
            if sampled:
                assert torch.allclose(proposal.probs[node], row / row.sum(), atol=1e-12)
            else:
                assert proposal.tokens[node] == row.argmax()
        tokens += step.emitted


def test_a_draft_whose_cache_holds_one_line_is_refused():
    with pytest.raises(InputError, match="sliding window"):
        TreeDraftProposer(windowed())


@pytest.mark.parametrize("settings", [{"width": 0}, {"nodes": 3, "width": 4}])
def test_settings_that_leave_no_tree_are_refused(settings):
    with pytest.raises(InputError, match="1 <= width <= nodes"):
        TreeDraftProposer(DRAFT, **settings)


@pytest.mark.parametrize("sampled", [False, True])
def test_past_the_drafts_context_the_rounds_are_plain_and_say_so(sampled):
    short = toy_model(5, seed=1, context=12)
    result = decode(
        "abcab", target=TARGET, gamma=3, max_new_tokens=20,
        proposer=TreeDraftProposer(short, 6, 2, "sampled" if sampled else "top-k"),
    )  # fmt: skip
    rounds = result.trace.rounds
    late = rounds[rounds["context_length"] > 12]
    assert len(result.token_ids) == 20 and len(late) > 0
    assert (late["proposed"] == 0).all() and (late[late["asked"] == 3]["shortened"] == "draft_context").all()
    assert not [name for name, finding in contracts.run(result.trace) if finding.status == "fail"]
