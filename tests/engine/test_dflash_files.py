"""Files of DFlash heads: layouts and shards are one head; one that does not fit is refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from specworkbench.engine import decode, make_proposer
from specworkbench.errors import InputError
from tests.engine.toy_dflash import BLOCK, FUSED, INNER, MASK, PLAIN, SIZES, dflash, random_weights, write
from tests.engine.toys import toy_model


def without(entry: dict, key: str) -> dict:
    return {name: value for name, value in entry.items() if name != key}


@pytest.mark.parametrize(
    "entry, sentence",
    [
        (without(PLAIN, "hidden_size"), "does not give hidden_size"),
        (without(PLAIN, "block_size"), "does not give block_size"),
        (PLAIN | {"block_size": 1}, "block size .* is 1; 2 is the least"),
        (PLAIN | {"dflash_config": {"mask_token_id": MASK}}, "does not give target_layer_ids"),
        (PLAIN | {"dflash_config": {"target_layer_ids": [0, 1]}}, "does not give mask_token_id"),
        (PLAIN | {"dflash_config": INNER | {"mask_token_id": 7}}, "embeds tokens 0 to 6 only"),
        (PLAIN | {"dflash_config": INNER | {"target_layer_ids": [0, 3]}}, r"reads the hidden states \(1, 4\)"),
        (PLAIN | {"sample_from_anchor": True}, "sample_from_anchor True, a variant"),
        (PLAIN | {"projector_type": "domino"}, "projector_type 'domino', a variant"),
        (PLAIN | {"layer_types": ["sliding_attention"] * 2}, r"'sliding_attention' \(window None\)"),
        (PLAIN | {"intermediate_size": 32}, r"down_proj.weight is \(16, 24\), not \(16, 32\)"),
        (PLAIN | {"num_hidden_layers": 3}, r"layers.2.* is missing.*and \d+ more"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(tmp_path, entry, sentence):
    with pytest.raises(InputError, match=sentence):
        dflash(tmp_path, entry)


def test_a_head_of_another_width_or_with_unknown_parts_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"16 wide.*are 8 wide: it belongs to another target"):
        dflash(tmp_path, target=toy_model(5, width=8, rows=7))
    with pytest.raises(InputError, match=r"candidate_selector.codebook is not known"):
        dflash(tmp_path, weights=random_weights() | {"candidate_selector.codebook": torch.zeros(2, 2)})
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no weights"):
        make_proposer("parallel", target=FUSED, draft=str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot read the file model"):
        make_proposer("parallel", target=FUSED, draft=str(tmp_path))


def test_the_layouts_of_z_lab_transformers_and_speculators_are_one_head(tmp_path):
    weights = random_weights()
    names = {"fc.": "encoder.fc.", "hidden_norm.": "encoder.output_norm_enc."}
    renamed = {next((n + k[len(o) :] for o, n in names.items() if k.startswith(o)), k): v for k, v in weights.items()}
    speculators = {
        "speculators_model_type": "dflash", "transformer_layer_config": SIZES, "block_size": BLOCK,
        "mask_token_id": MASK, "aux_hidden_state_layer_ids": [1, 2], "draft_vocab_size": 7,
    }  # fmt: skip
    transformers = {**SIZES, "model_type": "muse_glimmer_assistant", "block_size": BLOCK, **INNER}
    inner = {**SIZES, "dflash_config": INNER | {"block_size": BLOCK}}
    legacy = {**PLAIN, "rope_theta": 10000.0}
    del legacy["rope_parameters"]
    proposers = [
        dflash(tmp_path / "z-lab", PLAIN, weights),
        dflash(tmp_path / "block size inside", inner, weights),
        dflash(tmp_path / "older rope", legacy, weights),
        dflash(tmp_path / "wrapped", PLAIN, {f"model.{key}": tensor for key, tensor in weights.items()}),
        dflash(tmp_path / "transformers", transformers, renamed),
        dflash(tmp_path / "speculators", speculators, weights),
    ]
    outputs = [decode("abcab", target=FUSED, proposer=each, gamma=3, capture="full").trace for each in proposers]
    for trace in outputs[1:]:
        np.testing.assert_array_equal(trace.rows["draft"], outputs[0].rows["draft"])  # NaN at the bonus, and equal


def test_shards_are_read_as_one_file(tmp_path):
    weights = random_weights()
    whole = dflash(tmp_path / "whole", PLAIN, weights)
    folder = tmp_path / "shards"
    write(folder, PLAIN, weights)
    (folder / "model.safetensors").unlink()
    parts = {
        "model-00001-of-00002.safetensors": sorted(weights)[:9],
        "model-00002-of-00002.safetensors": sorted(weights)[9:],
    }
    for file, keys in parts.items():
        save_file({key: weights[key] for key in keys}, folder / file)
    index = {"metadata": {}, "weight_map": {key: file for file, keys in parts.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    sharded = make_proposer("parallel", target=FUSED, draft=str(folder)).draft.head
    assert all(torch.equal(tensor, whole.draft.head.state_dict()[key]) for key, tensor in sharded.state_dict().items())
