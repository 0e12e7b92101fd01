"""Heads' files: what is written others can read, what cannot be used is refused in a sentence, and the law is kept."""

import json
import pickle

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig

from specworkbench.engine import DecodeSettings, make_proposer, make_verifier
from specworkbench.engine.heads.feature import FeatureHead, FeatureShape
from specworkbench.engine.heads.files import load_head, save_head
from specworkbench.engine.heads.medusa import MedusaHeads, MedusaShape
from specworkbench.engine.proposers import EagleProposer, MedusaProposer, MtpProposer, default_weights
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from tests.engine.head_references import (
    INNER,
    LLAMA,
    WIDTH,
    Random,
    check_rows,
    deepseek_names,
    double,
    eagle3_logits,
    hidden_states,
    mtp_logits,
    write,
)
from tests.engine.toy_heads import BARE, FUSED, feature_head, medusa, randomised
from tests.engine.toys import toy_model

TARGET = toy_model(5, layers=4, rms_norm_eps=1e-5)
BLOCK = LlamaConfig(
    hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
    vocab_size=5, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=500.0,
)  # fmt: skip


def read_public(folder):
    """Configuration and tensors as another program would read them."""
    tensors = load_file(folder / "model.safetensors")
    return json.loads((folder / "config.json").read_text()), tensors


@pytest.mark.parametrize("residual_normed", [False, True])
def test_a_saved_eagle_head_is_safeailabs_eagle_3(tmp_path, residual_normed):
    shape = FeatureShape(
        BLOCK, (1, 2, -1), WIDTH, vocabulary=3, norm_fused=True, residual_normed=residual_normed, **FUSED
    )
    head = randomised(FeatureHead(shape, TARGET, torch.tensor([0, 2, 3])))
    save_head(head, tmp_path, TARGET, "eagle")
    config, tensors = read_public(tmp_path)
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [1, 2, -1]
    assert config["draft_vocab_size"] == 3
    assert config["norm_before_residual"] is residual_normed
    assert config["eagle_config"]["norm_before_fc"] is True
    assert tensors["d2t"].tolist() == [0, 1, 1]
    assert tensors["t2d"].tolist() == [True, False, True, True, False]
    assert tensors["midlayer.self_attn.q_proj.weight"].shape == (WIDTH, 2 * WIDTH)
    assert tensors["midlayer.self_attn.k_proj.weight"].dtype == torch.float16
    reference = eagle3_logits(
        TARGET, double(tensors), layers=(1, 2, -1), kept=[0, 2, 3], residual_normed=residual_normed
    )
    loaded = load_head(str(tmp_path), TARGET, "eagle")
    check_rows(EagleProposer(loaded), TARGET, reference, tolerance=1e-6)
    check_rows(EagleProposer(head), TARGET, reference, tolerance=2e-2)


@pytest.mark.parametrize("modules", [1, 3])
def test_saved_mtp_modules_are_deepseeks(tmp_path, modules):
    head = randomised(FeatureHead(FeatureShape(BLOCK, (-1,), WIDTH, modules=modules), TARGET))
    save_head(head, tmp_path, TARGET, "mtp")
    config, tensors = read_public(tmp_path)
    assert config["num_nextn_predict_layers"] == modules
    names = [deepseek_names(4 + k) for k in range(modules)]
    reference = mtp_logits(TARGET, double(tensors), names, False)
    check_rows(MtpProposer(load_head(str(tmp_path), TARGET, "mtp")), TARGET, reference, tolerance=1e-6)
    check_rows(MtpProposer(head), TARGET, reference, tolerance=2e-2)


def test_saved_medusa_heads_are_vllms(tmp_path):
    heads = randomised(MedusaHeads(MedusaShape(2, 1, WIDTH, 5)))
    save_head(heads, tmp_path, TARGET, "medusa")
    config, tensors = read_public(tmp_path)
    assert (config["model_type"], config["num_heads"], config["num_hidden_layers"]) == ("medusa", 2, 1)
    assert config["medusa_fc_bias"] is True
    assert config["truncated_vocab_size"] == config["vocab_size"] == 5
    t = double(tensors)

    def reference(context, guesses):
        k, x = len(guesses), hidden_states(TARGET)[-1][len(context) - 2]
        y = t[f"blocks.{k}.layers.0.weight"] @ x + t[f"blocks.{k}.layers.0.bias"]
        return t[f"lm_heads.{k}.weight"] @ (x + y * torch.sigmoid(y))

    check_rows(MedusaProposer(load_head(str(tmp_path), TARGET, "medusa")), TARGET, reference, tolerance=1e-6)
    check_rows(MedusaProposer(heads), TARGET, reference, tolerance=2e-2)


LAW = {
    "EAGLE-1": lambda t: EagleProposer(feature_head(t, **BARE)),
    "EAGLE-3, reduced vocabulary": lambda t: EagleProposer(
        feature_head(t, (0, -1), torch.tensor([0, 2]), vocabulary=2, **FUSED)
    ),
    "MTP, one module": lambda t: MtpProposer(feature_head(t, feeds_normed=True)),
    "MTP, two modules": lambda t: MtpProposer(feature_head(t, modules=2)),
    "Medusa": lambda t: MedusaProposer(medusa(t, heads=2)),
}


