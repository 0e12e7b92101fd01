"""The trainer learns, resumes to the same weights, distils; its exports are ordinary Hugging Face folders."""

from __future__ import annotations

import json

import numpy as np
import pytest

# ruff: noqa: E402 - imported only where torch is installed
torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
pytest.importorskip("transformers", reason="transformers is not installed (the extra 'engine')")

from transformers import AutoModelForCausalLM

from specworkbench.training import structured
from specworkbench.training.corpus import BUCKETS
from specworkbench.training.distill import distil_losses
from specworkbench.training.evaluate import bits_per_byte, overlap, sample, xz_bits_per_byte
from specworkbench.training.family import SHAPES, count_parameters, export, make_config, make_model
from specworkbench.training.mixture import SHARES, Mixture, encode_documents
from specworkbench.training.muon import orthogonalise
from specworkbench.training.tokenizer import train_tokenizer
from specworkbench.training.trainer import Settings, Trainer, rate_factor

TEXTS = [structured.document("train", i)[1] for i in range(30)]
SHAPE = dict(
    hidden_size=16, num_hidden_layers=2, intermediate_size=32, num_attention_heads=2, num_key_value_heads=1
)  # fmt: skip
SETTINGS = Settings(steps=8, batch_tokens=128, length=32, long_length=64, long_share=0.3, other_rate=2e-2)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=300)


@pytest.fixture(scope="module")
def mixture(tokenizer):
    stream = encode_documents(tokenizer, TEXTS)
    return Mixture(dict.fromkeys(BUCKETS, stream))


def tiny(seed: int = 0):
    return make_model(make_config(vocab_size=300, **SHAPE), seed=seed)


def trained(folder, mixture, settings=SETTINGS, **options):
    trainer = Trainer({"model": tiny()}, mixture, settings, folder, **options)
    trainer.run()
    return trainer


def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path, mixture):
    whole = trained(tmp_path / "whole", mixture)
    Trainer({"model": tiny()}, mixture, SETTINGS, tmp_path / "parts").run(stop_after=3)
    resumed = Trainer({"model": tiny(seed=9)}, mixture, SETTINGS, tmp_path / "parts")
    assert resumed.progress.step == 3
    resumed.run()
    assert resumed.progress.step == whole.progress.step == 8
    for name, weight in whole.models["model"].state_dict().items():
        assert torch.equal(weight, resumed.models["model"].state_dict()[name]), name


def test_training_lowers_the_bits_per_byte(tmp_path, mixture, tokenizer):
    before = bits_per_byte(tiny(), tokenizer, TEXTS[:3], window=64)
    after = bits_per_byte(trained(tmp_path, mixture).models["model"], tokenizer, TEXTS[:3], window=64)
    assert after < 0.9 * before


def test_drafts_come_closer_to_the_target_by_distillation(tmp_path, mixture, tokenizer):
    teacher = trained(tmp_path / "teacher", mixture).models["model"].eval()
    drafts = {"one": tiny(seed=1), "two": tiny(seed=2)}
    before = overlap(teacher, drafts["one"], tokenizer, TEXTS[:2], window=64)
    Trainer(drafts, mixture, SETTINGS, tmp_path / "drafts", loss_of=distil_losses(teacher)).run()
    assert overlap(teacher, drafts["one"], tokenizer, TEXTS[:2], window=64) > before
    assert overlap(teacher, teacher, tokenizer, TEXTS[:2], window=64) == pytest.approx(1, abs=1e-5)


def test_bits_per_byte_counts_every_token_once_whatever_the_window(tokenizer):
    uniform = tiny()
    torch.nn.init.zeros_(uniform.model.embed_tokens.weight)  # tied: every logit is 0
    tokens, size = len(encode_documents(tokenizer, TEXTS[:2])), len("".join(TEXTS[:2]).encode())
    for window in (16, 64, 1024):
        rate = bits_per_byte(uniform, tokenizer, TEXTS[:2], window)
        assert rate == pytest.approx(tokens * np.log2(300) / size, rel=1e-5)


def test_xz_compresses_repetition():
    assert xz_bits_per_byte(["the same line again\n" * 200]) < 1


def test_an_export_is_loaded_by_transformers_as_float16_and_without_generation_settings(tmp_path, tokenizer):
    model = tiny()
    export(model, tokenizer, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["dtype"], config["model_type"], config["tie_word_embeddings"]) == ("float16", "llama", True)
    assert not (tmp_path / "generation_config.json").exists()
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert loaded.dtype == torch.float16
    for name, weight in model.state_dict().items():
        assert torch.equal(weight.half(), loaded.state_dict()[name]), name
    assert isinstance(sample(loaded.float(), tokenizer, "id,", tokens=4), str)


def test_the_mixture_keeps_its_shares_and_sees_nearly_every_window_once_an_epoch():
    streams = {bucket: np.arange(k * 1000, k * 1000 + 330, dtype=np.uint16) for k, bucket in enumerate(BUCKETS)}
    mixture, windows = Mixture(streams), (330 - 1) // 10 - 1
    batch = mixture.batch(0, 200, 10)
    assert batch.shape == (200, 11)
    assert (np.diff(batch, axis=1) == 1).all()
    assert np.bincount(batch[:, 0] // 1000) / 200 == pytest.approx(SHARES, abs=0.01)
    for first in (0, 57):
        owners = mixture.batch(first, 400, 10)[:, 0] // 1000
        assert [int((owners == k).sum()) for k in range(3)] == pytest.approx([400 * s for s in SHARES], abs=2)
    code = batch[batch[:, 0] < 1000, 0]
    assert len(set(code[:windows])) > 0.8 * windows
    assert code[:windows].tolist() != code[windows : 2 * windows].tolist()


def test_muon_s_directions_have_singular_values_near_one():
    torch.manual_seed(0)
    for shape in ((3, 16, 40), (2, 40, 16)):
        values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
        assert values.min() > 0.5 and values.max() < 1.4


def test_the_rate_warms_up_and_ends_at_zero():
    factors = [rate_factor(p / 100, Settings(steps=100)) for p in range(101)]
    assert factors[0] < 0.1 and max(factors) == 1 and factors[-1] == 0
    assert factors[30:] == sorted(factors[30:], reverse=True)


def test_minutes_and_steps_exclude_each_other():
    with pytest.raises(ValueError, match="exactly one"):
        Settings()


def test_the_family_has_the_sizes_its_card_names():
    sizes = {name: count_parameters(make_model(make_config(**shape))) for name, shape in SHAPES.items()}
    assert 6e6 <= sizes["target"] <= 12e6 and SHAPES["target"]["num_hidden_layers"] >= 8
    assert 8 < sizes["target"] / sizes["draft-m"] < 12
    assert 32 < sizes["target"] / sizes["draft-s"] < 48
