"""A compiled round decides as the rule itself does, and decoding with it gives the same tokens."""

import pytest
import torch

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, make_proposer, recording
from specworkbench.engine.compiled.rounds import CompiledRound
from specworkbench.engine.contracts import Proposal
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.rng import UniformChooser, inverse_cdf
from specworkbench.engine.sampling import Sampler
from specworkbench.engine.verifiers import VERIFIERS
from specworkbench.trace import contracts
from tests.engine.test_recording import MIXED, assert_as_by_the_plain_formulas
from tests.engine.toys import toy_model

VOCAB, GAMMA = 11, 3
SETTINGS = tuple(
    SamplingSettings(**given) for given in ({"temperature": 0.7, "top_k": 5, "top_p": 0.9}, {}, {"temperature": 0.0})
)


def rows(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, VOCAB, generator=torch.Generator().manual_seed(seed)).double().mul(2).softmax(-1)


@pytest.mark.parametrize("rule", ["token", pytest.param("block", marks=pytest.mark.slow)])
def test_the_verdict_is_the_rules_own(rule):
    verifier = VERIFIERS[rule]()
    compiled = CompiledRound(verifier, {GAMMA}, torch.float64)
    lengths = set()
    for seed in range(60):
        p, q = rows(GAMMA + 1, seed), rows(GAMMA, 1000 + seed // 2)
        u = torch.rand(2 * GAMMA + 1, generator=torch.Generator().manual_seed(seed)).double()
        for n, probs in ((GAMMA, q), (GAMMA, None), (1, q[:1]), (0, None)):
            tokens = inverse_cdf(q, u[:GAMMA])[:n]
            proposal = Proposal(tokens, probs)
            choosers = [UniformChooser(u[:n], u[GAMMA : GAMMA + n + 1]) for _ in range(2)]
            ours = compiled.verify(proposal, p[: n + 1], choosers[0])
            theirs = verifier.verify(proposal, p[: n + 1], choosers[1])
            assert (ours.accepted, ours.next_token) == (theirs.accepted, theirs.next_token)
            assert torch.equal(ours.flags, theirs.flags)
            assert torch.allclose(ours.accept_probs, theirs.accept_probs, atol=1e-14)
            assert torch.allclose(ours.next_probs, theirs.next_probs, atol=1e-14)
            lengths.add((n, int(ours.accepted)))
    assert lengths >= {(GAMMA, n) for n in range(GAMMA + 1)}
    assert sorted(cost.name for cost in compiled.programs.costs) == ["the rule over 0", *["the rule over 3"] * 2]


@pytest.mark.parametrize(
    "settings", [*(pytest.param(one, marks=pytest.mark.slow) for one in SETTINGS[1:]), SETTINGS[0]], ids=str
)
def test_the_sampler_gives_the_same_rows(settings):
    compiled = CompiledRound(VERIFIERS["token"](), {GAMMA}, torch.float64)
    logits = torch.randn(GAMMA + 1, VOCAB + 2, generator=torch.Generator().manual_seed(0))[:, :VOCAB]  # padded rows
    ours = Sampler(settings, law=compiled.law(settings))(logits)
    assert torch.allclose(ours, Sampler(settings)(logits), atol=1e-14)
    assert [cost.name for cost in compiled.programs.costs] == [f"the sampler over {GAMMA + 1}"]
    sick = torch.full((GAMMA + 1, VOCAB), torch.nan)
    assert Sampler(settings, law=compiled.law(settings))(sick).isnan().any(-1).all()


@pytest.mark.parametrize("kind", ["none", MIXED])
@pytest.mark.parametrize("capture", ["none", "top-k", "full"])
def test_rounds_measured_compiled_are_recorded_as_the_plain_formulas_say(capture, kind, monkeypatch):
    monkeypatch.setattr(recording, "PENDING_ROUNDS", 16)
    compiled = CompiledRound(VERIFIERS["token"](), {3}, torch.float64, capture, 3)
    measured, alone = compiled.measured, []

    def seen(proposal, *given):
        numbers = measured(proposal, *given)
        alone.append((numbers is not None, proposal.size in (0, 3) and not proposal.is_tree))
        return numbers

    monkeypatch.setattr(compiled, "measured", seen)
    assert_as_by_the_plain_formulas(kind, "sampled", capture, compiled)
    assert sum(at_once for at_once, _ in alone) > 3 and all(found == expected for found, expected in alone)


@pytest.fixture(scope="module")
def models() -> dict[str, list[LanguageModel]]:
    """A target and a draft near it, eager and compiled, in double precision: nothing is decided by rounding."""
    pair = toy_model(VOCAB, layers=2), toy_model(VOCAB, layers=1)
    compiled = [LanguageModel(model.model, model.tokenizer, model.name) for model in pair]
    for model in compiled:
        model.compile()
    return {"eager": list(pair), "compiled": compiled}


@pytest.mark.parametrize(
    "proposer", ["draft_model", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ngram", "layer_skip"))]
)
def test_decoding_compiled_gives_the_tokens_of_eager_decoding_and_a_trace_that_keeps_its_contracts(models, proposer):
    results = {}
    for engine, (target, draft) in models.items():
        weights = {"draft": draft} if proposer == "draft_model" else {}
        guesser = make_proposer(proposer, target=target, **weights)
        decoder = Decoder(
            target, guesser, settings=DecodeSettings(GAMMA, 40, SamplingSettings()), capture="full", seed=3
        )
        results[engine] = [decoder.run(prompt).token_ids for prompt in ("abcabcab", "ccd")]
        trace = decoder.trace()
        assert trace.manifest["target"]["engine"] == engine
        assert all(finding.status != "fail" for _, finding in contracts.run(trace))
    assert results["eager"] == results["compiled"]
