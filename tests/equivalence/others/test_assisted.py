"""transformers' assisted generation as an engine under test: its exact law, its draws, and what it leaves behind."""

from unittest import mock

import pytest
import torch
import transformers
from transformers.generation.candidate_generator import AssistedCandidateGenerator

from specworkbench.engine import DecodeSettings, SamplingSettings, load_pair
from specworkbench.equivalence import product_law, total_variation, toy_model
from specworkbench.equivalence.others import (
    AssistedGeneration,
    OurDecoding,
    sequence_cells,
    sequence_test,
    two_samples,
)
from specworkbench.errors import InputError
from tests.equivalence.others.enumerated import law_of

PROMPT = (0, 1, 0)
EXACT = 1e-6  # its rows are float32


def pair(vocab=2, sharpness=3.0, **config):
    return [toy_model(vocab, seed=seed, layers=1, sharpness=sharpness, **config) for seed in (0, 1)]


def engine(target, draft, sampling=None, *, length=3, **options):
    minimum = options.pop("min_new_tokens", 0)
    settings = DecodeSettings(2, length, sampling or SamplingSettings(), min_new_tokens=minimum)
    return AssistedGeneration(target, draft, settings, **options)


def distance(tested):
    """TV of the engine's exact law from the target's."""
    law = law_of(tested, PROMPT)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    return total_variation(law, product_law(tested.target, PROMPT, tested.settings))


CASES = {
    "gamma guesses": {},
    "a confidence threshold": {"confidence_threshold": 0.6},
    "its own defaults": {"defaults": True},
    "a heuristic schedule": {"schedule": "heuristic", "num_assistant_tokens": 1},
    "temperature and top-p": {"sampling": SamplingSettings(temperature=0.7, top_p=0.8)},
    "repetition penalty": {"sampling": SamplingSettings(repetition_penalty=2.0)},
}


@pytest.mark.parametrize("case", CASES)
def test_the_exact_law_of_assisted_generation_is_the_targets(case):
    assert distance(engine(*pair(), **CASES[case])) < EXACT


@pytest.mark.parametrize("options", [{}, {"prompt_lookup": True}], ids=["plain", "prompt lookup"])
def test_the_exact_law_without_a_draft_model_is_the_targets(options):
    assert distance(engine(pair()[0], None, **options)) < EXACT


def test_the_exact_law_with_a_minimum_length_is_the_targets():
    assert distance(engine(*pair(eos=1), min_new_tokens=2)) < EXACT


@pytest.mark.parametrize("weight, least", [(0.9, 0.01), (0.5, 0.05)])
def test_an_ensemble_weight_is_lossy(weight, least):
    assert distance(engine(*pair(), ensemble_weight=weight)) > least


def test_dropping_the_drawn_token_instead_of_keeping_it_would_be_seen():
    generate = AssistedCandidateGenerator._generate_candidates

    def dropping(self, arguments):
        ids, logits = generate(self, arguments)
        last = logits[0, -1].softmax(-1)[ids[0, -1]]
        return (ids[:, :-1], logits[:, :-1]) if last < 0.6 and logits.shape[1] > 1 else (ids, logits)

    with mock.patch.object(AssistedCandidateGenerator, "_generate_candidates", dropping):
        assert distance(engine(*pair(), confidence_threshold=0.6)) > 0.01


def test_draws_follow_the_target_and_those_of_an_ensemble_do_not():
    target, draft = pair(5, 6.0)
    cells = sequence_cells(target, PROMPT, DecodeSettings(2, 3), 250)
    ours = OurDecoding(target, DecodeSettings(2, 3)).draw(PROMPT, 250)
    plain = engine(target, None).draw(PROMPT, 250, seed=1)
    assisted = engine(target, draft).draw(PROMPT, 250, seed=2)
    ensemble = engine(target, draft, ensemble_weight=0.5).draw(PROMPT, 250, seed=3)
    for sample in (ours, plain, assisted):
        assert not sequence_test(sample, cells).rejected
    assert not two_samples(ours, plain).differ
    assert not two_samples(ours, assisted).differ
    assert sequence_test(ensemble, cells).rejected and two_samples(ours, ensemble).differ


def test_settings_of_the_models_own_config_count_only_where_they_are_asked_for():
    target, _ = pair(5)
    target.model.generation_config.top_k = 2
    cells = sequence_cells(target, PROMPT, DecodeSettings(2, 3), 100)
    assert not sequence_test(engine(target, None).draw(PROMPT, 100), cells).rejected
    assert sequence_test(engine(target, None, own_sampling=True).draw(PROMPT, 100), cells).rejected


ENDS = {
    "EOS": ({"eos": 2}, DecodeSettings(2, 6)),
    "EOS, not at once": ({"eos": 2}, DecodeSettings(2, 6, min_new_tokens=3)),
    "EOS ignored": ({"eos": 2}, DecodeSettings(2, 6, ignore_eos=True)),
    "stop string": ({}, DecodeSettings(2, 6, stop=("cb", "dd"))),
    "end of the context": ({"context": 8}, DecodeSettings(4, 20)),
    "padding rows": ({"rows": 9}, DecodeSettings(2, 4)),
    "top-k": ({}, DecodeSettings(2, 4, SamplingSettings(top_k=2))),
}


@pytest.mark.parametrize("case", ENDS)
def test_outputs_end_where_the_targets_do(case):
    config, settings = ENDS[case]
    target, draft = pair(5, **config)
    cells = sequence_cells(target, PROMPT, settings, 30)
    for options in ({"draft": draft}, {"prompt_lookup": True}):
        tested = AssistedGeneration(target, settings=settings, **options)
        assert sequence_test(tested.draw(PROMPT, 30), cells).outside == 0
        assert len(set(tested.draw(PROMPT, 30))) > 5


