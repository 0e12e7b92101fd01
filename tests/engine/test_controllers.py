"""Who chooses gamma: from the past alone, within its limit, and so that the trace says what was chosen and why."""

from types import SimpleNamespace

import numpy as np
import pytest

from specworkbench import theory
from specworkbench.engine import CONTROLLERS, Decoder, DecodeSettings, SamplingSettings, make_controller, make_proposer
from specworkbench.engine.controllers import ConstantController
from specworkbench.engine.controllers.running import RunningCosts
from specworkbench.engine.proposers.trees import confidence
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.toys import table_setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.engine.toys import toy_model

TARGET, DRAFT = toy_model(7, layers=3), toy_model(7, seed=1, layers=1)
SETTINGS = DecodeSettings(gamma=5, max_new_tokens=60)
BY_TOKENS = ("constant", "heuristic", "confidence", "by_batch,sizes=1,4,gammas_at=3,1", "optimal,c=0.1,verify=1.1,1.2")


def decoder_of(controller, settings: DecodeSettings = SETTINGS, seed: int = 0) -> Decoder:
    guesser = make_proposer("draft_model", target=TARGET, draft=DRAFT)
    return Decoder(TARGET, guesser, controller=controller, settings=settings, seed=seed)


def traced(controller, *prompts: str, seed: int = 0):
    decoder = decoder_of(controller, seed=seed)
    for prompt in prompts or ("abcabc",):
        decoder.run(prompt)
    return decoder.trace()


def a_round(accepted: int, proposed: int, **ms: float) -> SimpleNamespace:
    """What a controller looks at; ms by phase."""
    times = {"propose": 0.0, "verify": 1.0, "accept": 0.0, "rollback": 0.0} | ms
    return SimpleNamespace(
        decision=SimpleNamespace(proposed=[0] * proposed, accepted=accepted),
        asked=proposed, shortened="",
        times=times | {"total": times.get("total", sum(times.values()))},
    )  # fmt: skip


