"""`models`: names that `--target` takes, with parameters, and how to name any other."""

import json
import shutil

import pytest

from specworkbench.cli.models import parameters_of
from tests.engine.toys import toy_model
from tests.experiments.toys import strict_json


@pytest.fixture
def local(tmp_path, monkeypatch, toys):
    monkeypatch.setenv("SPECWORKBENCH_MODELS", str(toys))
    return toys


def test_the_embedded_family_and_the_local_folders_are_listed(command, local):
    (local / "tiny.gguf").touch()
    code, out, _ = command("models")
    assert code == 0
    for name in ("embedded ", "embedded/draft-m", "embedded/draft-s", str(local / "target"), str(local / "tiny.gguf")):
        assert name in out
    assert "OWNER/NAME" in out and "GGUF" in out
    (local / "tiny.gguf").unlink()


def test_parameters_are_those_of_the_loaded_model(command, local):
    _, out, _ = command("models", "--json")
    listed = {model["name"]: model for model in strict_json(out)["local"]}
    expected = toy_model(26, layers=2, context=160)
    assert listed[str(local / "target")]["parameters"] == expected.parameters
    assert listed[str(local / "target")]["context"] == expected.max_context


def test_no_local_folder_is_no_error(command, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECWORKBENCH_MODELS", str(tmp_path / "nowhere"))
    code, out, _ = command("models")
    assert code == 0 and "none" in out


def header(**tensors):
    text = json.dumps({name: {"shape": shape} for name, shape in tensors.items()}).encode()
    return len(text).to_bytes(8, "little") + text


def test_a_tied_output_matrix_counts_once(tmp_path):
    tensors = {"model.embed_tokens.weight": [4, 3], "lm_head.weight": [4, 3]}
    (tmp_path / "model.safetensors").write_bytes(header(**tensors))
    assert parameters_of(tmp_path) == 24 and parameters_of(tmp_path, tied=True) == 12


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"short", header(x="shape"), header() + b"x"])
def test_weights_that_cannot_be_read_have_no_number(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert parameters_of(tmp_path) is None


HEADS = {
    "ours": ({"specworkbench_head": "mtp"}, "mtp"),
    "medusa": ({"medusa_num_heads": 3}, "medusa"),
    "eagle3": ({"model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"]}, "eagle"),
}


def test_heads_are_listed_apart_with_their_parameters_and_how_to_use_them(command, local):
    for name, (config, _) in HEADS.items():
        (local / name).mkdir()
        (local / name / "config.json").write_text(json.dumps(config))
        (local / name / "model.safetensors").write_bytes(header(**{"head.weight": [4, 3]}))
    _, out, _ = command("models", "--json")
    _, text, _ = command("models")
    listed = strict_json(out)
    for name, (_, kind) in HEADS.items():
        entry = {"name": str(local / name), "parameters": 12, "context": None, "head": kind}
        assert entry in listed["heads"] and entry not in listed["local"]
        assert f"--proposer {kind} --draft {local / name}" in text
        shutil.rmtree(local / name)
    assert all(entry["head"] is None for entry in listed["local"] + listed["embedded"])
    assert str(local / "target") in {entry["name"] for entry in listed["local"]}
