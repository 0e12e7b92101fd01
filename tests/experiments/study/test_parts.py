"""The parts of a task: prompts of a length, and settings that reach both decoders."""

from types import SimpleNamespace

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.models import Models
from specworkbench.experiments.study.parts import PLAIN, SPECULATIVE, decoders, prompt_ids, prompts_as_ids, target_of
from specworkbench.workloads import Prompt
from tests.engine.toys import toy_model
from tests.experiments.study.cases import tasks_of, toy_study

TARGET = toy_model(26)
PROMPTS = (Prompt("1", "a", "abcdef"), Prompt("2", "b", "zzz"), Prompt("3", "a", "ghi"))


def text_of(number, length):
    return TARGET.decode(prompt_ids(TARGET, PROMPTS, number, length, False))


def test_a_prompt_is_cut_at_its_beginning():
    assert text_of(0, 2) == "ef" and text_of(0, 6) == "abcdef" and text_of(0, 0) == "abcdef"


def test_a_short_prompt_is_filled_up_in_front_with_those_before_it_in_its_bucket_round_and_round():
    assert text_of(2, 9) == "abcdefghi" and text_of(2, 5) == "efghi"
    assert text_of(0, 9) == "ghiabcdef" and text_of(0, 14) == "bcdefghiabcdef"
    assert text_of(1, 7) == "zzzzzzz", "alone in its bucket"


class WithStart:
    """The toy target with a tokenizer that puts a special token in front."""

    name, tokenizer = "with-start", SimpleNamespace(all_special_ids=[99])

    def encode(self, prompt, chat=False):
        return [99, *TARGET.encode(prompt)]


def test_special_tokens_in_front_stay_there_once():
    target = WithStart()
    assert prompt_ids(target, PROMPTS, 0, 3, False) == [99, *TARGET.encode("ef")]
    assert prompt_ids(target, PROMPTS, 2, 7, False) == [99, *TARGET.encode("defghi")]
    with pytest.raises(InputError, match="prompt_length is 1, and with-start puts 1 special"):
        prompt_ids(target, PROMPTS, 0, 1, False)


def test_settings_of_a_cell_reach_both_decoders(toys):
    study = toy_study(
        toys, proposer="ngram", gamma=3, temperature=0.5, top_p=0.9, top_k=5, seed=7, rule="lenient,leniency=0.5",
        dtype="float64", prompt_length=5,
    )  # fmt: skip
    task = tasks_of(study)[0]
    models = Models(target_of(task))
    sides = decoders(models, task)
    for decoder in sides.values():
        sampling = decoder.settings.sampling
        assert (sampling.temperature, sampling.top_p, sampling.top_k, decoder.seed) == (0.5, 0.9, 5, 7)
        assert decoder.settings.gamma == 3 and decoder.settings.ignore_eos and decoder.settings.max_new_tokens == 8
    assert sides[SPECULATIVE].verifier.describe()["settings"] == {"leniency": 0.5}
    assert sides[SPECULATIVE].proposer.name == "ngram" and sides[PLAIN].proposer.name == "none"
    assert str(models.target.dtype) == "torch.float64"
    assert {len(ids) for ids in prompts_as_ids(models.target, task)} == {5}