@pytest.mark.parametrize("controller", [*BY_TOKENS, "optimal", "auto_off"])
def test_every_choice_is_within_the_limit_and_in_the_trace(controller):
    trace = traced(controller, "abcabc", "ccd")
    assert {contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"} == set()
    choices = make_controller(controller).gammas(SETTINGS.gamma)
    assert set(trace.rounds["gamma"]) <= set(choices) <= set(range(SETTINGS.gamma + 1))
    said, (name, *_) = trace.manifest["controller"], controller.split(",")
    assert said["name"] == name and set(said["settings"]) == set(CONTROLLERS[name].settings())


@pytest.mark.parametrize("rule", ["token", "block", "equality"])
@pytest.mark.parametrize("controller", (*BY_TOKENS[1:], "confidence,threshold=0.6"))
def test_the_law_is_the_targets_whoever_chooses(controller, rule):
    setup = table_setup(seed=3, vocab=3, rule=rule)
    settings = DecodeSettings(gamma=2, max_new_tokens=3)
    setup = setup.but(settings=settings, controller=lambda: make_controller(controller))
    law = decode_law(setup)
    assert total_variation(law, product_law(setup.target, setup.prompt, settings)) < 1e-12
    constant = setup.but(controller=ConstantController)
    assert sum(law.values()) == pytest.approx(1) and law.keys() == decode_law(constant).keys()


@pytest.mark.parametrize("controller", BY_TOKENS)
def test_nothing_is_left_of_the_sequence_before(controller):
    used = make_controller(controller)
    traced(used, "ccd")
    again, fresh = (traced(one, seed=4).rounds["gamma"].tolist() for one in (used, controller))
    assert again == fresh


def test_the_heuristic_goes_up_by_two_and_down_by_one_within_its_limit():
    controller = make_controller("heuristic,start=3")
    controller.reset(6)
    chosen = []
    for accepted in (3, 5, 6, 0, 0, 0, 0, 0, 0, 1):
        chosen.append(controller.gamma())
        controller.observe(a_round(accepted, chosen[-1]))
    assert chosen == [3, 5, 6, 6, 5, 4, 3, 2, 1, 1] and controller.gamma() == 3
    controller.observe(a_round(0, 0))
    assert controller.gamma() == 3  # nothing was proposed


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_a_draft_in_doubt_stops_after_the_guess_it_doubts(temperature):
    settings = DecodeSettings(gamma=5, max_new_tokens=60, sampling=SamplingSettings(temperature=temperature))
    proposals = []
    decoder = decoder_of("confidence,threshold=0.5", settings=settings)
    sequence = decoder.start("abcabc")
    sequence.prefill()
    while True:
        context, before = sequence.context, list(sequence.context.tokens)
        step = sequence.round()
        proposals.append((before, step))
        if step.stop_reason:
            break
    stopped = 0
    for before, step in proposals:
        guesses = step.decision.proposed
        tokens, sure = [*before, *guesses], []
        for at in range(len(guesses)):
            ids = context.ids(0, 0).new_tensor(tokens[: len(before) + at])
            logits = DRAFT.forward(ids, DRAFT.new_cache(), rows=1).logits
            sure.append(float(confidence(context)(logits)[0, guesses[at]]))
        assert all(value >= 0.5 for value in sure[:-1])
        if len(guesses) < step.asked:
            stopped += 1
            assert sure[-1] < 0.5
    assert stopped > 5 and any(len(step.decision.proposed) == 5 for _, step in proposals)


@pytest.mark.parametrize("proposer", ["ngram", "medusa-like trees"])
def test_a_proposer_that_tells_no_doubt_is_refused_a_controller_that_needs_it(proposer):
    guesser = make_proposer("ngram") if proposer == "ngram" else make_proposer("draft_tree", target=TARGET, draft=DRAFT)
    with pytest.raises(InputError, match=r"confidence stops a draft in doubt.*choose another controller"):
        Decoder(TARGET, guesser, controller="confidence", settings=SETTINGS).run("abc")


@pytest.mark.parametrize(("alpha", "c"), [(0.9, 0.05), (0.6, 0.1), (0.3, 0.5), (0.05, 0.4)])
def test_optimal_finds_the_gamma_of_the_theory_where_acceptance_is_known(alpha, c):
    rng, controller = np.random.default_rng(0), make_controller(f"optimal,keep=1,c={c},verify=1.0")
    controller.reset(8)
    for _ in range(3000):
        gamma = controller.gamma()
        accepted = int((np.cumprod(rng.random(gamma) < alpha)).sum()) if gamma else 0
        controller.observe(a_round(accepted, gamma))
    best = int(np.argmax(theory.speedup(controller.estimates()["alpha"], np.arange(9), c)))
    assert controller.estimates()["alpha"] == pytest.approx(alpha, abs=0.05)
    assert controller.gamma() == best == theory.optimal_gamma(alpha, c, max_gamma=8)


def test_optimal_takes_plain_rounds_first_for_their_cost_and_tries_again_after_a_pause():
    controller = make_controller("optimal,retry=4")
    controller.reset(3)
    chosen = []
    for _ in range(16):  # guesses cost more than they can bring
        gamma = controller.gamma()
        chosen.append(gamma)
        controller.observe(a_round(0, gamma, propose=5.0 * gamma))
    assert chosen[:5] == [3, 0, 0, 0, 0] and chosen[5] > 0 and chosen[6:10] == [0] * 4 and chosen[10] > 0
    estimates = controller.estimates()
    assert estimates["c"] == pytest.approx(5) and estimates["v"] == pytest.approx(1) and estimates["speedup"] == 1


def test_optimal_measures_its_costs_and_uses_them():
    controller = make_controller("optimal,keep=1")
    controller.reset(6)
    for _ in range(60):
        gamma = controller.gamma()
        controller.observe(a_round(gamma, gamma, propose=0.1 * gamma, verify=1.0 + 0.05 * gamma, rollback=0.2))
    estimates = controller.estimates()
    assert controller.gamma() == 6  # everything is accepted
    assert estimates["c"] == pytest.approx(0.1 / 1.2) and estimates["v"] == pytest.approx(1.5 / 1.2)


def test_costs_between_sizes_seen_lie_between_theirs():
    costs = RunningCosts()
    for gamma, ms in ((0, 1.0), (4, 2.0)):
        costs.observe(a_round(0, gamma, verify=ms))
    np.testing.assert_allclose(costs.target(np.array([1, 3, 5, 9])), [1.0, 1.5, 2.0, 2.0])


def run_auto_off(controller, rounds: int, tokens: int, ms: float) -> list[int]:
    """The gammas chosen where a round of guesses emits so many tokens in so many ms, and a plain one takes 1 ms."""
    chosen, rng = [], np.random.default_rng(0)
    for _ in range(rounds):
        chosen.append(controller.gamma())
        noise = rng.normal(scale=0.05)
        controller.observe(
            a_round(tokens - 1, 4, total=ms + noise) if chosen[-1] else a_round(0, 0, total=1.0 + noise / 10)
        )
    return chosen


def test_auto_off_goes_plain_where_guessing_costs_and_pauses_grow():
    controller = make_controller("auto_off,window=8,pause=4")
    controller.reset(4)
    chosen = run_auto_off(controller, 200, tokens=2, ms=2.5)
    pauses = [len(run) for run in "".join("0" if gamma == 0 else "+" for gamma in chosen).split("+") if len(run) > 1]
    assert pauses[:4] == [4, 8, 16, 32] and set(chosen) == {0, 4}
    assert controller.estimates()["plain_rounds_left"] >= 0


def test_auto_off_stays_on_where_guessing_pays_and_says_what_it_saves():
    controller = make_controller("auto_off,window=8,pause=4")
    controller.reset(4)
    chosen = run_auto_off(controller, 100, tokens=3, ms=1.5)
    assert set(chosen[12:]) == {4}  # the first rounds are plain in turn, to know their cost
    estimates = controller.estimates()
    assert estimates["saved_ms"] == pytest.approx(1.5, abs=0.1) and estimates["saved_upper"] > estimates["saved_ms"]


def test_estimates_are_in_the_trace_round_by_round():
    trace = traced("optimal,c=0.1,verify=1.1,retry=1000")
    sequence = trace.sequences[0]
    estimates = sequence["controller_estimates"]
    assert len(estimates) == len(trace.rounds)
    for before, gamma in zip(estimates, trace.rounds["gamma"].tolist()[1:], strict=False):
        speedups = theory.speedup(before["alpha"], np.arange(6), 0.1, verify_cost=np.array([1.0, *[1.1] * 5]))
        assert gamma == np.argmax(speedups) and before["speedup"] == pytest.approx(speedups.max())
    assert "controller_estimates" not in traced("heuristic").sequences[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fast", "no controller 'fast'; choose one of constant"),
        ("heuristic,step=2", "no setting 'step'"),
        ("heuristic,up=-1", "up of the controller heuristic is -1"),
        ("confidence,threshold=1", "threshold of the controller confidence is 1"),
        ("optimal,keep=0", "keep of the controller optimal is 0"),
        ("optimal,retry=0", "retry of the controller optimal is 0"),
        ("optimal,c=0.1,verify=0", "verify of the controller optimal"),
        ("auto_off,confidence=1", "confidence of the controller auto_off"),
        ("auto_off,window=2", "window of the controller auto_off is 2"),
        ("auto_off,pause=0", "pause of the controller auto_off is 0"),
        ("by_batch,sizes=2,4", r"sizes of the controller by_batch are \(2, 4\)"),
        ("by_batch,gammas_at=1", "gammas_at of the controller by_batch"),
    ],
)
def test_settings_out_of_range_are_refused_in_a_sentence(text, said):
    with pytest.raises(InputError, match=said):
        make_controller(text)