@pytest.mark.parametrize("penalty", [1.0, 2.0])
def test_greedy_outputs_are_our_own(penalty):
    target, draft = pair(5)
    settings = DecodeSettings(3, 12, SamplingSettings(temperature=0, repetition_penalty=penalty))
    expected = OurDecoding(target, settings).draw(PROMPT, 1)
    assert AssistedGeneration(target, draft, settings).draw(PROMPT, 1) == expected
    assert AssistedGeneration(target, None, settings, prompt_lookup=True).draw(PROMPT, 1) == expected


def test_an_output_depends_on_the_seed_the_prompt_and_its_number_alone():
    tested = engine(*pair(5), length=8, schedule="heuristic")
    torch.manual_seed(1)
    whole = tested.draw(PROMPT, 6)
    torch.manual_seed(2)
    assert tested.draw(PROMPT, 2) + tested.draw(PROMPT, 4, first=2) == whole
    assert len({*whole}) == 6 and tested.draw(PROMPT, 6, seed=1) != whole != tested.draw((1, 1, 0), 6)


@pytest.mark.parametrize("defaults", [False, True])
def test_nothing_is_left_behind(defaults):
    target, draft = pair(5)
    configs = [model.model.generation_config for model in (target, draft)]
    said, state = [config.to_dict() for config in configs], torch.random.get_rng_state()
    level, seen = transformers.logging.get_verbosity(), []
    engine(target, draft, defaults=defaults).draw(PROMPT, 2, progress=lambda *counts: seen.append(counts))
    with (
        mock.patch.object(target.model, "forward", side_effect=RuntimeError("out of memory")),
        pytest.raises(RuntimeError, match="out of memory"),
    ):
        engine(target, draft, defaults=defaults).draw(PROMPT, 2)
    assert seen == [(1, 2), (2, 2)]
    assert [model.model.generation_config for model in (target, draft)] == configs
    assert [config.to_dict() for config in configs] == said
    assert torch.equal(torch.random.get_rng_state(), state) and transformers.logging.get_verbosity() == level


@pytest.mark.parametrize("eos", [None, 2])
def test_the_draft_sees_the_whole_context(eos):
    """With a padding token among the prompt's own, transformers would hide it from the draft."""
    target, draft = pair(5, eos=eos)
    masks = []
    draft.model.register_forward_pre_hook(
        lambda _, args, options: masks.append(options.get("attention_mask")), with_kwargs=True
    )
    engine(target, draft, length=6).draw((0, 1, 2, 3, 4, 0), 3)
    assert masks and all(mask is None or bool(mask.all()) for mask in masks)


def test_options_left_to_transformers_are_described_as_such():
    fair, own = engine(*pair()).describe(), engine(*pair(), defaults=True, confidence_threshold=0.0).describe()
    assert fair["engine"] == f"transformers {transformers.__version__}" and fair["kind"] == "draft model"
    assert (fair["num_assistant_tokens"], fair["schedule"], fair["confidence_threshold"]) == (2, "constant", 0.0)
    assert (own["num_assistant_tokens"], own["own_sampling"], own["confidence_threshold"]) == (None, True, 0.0)


WRONG = [
    ({"draft": toy_model(3)}, "another vocabulary"),
    ({"draft": toy_model(2, rows=4)}, "have 2 and 4 rows"),
    ({"draft": pair()[1], "prompt_lookup": True}, "choose one of the two"),
    ({"ensemble_weight": 0.5}, "needs a draft model"),
    ({"draft": pair()[1], "ensemble_weight": 1.5}, "between 0 and 1"),
    ({"schedule": "cosine"}, "choose one of constant, heuristic"),
    ({"num_assistant_tokens": 0}, "at least 1"),
    ({"settings": DecodeSettings(draft_sampling=SamplingSettings(temperature=2.0))}, "leave the draft's sampling out"),
]


@pytest.mark.parametrize("options, sentence", WRONG, ids=[sentence for _, sentence in WRONG])
def test_what_cannot_be_drawn_is_refused_in_a_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        AssistedGeneration(pair()[0], **options)


@pytest.mark.parametrize("prompt", [(), (0,) * 64])
def test_a_prompt_that_is_empty_or_leaves_no_room_is_refused_in_a_sentence(prompt):
    with pytest.raises(InputError, match="there must be"):
        engine(pair()[0], None).draw(prompt, 1)


@pytest.mark.slow
def test_the_embedded_pair_passes_with_fair_settings_and_fails_with_an_ensemble():
    target, draft = load_pair(device="cpu")
    settings, n = DecodeSettings(4, 8), 300
    prompt = target.encode("The reader of this page will find")
    cells = sequence_cells(target, prompt, settings, n)
    ours = OurDecoding(target, settings).draw(prompt, n)
    kinds = {
        "plain": {},
        "fair": {"draft": draft},
        "confident": {"draft": draft, "num_assistant_tokens": 20, "confidence_threshold": 0.4},
        "ensemble": {"draft": draft, "ensemble_weight": 0.1},
    }
    for seed, (name, options) in enumerate(kinds.items()):
        drawn = AssistedGeneration(target, settings=settings, **options).draw(prompt, n, seed=seed)
        assert sequence_test(drawn, cells).rejected == (name == "ensemble"), name
        assert two_samples(ours, drawn).differ == (name == "ensemble"), name
