"""Every claim on evidence of which it is true, of which it is not, and which cannot tell: the judge says so."""

import pytest

from specworkbench.experiments.claims import CLAIMS, FAILS, HOLDS, OPEN
from tests.experiments.claims.evidence_cases import evidence

claims = {claim.name: claim for claim in CLAIMS}
DRAFT, SMALL, LARGE = (f"draft_model:toy/{size}" for size in ("draft", "small", "large"))
NOISY = {"noise": 0.8}


def judged(name, *studies):
    claim = claims[name]
    return claim.judge(dict(zip(claim.studies, studies, strict=True)))


def gammas(speedups, **more):
    return evidence(*({"gamma": gamma, "speedup": speedup, **more} for gamma, speedup in speedups.items()))


def lengths(axis, values, speedups, **more):
    pairs = zip(values, speedups, strict=True)
    return evidence(*({axis: value, "speedup": speedup, **more} for value, speedup in pairs))


def sizes(inside, small, large, **more):
    return evidence(
        {"proposer": DRAFT, "size": 0.08, "speedup": inside} | more,
        {"proposer": SMALL, "size": 0.02, "speedup": small} | more,
        {"proposer": LARGE, "size": 0.3, "speedup": large} | more,
    )


def two(first, second, **more):
    """Two draft models: (alpha, speedup) of each."""
    return evidence(*(
        {"proposer": proposer, "alpha": alpha, "speedup": speedup} | more
        for proposer, (alpha, speedup) in ((DRAFT, first), (SMALL, second))
    ))  # fmt: skip


def quantised(plain_ms, before, after, **more):
    return evidence(
        {"quantisation": "none", "plain_ms": 1.0, "speedup": before} | more,
        {"quantisation": "int8", "plain_ms": plain_ms, "speedup": after} | more,
    )


def look_up(look_up, draft, repeated=0.9, **more):
    return evidence(
        {"proposer": "ngram", "speedup": look_up, "repeated": repeated} | more,
        {"proposer": DRAFT, "speedup": draft, "repeated": repeated} | more,
    )


def along(axis, values, alphas, **more):
    return evidence(*({axis: value, "alpha": alpha} | more for value, alpha in zip(values, alphas, strict=True)))


TEMPERATURES, TOP_P = (0.0, 0.5, 1.0), (1.0, 0.7, 0.5)
flat = along("top_p", TOP_P, (0.6, 0.6, 0.6))
narrower = along("top_p", TOP_P, (0.6, 0.55, 0.5))

