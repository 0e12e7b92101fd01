"""One name in, a ready model out; everything else is refused with a sentence."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.utils import logging

from specworkbench.engine.loading import check_same_vocabulary, embedded_names, load_model, load_pair
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import make_proposer
from specworkbench.errors import InputError
from tests.engine.toys import toy_model


def save(model, folder):
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return str(folder)


def test_the_embedded_family_loads_by_name():
    target, draft = load_pair()
    assert target.name == "embedded" and draft.name == "embedded/draft-m"
    assert target.dtype == torch.float32 if target.device.type == "cpu" else True
    assert draft.parameters < target.parameters / 5
    assert target.vocab_size == draft.vocab_size <= target.model.config.vocab_size


def test_an_embedded_model_is_loaded_without_a_bar_and_other_bars_are_left_as_they_were(capsys):
    was = logging.is_progress_bar_enabled()
    try:
        for switch, shown in ((logging.enable_progress_bar, True), (logging.disable_progress_bar, False)):
            switch()
            load_model("embedded/draft-s")
            assert "Loading" not in capsys.readouterr().err and logging.is_progress_bar_enabled() is shown
    finally:
        (logging.enable_progress_bar if was else logging.disable_progress_bar)()


def test_the_embedded_names_are_the_target_and_its_drafts():
    names = embedded_names()
    assert names[0] == "embedded" and {"embedded/draft-m", "embedded/draft-s"} <= set(names)


@pytest.fixture
def embedded_head(tmp_path, monkeypatch):
    """The embedded family is a target, a draft and a head."""
    for name, config in {"target": {}, "small": {}, "mine": {"specworkbench_head": "eagle"}}.items():
        (tmp_path / "models" / "embedded" / name).mkdir(parents=True)
        (tmp_path / "models" / "embedded" / name / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("specworkbench.paths.data_dir", lambda: tmp_path)
    return "embedded/mine"


def test_a_head_is_no_draft(embedded_head):
    assert embedded_names() == ["embedded", "embedded/small"]
    with pytest.raises(InputError, match="a head, to be used as --proposer eagle --draft embedded/mine"):
        load_model(embedded_head)


@pytest.mark.parametrize(
    "marks, kind",
    [
        ({"specworkbench_head": "mtp"}, "mtp"),
        ({"medusa_num_heads": 2}, "medusa"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "eagle"),
        ({"architectures": ["MedusaModel"]}, "medusa"),
    ],
)
def test_a_head_is_not_loaded_as_a_model_even_where_transformers_would(tmp_path, marks, kind):
    folder = save(toy_model(5), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | marks
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=f"no model but a head, to be used as --proposer {kind} --draft {folder}"):
        load_model(folder)


def test_a_local_folder_loads_in_the_dtype_asked_for(tmp_path):
    folder = save(toy_model(7), tmp_path)
    assert load_model(folder, dtype="float64").dtype == torch.float64
    assert load_model(folder).dtype == (torch.float32 if load_model(folder).device.type == "cpu" else torch.float64)


def test_on_the_meta_device_no_weights_are_read_but_shapes_and_vocabulary_are_the_same(tmp_path):
    toy = toy_model(12)
    toy.model.config.save_pretrained(tmp_path)
    toy.tokenizer.save_pretrained(tmp_path)
    outline = load_model(str(tmp_path), device="meta")
    assert outline.device.type == "meta" and outline.parameters == toy.parameters
    assert (outline.vocab_size, outline.max_context) == (toy.vocab_size, toy.max_context)
    check_same_vocabulary(outline, toy)
    with pytest.raises(InputError, match="cannot load the model"):
        load_model(str(tmp_path), device="cpu")


def test_a_device_map_is_passed_on_and_the_model_left_where_it_was_put(tmp_path, monkeypatch):
    folder, options = save(toy_model(7), tmp_path), {}
    load = AutoModelForCausalLM.from_pretrained
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *a, **o: options.update(o) or load(*a, **o))
    model = load_model(folder, device_map="auto", device="cpu")
    assert options["device_map"] == "auto" and model.forward(torch.tensor([1]), model.new_cache()).logits.shape == (
        1,
        7,
    )


@pytest.mark.parametrize("rows", [5, 8])
def test_padding_rows_are_cut_off_so_that_they_cannot_be_drawn(rows):
    model = toy_model(5, rows=rows)
    assert model.vocab_size == 5
    assert model.forward(torch.tensor([1, 2]), model.new_cache()).logits.shape == (2, 5)


def test_a_pair_that_differs_in_padding_rows_only_is_accepted():
    check_same_vocabulary(toy_model(5, rows=5), toy_model(5, rows=8))
    assert make_proposer("draft_model", target=toy_model(5), draft=toy_model(5, rows=8)).name == "draft_model"


def test_another_vocabulary_is_refused_and_the_proposer_for_it_named():
    with pytest.raises(InputError, match=r"id 5.*other_vocabulary"):
        make_proposer("draft_model", target=toy_model(5), draft=toy_model(6))


def test_forward_keeps_only_the_rows_asked_for_and_the_layers_asked_for():
    model = toy_model(5, layers=2, width=16)
    ids = torch.tensor([0, 1, 2, 3])
    whole = model.forward(ids, model.new_cache(), layers=(0, -1))
    last = model.forward(ids, model.new_cache(), rows=1)
    assert torch.allclose(whole.logits[-1:], last.logits) and last.hidden == {}
    assert {layer: rows.shape for layer, rows in whole.hidden.items()} == {0: (4, 16), -1: (4, 16)}


def test_the_cache_keyword_is_the_one_the_installed_transformers_takes():
    toy = toy_model(5)
    model = LanguageModel(toy.model, toy.tokenizer, "toy", fused=False)
    cache = model.new_cache()
    model.forward(torch.tensor([0, 1]), cache)
    assert cache.cache.get_seq_length() == cache.length == 2


@pytest.mark.parametrize(
    "name, said",
    [
        ("embedded/draft-xxl", "there is no embedded model .*embedded/draft-s"),
        ("/no/such/folder", "there is no model folder"),
        ("./nothing", "there is no model folder"),
        ("/no/such/file.gguf", "GGUF"),
        ("~/no-such-folder/file.gguf", "there is no GGUF file"),
        ("nobody/nothing-of-the-kind", "cannot load the model 'nobody/nothing-of-the-kind'"),
    ],
)
def test_an_unknown_name_gets_a_sentence(name, said, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=said):
        load_model(name)


def test_a_folder_that_is_no_model_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(str(tmp_path))


def test_a_folder_with_a_config_and_nothing_else_gets_a_sentence(tmp_path):
    LlamaConfig().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="cannot load the model"):
        load_model(str(tmp_path))


@pytest.mark.parametrize("option, value", [("dtype", "float7"), ("device", "abacus"), ("device", "cuda:77")])
def test_an_unusable_dtype_or_device_gets_a_sentence(tmp_path, option, value):
    folder = save(toy_model(5), tmp_path)
    with pytest.raises(InputError, match=value):
        load_model(folder, **{option: value})


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_an_empty_prompt_gets_a_sentence(prompt):
    with pytest.raises(InputError, match="prompt is empty"):
        toy_model(5).encode(prompt)


def test_a_chat_prompt_needs_a_template():
    model = toy_model(5)
    with pytest.raises(InputError, match="no chat template"):
        model.encode("ab", chat=True)
    model.tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}c"
    assert model.encode("ab", chat=True) == [0, 1, 2]


def test_the_generation_config_is_read_but_only_what_it_sets():
    model = toy_model(5)
    model.model.generation_config.update(do_sample=True, temperature=0.6, top_k=20)
    assert model.generation_sampling().items() >= {"temperature": 0.6, "top_k": 20}.items()
    model.model.generation_config.do_sample = False
    assert model.generation_sampling()["temperature"] == 0.0


def test_gguf_and_chat_template_on_a_real_model(real_model):
    model = load_model(str(real_model("smollm2")))
    ids = model.encode("Hello", chat=True)
    assert len(ids) > 4 and model.vocab_size <= model.model.config.vocab_size
