"""What `decode` refuses, in a sentence, and before a model is loaded where it can."""

import io
import sys

import pytest


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_an_empty_prompt_is_refused(refused, prompt):
    assert "the prompt is empty" in refused("decode", prompt, "--json")


def test_an_empty_standard_input_is_refused(refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "the prompt is empty" in refused("decode", "-")


@pytest.mark.parametrize("prompt", ["\udcff", "-"])
def test_a_prompt_that_is_not_utf8_is_refused(refused, monkeypatch, prompt):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert "not UTF-8" in refused("decode", prompt)


def test_a_prompt_longer_than_the_context_is_refused(refused, pair):
    assert "200 tokens" in refused("decode", "ab" * 100, *pair)


@pytest.mark.parametrize("gamma, said", [(0, "gamma is 0"), (-2, "gamma is -2"), (160, "past the context")])
def test_a_gamma_that_cannot_be_is_refused(refused, pair, gamma, said):
    assert said in refused("decode", "abc", *pair, "--gamma", gamma)


def test_a_draft_with_another_vocabulary_is_refused(refused, toys):
    said = refused("decode", "abc", "--target", toys / "target", "--draft", toys / "other")
    assert "another vocabulary" in said and "other_vocabulary" in said


def test_a_folder_that_is_no_model_is_refused(refused, tmp_path):
    assert "no config.json" in refused("decode", "abc", "--target", tmp_path, "--proposer", "ngram")


@pytest.mark.parametrize(
    "options, said",
    [
        (("--target", "nobody/nothing-of-the-kind", "--draft", "embedded"), "cannot load the model"),
        (("--target", "embedded/draft-xxl", "--proposer", "none"), "no embedded model"),
        (("--target", "/no/such/folder", "--draft", "embedded"), "no model folder"),
        (("--target", "/no/such/folder"), "needs a draft"),
        (("--proposer", "magic"), "no proposer 'magic'"),
        (("--rule", "guess"), "no rule 'guess'"),
        (("--rule", "lenient,leniency=2"), "leniency is 2.0; it must be above 0 and at most 1"),
        (("--rule", "lenient,strength=2"), "the rule lenient has no setting 'strength'; it has leniency=0.8"),
        (("--rule", "ensemble,weight=half"), "weight of the rule ensemble is 'half'"),
        (("--rule", "greedy"), "only at temperature 0"),
        (("--temperature", "-1"), "temperature is -1"),
        (("--temperature", "nan"), "temperature is nan"),
        (("--draft-temperature", "-1"), "temperature is -1"),
        (("--top-p", "0"), "top_p is 0"),
        (("--max-new-tokens", "0"), "max_new_tokens is 0"),
        (("--proposer", "ngram", "--set", "min_n=5"), "min 5 and max 4"),
        (("--proposer", "ngram", "--set", "min_n=two"), "min_n of the proposer ngram is 'two'"),
        (("--proposer", "ngram", "--set", "min_n"), "min_n of the proposer ngram is ''"),
        (("--proposer", "ngram", "--set", "length=2"), "no setting 'length'; it has min_n=1, max_n=4"),
        (("--proposer", "suffix", "--set", "min_prob=1.5"), "min_prob of the proposer suffix is 1.5"),
        (("--set", "gamma=3"), "the proposer draft_model has no setting 'gamma'"),
        (("--draft", "embedded/draft-xxl"), "no weights 'embedded/draft-xxl' for the proposer draft_model"),
        (("--draft", "/no/such/draft"), "no weights '/no/such/draft'"),
        (("--gamma", "four"), "'--gamma'"),
        (("--gama", "4"), "--gama"),
        (("--stop", ""), "stop string is empty"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_a_model_is_loaded(refused, monkeypatch, options, said):
    from transformers import AutoModelForCausalLM

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *_, **__: pytest.fail("a model was loaded"))
    assert said in refused("decode", "abc", *options)


@pytest.mark.parametrize("options, said", [(("--seed", -1), "seed is -1"), (("--capture", "all"), "capture is 'all'")])
def test_settings_of_the_decoder_are_refused(refused, pair, options, said):
    assert said in refused("decode", "abc", *pair, *options)


def test_a_chat_needs_a_template(refused, pair):
    assert "no chat template" in refused("decode", "abc", *pair, "--chat")


def test_a_trace_that_could_not_be_saved_is_refused_first(refused, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "it is a folder" in refused("decode", "abc", "--trace", tmp_path)
    assert "no folder that you may write to" in refused("decode", "abc", "--trace", tmp_path / "file" / "t.trace")
