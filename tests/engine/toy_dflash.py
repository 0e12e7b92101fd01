"""A small DFlash head with random weights, as files and as a proposer for a toy target."""

import json

import torch
from safetensors.torch import save_file

from specworkbench.engine import make_proposer
from specworkbench.engine.heads.dflash import DFlashHead
from specworkbench.engine.heads.dflash_config import read_dflash
from specworkbench.engine.models import LanguageModel
from tests.engine.toys import toy_model

MASK, BLOCK, WIDTH = 6, 4, 16
FUSED = toy_model(5, layers=3, rows=7)
TARGETS = {"fused": FUSED, "transformers": LanguageModel(FUSED.model, FUSED.tokenizer, "plain", fused=False)}
SIZES = {
    "hidden_size": WIDTH, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-6, "max_position_embeddings": 64,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}  # fmt: skip
INNER = {"mask_token_id": MASK, "target_layer_ids": [0, 1]}
PLAIN = {**SIZES, "model_type": "qwen3", "block_size": BLOCK, "dflash_config": INNER}


def random_weights(entry: dict = PLAIN) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = {key: tensor.shape for key, tensor in DFlashHead(read_dflash(entry, "random")).state_dict().items()}
    return {
        key: torch.randn(shape, generator=generator, dtype=torch.float64) * shape[-1] ** -0.5 + (len(shape) == 1)
        for key, shape in shapes.items()
    }


def write(folder, entry: dict = PLAIN, weights: dict | None = None) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(entry))
    save_file(random_weights(PLAIN) if weights is None else weights, folder / "model.safetensors")
    return str(folder)


def dflash(folder, entry: dict = PLAIN, weights: dict | None = None, target: LanguageModel = FUSED):
    return make_proposer("parallel", target=target, draft=write(folder, entry, weights))