CASES = {
    "break-even": [
        (HOLDS, evidence({"speedup": 1.0, "tokens_per_round": 2.0}, {"speedup": 1.5, "tokens_per_round": 3.0})),
        (FAILS, evidence({"speedup": 1.0, "tokens_per_round": 2.0}, {"speedup": 0.8, "tokens_per_round": 3.0})),
        (OPEN, evidence({"speedup": 0.9, "tokens_per_round": 2.0, "noise": 1.5})),
    ],
    "gamma-3-to-5": [
        (HOLDS, gammas({1: 1.1, 2: 1.3, 4: 1.5, 8: 1.2})),
        (FAILS, gammas({1: 1.1, 2: 1.8, 4: 1.5, 8: 1.2})),
        (OPEN, gammas({2: 1.5, 4: 1.46}, **NOISY)),
    ],
    "late-positions": [
        (HOLDS, evidence({"max_new_tokens": 256, "late": -0.2})),
        (FAILS, evidence({"max_new_tokens": 256, "late": 0.0})),
        (OPEN, evidence({"max_new_tokens": 256, "late": -0.02, "noise": 1.0})),
    ],
    "temperature": [
        (HOLDS, along("temperature", TEMPERATURES, (0.7, 0.6, 0.5)), narrower),
        (FAILS, along("temperature", TEMPERATURES, (0.5, 0.6, 0.6)), narrower),
        (FAILS, along("temperature", TEMPERATURES, (0.7, 0.6, 0.5)), flat),
        (OPEN, along("temperature", TEMPERATURES, (0.62, 0.61, 0.59), **NOISY), narrower),
    ],
    "code-over-prose": [
        (HOLDS, evidence({"alpha": {"code": 0.7, "structured": 0.9, "prose": 0.5}})),
        (FAILS, evidence({"alpha": {"code": 0.5, "structured": 0.9, "prose": 0.5}})),
        (OPEN, evidence({"alpha": {"code": 0.55, "structured": 0.9, "prose": 0.5}, "noise": 0.3})),
    ],
    "draft-size": [
        (HOLDS, sizes(1.5, 1.2, 1.1)),
        (FAILS, sizes(1.2, 1.5, 1.1)),
        (OPEN, sizes(1.2, 1.2, 1.2, **NOISY)),
    ],
    "stronger-slower": [
        (HOLDS, two((0.8, 1.0), (0.5, 1.3))),
        (FAILS, two((0.8, 1.3), (0.5, 1.0))),
        (OPEN, two((0.8, 1.0), (0.79, 1.3))),
    ],
    "short-outputs": [
        (HOLDS, lengths("max_new_tokens", (32, 64, 128), (0.9, 1.1, 1.3))),
        (FAILS, lengths("max_new_tokens", (32, 64, 128), (1.2, 1.2, 1.3))),
        (OPEN, lengths("max_new_tokens", (32, 64, 128), (0.8, 0.8, 0.9))),
    ],
    "long-prompts": [
        (HOLDS, lengths("prompt_length", (32, 128, 512), (1.5, 1.4, 1.2))),
        (FAILS, lengths("prompt_length", (32, 128, 512), (1.5, 1.5, 1.6))),
        (OPEN, lengths("prompt_length", (32, 128, 512), (0.9, 0.9, 0.8))),
    ],
    "quantised-target": [
        (HOLDS, quantised(0.6, 1.5, 1.2)),
        (FAILS, quantised(0.6, 1.5, 1.5)),
        (OPEN, quantised(1.1, 1.5, 1.2)),
    ],
    "retrieval": [
        (HOLDS, look_up(1.5, 1.1)),
        (FAILS, look_up(1.1, 1.1)),
        (OPEN, look_up(1.5, 1.1, repeated=0.2)),
    ],
    "acceptance-alone": [
        (HOLDS, two((0.8, 1.0), (0.5, 1.3))),
        (FAILS, two((0.8, 1.3), (0.5, 1.0))),
        (OPEN, two((0.8, 1.25), (0.5, 1.3), **NOISY)),
    ],
}
FLAT = [(name, *case) for name, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("name", "verdict", "studies"), [(name, verdict, studies) for name, verdict, *studies in FLAT])
def test_the_judge_finds_what_was_put_in(name, verdict, studies):
    found = judged(name, *studies)
    assert found.verdict == verdict, found.sentence


def test_every_claim_is_tried_on_all_three():
    assert set(CASES) == set(claims)
    assert all({verdict for verdict, *_ in cases} == {HOLDS, FAILS, OPEN} for cases in CASES.values())


def test_drafts_on_one_side_of_the_range_only_cannot_support_it():
    drafts = [{"proposer": DRAFT, "size": 0.08, "speedup": 1.5}, {"proposer": SMALL, "size": 0.02, "speedup": 1.2}]
    layers = {"proposer": "layer_skip,layers=2", "size": 0.3, "speedup": 1.0}
    found = judged("draft-size", evidence(*drafts, layers))
    assert found.verdict == OPEN and "do not stand on both sides" in found.sentence
    assert {part.verdict for part in found.parts} == {HOLDS}


def test_a_claim_about_a_gain_leaves_out_what_does_not_gain():
    study = lengths("prompt_length", (32, 128, 512), (0.9, 0.9, 0.8))
    assert not judged("long-prompts", study).parts and "ngram, T 0" in judged("long-prompts", study).sentence


@pytest.mark.parametrize("claim, axis", [("long-prompts", "prompt_length"), ("short-outputs", "max_new_tokens")])
def test_one_length_says_nothing_of_length(claim, axis):
    assert judged(claim, lengths(axis, (32,), (1.5,))).parts == ()


def test_a_slower_machine_between_two_cells_changes_no_ratio():
    """Each cell has its own plain decoding: where everything took twice as long, its speedup is the same."""
    found = judged("acceptance-alone", two((0.8, 1.0), (0.5, 1.3)))
    slower = evidence(
        {"proposer": DRAFT, "alpha": 0.8, "speedup": 1.0, "plain_ms": 2.0},
        {"proposer": SMALL, "alpha": 0.5, "speedup": 1.3},
    )
    assert judged("acceptance-alone", slower).effect == pytest.approx(found.effect)
