"""MTP modules in their public layouts: plain blocks against the formulas, others against transformers' MTP model."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)
from transformers.modeling_layers import MtpModel

from specworkbench.engine import SamplingSettings, decode, make_proposer
from specworkbench.engine.models import LanguageModel
from tests.engine.head_references import (
    LLAMA,
    WIDTH,
    Random,
    chained,
    check_rows,
    deepseek_names,
    double,
    features_of,
    mtp_logits,
    recurrent,
    write,
)
from tests.engine.toys import toy_model, toy_tokenizer

TARGET = toy_model(5, rms_norm_eps=1e-5)
DEPTH = 2
EMBEDDING = TARGET.model.get_input_embeddings().weight.detach()
OUTPUT = TARGET.model.get_output_embeddings().weight.detach()
NAMES = {
    "deepseek": lambda k: deepseek_names(DEPTH + k),
    "qwen": lambda k: ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", "mtp.norm", f"mtp.layers.{k}"),
    "mimo": lambda k: (
        *(f"model.mtp_layers.{k}.{part}" for part in ("token_layernorm", "hidden_layernorm", "input_proj")),
        f"model.mtp_layers.{k}.final_layernorm", f"model.mtp_layers.{k}",
    ),
}  # fmt: skip
"""Of module k: the norms of the embedding and of the feature, the projection, the output's norm, the block."""


def plain(folder, layout, *, modules=1, bias=False, feeds_normed, copies=False, config=None):
    """block(proj(cat[norm(e), norm(h)])); MiMo's pair is cat[norm(h), norm(e)]. (checkpoint, logits)"""
    random, tensors = Random(4), {}
    for k in range(modules):
        token_norm, hidden_norm, project, output_norm, block = NAMES[layout](k)
        tensors |= {f"{name}.weight": random.norm(WIDTH) for name in (token_norm, hidden_norm, output_norm)}
        tensors[f"{project}.weight"] = random.matrix(WIDTH, 2 * WIDTH)
        tensors |= random.block(block, bias=bias)
        if copies:  # DeepSeek-V3 repeats what the module shares with the model
            tensors[f"{block}.embed_tokens.weight"] = EMBEDDING.float()
            tensors[f"{block}.shared_head.head.weight"] = OUTPUT.float()
    own = {"model.embed_tokens.weight": EMBEDDING.float(), "model.layers.0.input_layernorm.weight": random.norm(WIDTH)}
    name = write(folder, LLAMA | {"num_hidden_layers": DEPTH} | (config or {}), tensors | own)
    return name, mtp_logits(TARGET, double(tensors), [NAMES[layout](k) for k in range(modules)], feeds_normed)


PLAIN = {
    "DeepSeek-V3 and GLM-4.5": {"layout": "deepseek", "feeds_normed": False, "copies": True},
    "DeepSeek-V3, three modules": {"layout": "deepseek", "modules": 3, "feeds_normed": False},
    "three modules, told to hand on what is normed": {
        "layout": "deepseek", "modules": 3, "feeds_normed": True, "config": {"chains_normed_feature": True},
    },
    "Qwen3-Next and 3.5": {"layout": "qwen", "feeds_normed": True},
    "MiMo, whose pair is reversed": {"layout": "mimo", "bias": True, "feeds_normed": True},
    "MiMo, two modules": {"layout": "mimo", "modules": 2, "bias": True, "feeds_normed": True},
}  # fmt: skip


@pytest.mark.parametrize("case", PLAIN)
def test_modules_with_plain_blocks_compute_the_formula(tmp_path, case):
    name, logits = plain(tmp_path, **PLAIN[case])
    check_rows(make_proposer("mtp", target=TARGET, draft=name), TARGET, logits, tolerance=1e-6)


