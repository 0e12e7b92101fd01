"""Prompts are typed or picked by bucket, and suit the target."""

from specworkbench.widgets.lab_prompts import ALL, TYPED, PromptPicker
from specworkbench.workloads import load_prompts


def test_at_first_the_first_prompts_of_the_buckets_are_chosen():
    assert [prompt.id for prompt in PromptPicker("embedded").prompts] == ["code-01", "prose-01", "structured-01"]


def test_a_bucket_offers_its_own_and_what_is_picked_keeps_its_order():
    picker = PromptPicker("embedded")
    picker.source.value = "prose"
    assert {prompt.bucket for prompt in picker.prompts} == {"prose"} and len(picker.chosen.options) == 12
    picker.pick(("structured-02", "code-03"))
    assert picker.source.value == ALL and [prompt.id for prompt in picker.prompts] == ["code-03", "structured-02"]


def test_another_target_brings_the_prompts_that_suit_it_and_keeps_what_was_typed():
    picker = PromptPicker("embedded", "x = 1")
    picker.suit("some/model")
    assert picker.shipped == load_prompts("general") and picker.prompts
    picker.source.value = TYPED
    assert picker.text.layout.display is None and picker.chosen.layout.display == "none"
    picker.suit("embedded")
    assert picker.source.value == TYPED and picker.prompts[0].text == "x = 1"