@pytest.mark.parametrize("kind", LAW)
def test_the_law_of_the_whole_loop_is_the_targets_own(kind):
    target = toy_model(3, layers=1, width=WIDTH, sharpness=2.0)
    settings = DecodeSettings(gamma=2, max_new_tokens=3)
    setup = Setup(target, (0, 1, 0), settings, LAW[kind](target), make_verifier(None, settings.sampling))
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(law, product_law(target, setup.prompt, settings)) < 1e-12


def eagle3_tensors(width=WIDTH):
    random = Random()
    tensors = random.block("midlayer", 2 * width, width)
    tensors |= {f"{name}.weight": random.norm(width) for name in ("midlayer.hidden_norm", "norm")}
    return tensors | {"fc.weight": random.matrix(width, 3 * WIDTH), "lm_head.weight": random.matrix(5, width)}


def without(name):
    return {key: value for key, value in eagle3_tensors().items() if key != name}


REDUCED = {"lm_head.weight": torch.zeros(2, WIDTH)}
IDS = {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}
REFUSED = {
    "no head": ({"model.norm.weight": torch.ones(WIDTH)}, {}, "no head of a layout that is known"),
    "fc missing": (without("fc.weight"), {}, "tensors are missing: fc.weight"),
    "a part missing": (without("midlayer.self_attn.v_proj.weight"), {}, "missing: midlayer.self_attn.v_proj.weight"),
    "another target's width": (eagle3_tensors(), {"target_hidden_size": 32}, "a target of width 32, toy-0 has 16"),
    "fc of another width": (
        eagle3_tensors() | {"fc.weight": torch.zeros(WIDTH, 2 * WIDTH)}, {}, "fc.weight reads 32 features",
    ),
    "sizes that differ": (eagle3_tensors(), {"intermediate_size": 20}, r"mlp.gate_proj.weight .* has the shape \[48"),
    "a narrow head without embedding": (
        eagle3_tensors(8), {"hidden_size": 8}, "must bring an embed_tokens.weight of its own",
    ),
    "d2t out of range": (
        eagle3_tensors() | REDUCED | {"d2t": torch.tensor([0, 4])}, {}, "d2t leads to token 5, the target has 5",
    ),
    "d2t twice the same": (
        eagle3_tensors() | REDUCED | {"d2t": torch.tensor([1, 0])}, {}, "d2t leads to some token twice",
    ),
    "d2t of another length": (eagle3_tensors() | {"d2t": torch.tensor([0, 1])}, {}, "2 entries, its lm_head 5 rows"),
    "no d2t": (eagle3_tensors() | REDUCED, {}, "2 rows, the target 5 tokens, and there is no d2t"),
    "d2t without lm_head": (
        without("lm_head.weight") | {"d2t": torch.tensor([0, 1])}, {}, "lm_head.weight is missing",
    ),
    "hidden states that are not there": (
        eagle3_tensors(), {"eagle_aux_hidden_state_layer_ids": [1, 2, 4]}, r"\[1, 2, 4\]; the target's are 0 to 3",
    ),
    "two blocks": (eagle3_tensors(), {"num_hidden_layers": 2}, "has 2 blocks"),
    "a tensor left over": (
        eagle3_tensors() | {"midlayer.self_attn.o_proj.bias": torch.zeros(WIDTH)}, {},
        "no place for some of its tensors: midlayer.self_attn.o_proj.bias",
    ),
    "a part of the positions": (eagle3_tensors(), {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    "extra norms that nobody agrees on": (
        {"fusion_fc.weight": torch.zeros(WIDTH, 2 * WIDTH)} | Random().block("transformer"), {"layernorms": True},
        "extra norms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(tmp_path, case):
    tensors, config, sentence = REFUSED[case]
    name = write(tmp_path, LLAMA | IDS | config, tensors)
    with pytest.raises(InputError, match=sentence):
        make_proposer("eagle", target=TARGET, draft=name)


def test_the_base_case_of_the_refusals_is_accepted(tmp_path):
    assert make_proposer("eagle", target=TARGET, draft=write(tmp_path, LLAMA | IDS, eagle3_tensors()))


def test_mtp_modules_of_another_depth_or_with_experts_missing_are_refused(tmp_path):
    random, names = Random(), deepseek_names(6)
    tensors = {f"{name}.weight": random.norm(WIDTH) for name in (names[0], names[1], names[3])}
    tensors |= {f"{names[2]}.weight": random.matrix(WIDTH, 2 * WIDTH)} | random.block(names[4])
    with pytest.raises(InputError, match=r"numbered \[6\]; for this target they would begin at 4"):
        make_proposer("mtp", target=TARGET, draft=write(tmp_path / "depth", LLAMA, tensors))
    moved = {name.replace("layers.6", "layers.4"): value for name, value in tensors.items()}
    moved["model.layers.4.mlp.experts.1.gate_proj.weight"] = random.matrix(INNER, WIDTH)
    with pytest.raises(InputError, match=r"experts under model\.layers\.4\.mlp\.experts lack"):
        make_proposer("mtp", target=TARGET, draft=write(tmp_path / "experts", LLAMA, moved))


def test_another_kind_of_head_is_refused_by_its_layout(tmp_path):
    name = write(tmp_path, LLAMA | IDS, eagle3_tensors())
    for kind in ("mtp", "medusa"):
        with pytest.raises(InputError, match=f"the layout 'eagle3'; the proposer {kind} cannot use it"):
            make_proposer(kind, target=TARGET, draft=name)


def test_medusa_heads_of_another_width_or_vocabulary_are_refused(tmp_path):
    def written(folder, width, rows, **extra):
        tensors = {"0.0.linear.weight": torch.zeros(width, width), "0.0.linear.bias": torch.zeros(width)}
        return write(tmp_path / folder, {}, tensors | {"0.1.weight": torch.zeros(rows, width)} | extra)

    with pytest.raises(InputError, match="heads read 8 features, the target has 16"):
        make_proposer("medusa", target=TARGET, draft=written("width", 8, 5))
    with pytest.raises(InputError, match="give 3 logits, the target has 5 tokens, and there is no token_map"):
        make_proposer("medusa", target=TARGET, draft=written("rows", WIDTH, 3))
    with pytest.raises(InputError, match="token_map leads to token 9"):
        make_proposer("medusa", target=TARGET, draft=written("map", WIDTH, 2, token_map=torch.tensor([0, 9])))


def damaged(folder, file, content):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / file).write_bytes(content)
    return str(folder)


def test_damaged_and_missing_files_are_told(tmp_path):
    cases = {
        "there is no folder of a head '/nowhere": "/nowhere",
        "has no config.json": str(tmp_path),
        "is no JSON": damaged(tmp_path / "a", "config.json", b"{"),
        "is no JSON object": damaged(tmp_path / "b", "config.json", b"[]"),
        "holds no weights": damaged(tmp_path / "c", "notes.txt", b""),
        "cannot read the file model.safetensors": damaged(tmp_path / "d", "model.safetensors", b"\x08" * 40),
        "the file pytorch_model.bin .* is damaged": damaged(tmp_path / "e", "pytorch_model.bin", b"nothing"),
        "has no weight_map": damaged(tmp_path / "f", "model.safetensors.index.json", b"{}"),
    }
    for sentence, name in cases.items():
        with pytest.raises(InputError, match=sentence):
            make_proposer("eagle", target=TARGET, draft=name)


class Program:
    """What runs when it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Program, "ran", True)


@pytest.mark.parametrize("save", [torch.save, lambda found, path: path.write_bytes(pickle.dumps(found, protocol=2))])
def test_a_pickled_object_is_never_run(tmp_path, save):
    (tmp_path / "config.json").write_text("{}")
    save({"0.0.linear.weight": torch.zeros(2, 2), "program": Program()}, tmp_path / "medusa_lm_head.pt")
    with pytest.raises(InputError, match="so they never are"):
        make_proposer("medusa", target=TARGET, draft=str(tmp_path))
    assert not Program.ran


def test_the_hub_is_asked_for_the_files_that_hold_wanted_tensors_alone(tmp_path, monkeypatch):
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, revision, tuple(allow_patterns)))
        return str(tmp_path)  # the hub's cache names the folder after the commit

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    random, names = Random(), deepseek_names(4)
    tensors = {f"{name}.weight": random.norm(WIDTH) for name in (names[0], names[1], names[3])}
    tensors |= {f"{names[2]}.weight": random.matrix(WIDTH, 2 * WIDTH)} | random.block(names[4])
    write(tmp_path, LLAMA, tensors, "second.safetensors")
    index = dict.fromkeys(tensors, "second.safetensors") | {"model.layers.3.mlp.gate_proj.weight": "first.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    target = toy_model(5, layers=4, rms_norm_eps=1e-5)
    target.name, target.revision = "owner/model", "v1"
    make_proposer("mtp", target=target)
    assert [name for name, _, _ in asked] == ["owner/model"] * 2
    assert [revision for _, revision, _ in asked] == ["v1", tmp_path.name]
    assert asked[-1][2] == ("second.safetensors",)


def test_a_hub_that_cannot_be_reached_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="cannot load the head 'nobody/no-such-head' from the hub"):
        make_proposer("eagle", target=TARGET, draft="nobody/no-such-head")


def test_mtp_looks_for_its_modules_in_the_targets_own_checkpoint():
    assert default_weights(MtpProposer, "embedded") == "embedded/mtp"
    assert default_weights(MtpProposer, "owner/model") == "owner/model"
    assert default_weights(MtpProposer, "model.gguf") is None
    assert default_weights(EagleProposer, "owner/model") is None