SMALL = {
    "vocab_size": 5, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": DEPTH, "num_attention_heads": 2,
    "moe_intermediate_size": 8, "num_experts_per_tok": 2, "max_position_embeddings": 64, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
DEEPSEEK = SMALL | {
    "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1, "num_key_value_heads": 2,
}  # fmt: skip
GLM = SMALL | {
    "n_routed_experts": 4, "head_dim": 8, "first_k_dense_replace": 1, "num_key_value_heads": 1, "use_qk_norm": True,
}  # fmt: skip
QWEN = SMALL | {
    "num_experts": 4, "head_dim": 8, "num_key_value_heads": 1, "shared_expert_intermediate_size": 8,
    "layer_types": ["full_attention"] * DEPTH,
}  # fmt: skip
LIBRARY = {
    "DeepSeek-V3": (DeepseekV3ForCausalLM, lambda: DeepseekV3Config(**DEEPSEEK, num_nextn_predict_layers=1), 1),
    "DeepSeek-V3, two modules": (
        DeepseekV3ForCausalLM, lambda: DeepseekV3Config(**DEEPSEEK, num_nextn_predict_layers=2), 2,
    ),
    "GLM-4.5": (Glm4MoeForCausalLM, lambda: Glm4MoeConfig(**GLM, num_nextn_predict_layers=1), 1),
    "Qwen3-Next": (Qwen3NextForCausalLM, lambda: Qwen3NextConfig(**QWEN), 1),
}  # fmt: skip


def own_checkpoint(folder, model_class, config, modules):
    """A random target saved by transformers, with random MTP tensors beside it under the public names, in two shards.

    Experts are stored one by one. Returns the target and transformers' own MTP model, which read the same files.
    """
    torch.manual_seed(0)
    config._experts_implementation = "eager"  # the grouped product of the others knows no float64
    model = model_class(config).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.4)
    model.save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    qwen = model_class is Qwen3NextForCausalLM
    last, extra = f"model.layers.{DEPTH - 1}.", {}
    random = Random(5)
    for k in range(modules):
        names = NAMES["qwen" if qwen else "deepseek"](k)
        for name, value in stored.items():
            if name.startswith(last):
                public = f"{names[4]}.{name.removeprefix(last)}"
                extra[public] = random.matrix(*value.shape).double()
        extra |= {f"{name}.weight": random.norm(WIDTH).double() for name in (names[0], names[1], names[3])}
        extra[f"{names[2]}.weight"] = random.matrix(WIDTH, 2 * WIDTH).double()
    (folder / "model.safetensors").unlink()
    shards = {"model-00001-of-00002.safetensors": stored, "model-00002-of-00002.safetensors": extra}
    for file, tensors in shards.items():
        save_file(tensors, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, tensors in shards.items() for name in tensors}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    model.config.name_or_path = str(folder)
    model.config.dtype = torch.float64
    model._keys_to_ignore_on_load_unexpected = [r"^mtp.*" if qwen else rf"model\.layers\.[{DEPTH}-9]\..*"]
    if qwen:
        model.config.num_mtp_layers, model.config.mtp_layer_types = 1, ["full_attention"]
    return LanguageModel(model, toy_tokenizer(5), str(folder)), MtpModel.from_pretrained(model).double().eval()


def library_step(mtp, k, feeds_normed):
    """Module k of transformers' MTP model over a whole sequence, without a cache."""
    block_outputs = []
    mtp.layers[k].mtp_block.register_forward_hook(lambda module, inputs, output: block_outputs.append(output))

    @torch.no_grad()
    def step(embedded, feature):
        positions = torch.arange(len(feature))[None]
        headed = mtp.forward_layer(k, feature[None], positions, None, inputs_embeds=embedded[None])[0]
        return headed if feeds_normed else block_outputs[-1][0], mtp.shared_head(headed)

    return step


@pytest.mark.parametrize("case", LIBRARY)
def test_blocks_of_other_architectures_compute_what_transformers_computes(tmp_path, case):
    """Read from the target's own sharded checkpoint, by the target's own name."""
    model_class, config, modules = LIBRARY[case]
    target, mtp = own_checkpoint(tmp_path, model_class, config(), modules)
    embedding = target.model.get_input_embeddings().weight.detach()
    feeds_normed = case == "Qwen3-Next"
    steps = [library_step(mtp, k, feeds_normed) for k in range(modules)]
    features = features_of(target)
    logits = (
        recurrent(steps[0], features, lambda ids: embedding[ids])
        if modules == 1
        else chained(steps, features, lambda ids: embedding[ids])
    )
    proposer = make_proposer("mtp", target=target)
    assert proposer.head.shape.layer_class is type(target.model.get_decoder().layers[-1])
    check_rows(proposer, target, logits, tolerance=1e-5)
    options = dict(target=target, max_new_tokens=12, sampling=SamplingSettings(temperature=0))
    plain = decode("abcab", **options).token_ids
    assert decode("abcab", proposer=proposer, **options).token_ids == plain
    if modules == 1:
        tree = make_proposer("mtp", target=target, draft=proposer.head, nodes=5, width=2)
        assert decode("abcab", proposer=tree, **options).token_ids == plain


def test_only_the_files_with_wanted_tensors_are_opened(tmp_path):
    model_class, config, modules = LIBRARY["GLM-4.5"]
    target, _ = own_checkpoint(tmp_path, model_class, config(), modules)
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    assert make_proposer("mtp", target=target).head.layout == "deepseek mtp"
