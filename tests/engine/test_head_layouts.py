"""Public checkpoints of EAGLE and Medusa: what is loaded computes what the papers' formulas say, plainly, here."""

import pytest
import torch

from specworkbench.engine import make_proposer
from specworkbench.errors import InputError
from tests.engine.head_references import (
    LLAMA,
    TEXT,
    WIDTH,
    Random,
    check_rows,
    double,
    eagle3_logits,
    features_of,
    hidden_states,
    llama_block,
    recurrent,
    write,
)
from tests.engine.toys import toy_model

TARGET = toy_model(5, layers=8)
EMBEDDING = TARGET.model.get_input_embeddings().weight.detach()
OUTPUT = TARGET.model.get_output_embeddings().weight.detach()


def eagle1(folder, *, bias=True, own=False, file="model.safetensors", speculators=False):
    """EAGLE-1/2: block(fc(cat[embedding, feature])), no norm before; the target's output matrix. (name, logits)"""
    random = Random()
    fc, prefix = ("fusion_fc", "transformer") if speculators else ("fc", "layers.0")
    tensors = {f"{fc}.weight": random.matrix(WIDTH, 2 * WIDTH)} | random.block(prefix, input_norm=False)
    if bias:
        tensors[f"{fc}.bias"] = random.matrix(WIDTH)
    embedding = random.matrix(5, WIDTH).double() if own else EMBEDDING
    tensors["embed_tokens.weight"] = embedding.float()
    t = double(tensors)

    def step(embedded, feature):
        x = torch.cat([embedded, feature], dim=-1) @ t[f"{fc}.weight"].T + t.get(f"{fc}.bias", 0)
        output = llama_block(t, prefix, x, x)
        return output, output @ OUTPUT.T

    config = LLAMA | {"architectures": ["LlamaForCausalLM"], "bias": bias}
    if speculators:
        config = {
            "speculators_model_type": "eagle", "architectures": ["EagleSpeculator"], "fusion_bias": bias,
            "layernorms": False, "transformer_layer_architecture": "LlamaDecoderLayer",
            "transformer_layer_config": LLAMA,
        }  # fmt: skip
    name = write(folder, config, tensors, file)
    return name, recurrent(step, features_of(TARGET), lambda ids: (t["embed_tokens.weight"] if own else EMBEDDING)[ids])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False, "own": True},
        {"file": "pytorch_model.bin"},
        {"speculators": True},
        {"speculators": True, "bias": False},
    ],
    ids=str,
)
def test_eagle_1_computes_the_papers_formula(tmp_path, options):
    name, logits = eagle1(tmp_path, **options)
    check_rows(make_proposer("eagle", target=TARGET, draft=name), TARGET, logits, tolerance=1e-6)


def eagle3(
    folder, config, *, layers, prefix="midlayer", vocabulary=(0, 2, 3), width=WIDTH, own=False, fused=True,
    input_norm=False, layer_norms=False, residual_normed=False, feeds_normed=False, window=None, qk_norm=False,
):  # fmt: skip
    """EAGLE-3: the attention reads cat[norm(embedding), norm(g)], g = fc(cat[hidden states]). (checkpoint, logits)

    vocabulary: the tokens of a reduced one. layers: the hidden states that must be read, as transformers counts them.
    """
    random = Random(1)
    tensors = random.block(prefix, 2 * width, width, qk_norm=qk_norm)
    tensors |= {f"{prefix}.hidden_norm.weight": random.norm(width), "norm.weight": random.norm(width)}
    if fused:
        tensors["fc.weight"] = random.matrix(width, 3 * WIDTH)
    if input_norm:
        tensors["input_norm.weight"] = random.norm(3 * WIDTH)
    if layer_norms:
        tensors |= {f"fc_norm.{k}.weight": random.norm(WIDTH) for k in range(3)}
    kept = list(vocabulary or range(5))
    tensors["lm_head.weight"] = random.matrix(len(kept), width)
    if vocabulary:
        tensors["d2t"] = torch.tensor(kept) - torch.arange(len(kept))
        tensors["t2d"] = torch.tensor([token in kept for token in range(5)])
    if own:
        tensors["embed_tokens.weight"] = random.matrix(5, width)
    sizes = {"hidden_size": width, "draft_vocab_size": len(kept), "head_dim": width // 2}
    inner = config.get("transformer_layer_config")
    config = config | {"draft_vocab_size": len(kept)} if inner else LLAMA | sizes | config
    name = write(folder, config, tensors)
    return name, eagle3_logits(
        TARGET, double(tensors), layers=layers, kept=kept, prefix=prefix, residual_normed=residual_normed,
        feeds_normed=feeds_normed, window=window,
    )  # fmt: skip


SAFEAILAB = {"architectures": ["LlamaForCausalLMEagle3"]}
SPECULATORS = {
    "architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "transformer_layer_config": LLAMA,
    "speculators_config": {"algorithm": "eagle3", "default_proposal_method": "greedy"},
}  # fmt: skip
MIDDLE = (2, 4, 5)
EAGLE3 = {
    "SafeAILab": (SAFEAILAB, {"layers": MIDDLE}),
    "equal vocabularies": (SAFEAILAB, {"layers": MIDDLE, "vocabulary": None}),
    "an embedding of its own": (SAFEAILAB, {"layers": MIDDLE, "own": True}),
    "a narrower head": (SAFEAILAB | {"target_hidden_size": 16}, {"layers": MIDDLE, "width": 8, "own": True}),
    "named hidden states, before each layer": (
        SAFEAILAB | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 6], "use_aux_hidden_state": True}},
        {"layers": (1, 3, 6)},
    ),
    "SpecForge's default, after each layer": (
        SAFEAILAB | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}}, {"layers": MIDDLE},
    ),
    "a norm before fc": (
        SAFEAILAB | {"eagle_config": {"norm_before_fc": True}}, {"layers": MIDDLE, "input_norm": True},
    ),
    "the last hidden state alone": (
        SAFEAILAB | {"eagle_config": {"use_aux_hidden_state": False}}, {"layers": (-1,), "fused": False},
    ),
    "layers.0 without speculators' configuration": (SAFEAILAB, {"layers": MIDDLE, "prefix": "layers.0"}),
    "speculators, norm_before_residual absent": (SPECULATORS, {"layers": MIDDLE, "residual_normed": True}),
    "speculators, norm_before_residual": (
        SPECULATORS | {"norm_before_residual": True}, {"layers": MIDDLE, "residual_normed": True},
    ),
    "speculators, no norm_before_residual": (SPECULATORS | {"norm_before_residual": False}, {"layers": MIDDLE}),
    "speculators, one norm before fc": (
        SPECULATORS | {"norm_before_residual": True, "norm_before_fc": True, "norm_output": True},
        {"layers": MIDDLE, "residual_normed": True, "input_norm": True, "feeds_normed": True},
    ),
    "speculators, a norm of each hidden state": (
        SPECULATORS | {"norm_before_residual": False, "fc_norm": True, "norm_output": True},
        {"layers": MIDDLE, "layer_norms": True, "feeds_normed": True},
    ),
    "speculators, named hidden states": (
        SPECULATORS | {"norm_before_residual": False, "eagle_aux_hidden_state_layer_ids": [0, 3, 7]},
        {"layers": (0, 3, 7)},
    ),
    "speculators, a Qwen3 block with a window": (
        SPECULATORS | {"norm_before_residual": False, "transformer_layer_config": LLAMA | {
            "model_type": "qwen3", "head_dim": 8, "layer_types": ["sliding_attention"], "sliding_window": 4,
        }},
        {"layers": MIDDLE, "qk_norm": True, "window": 4},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EAGLE3)
def test_eagle_3_computes_the_papers_formula(tmp_path, case):
    config, expected = EAGLE3[case]
    if case.startswith("speculators"):
        expected = {"prefix": "layers.0"} | expected
    name, logits = eagle3(tmp_path, config, **expected)
    check_rows(make_proposer("eagle", target=TARGET, draft=name), TARGET, logits, tolerance=1e-6)


def medusa(folder, *, heads=3, layers=2, vllm=False, bias=True, kept=None, whole_rows=False, shared=False, prefix=""):
    """Medusa: lm_head_k(x), x + SiLU(W x + b) layer by layer, on the last hidden state. (checkpoint, logits)"""
    random = Random(2)
    tensors, t = {}, {}
    for head in range(heads):
        for layer in range(layers):
            public = f"blocks.{head}.layers.{layer}" if vllm else f"{prefix}{head}.{layer}.linear"
            t[head, layer] = random.matrix(WIDTH, WIDTH), random.matrix(WIDTH) * bias
            tensors[f"{public}.weight"] = t[head, layer][0]
            if bias:
                tensors[f"{public}.bias"] = t[head, layer][1]
        t[head] = t[0] if shared and head else random.matrix(5, WIDTH)
        if not (shared and head):
            rows = t[head] if whole_rows or not kept else t[head][kept]
            tensors[f"lm_heads.{head}.weight" if vllm else f"{prefix}{head}.{layers}.weight"] = rows
    if kept:
        tensors["token_map"] = torch.tensor(kept)
    config = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}
    if vllm:
        config |= {"model_type": "medusa", "num_heads": heads, "medusa_fc_bias": bias, "original_lm_head": shared}
    name = write(folder, config, tensors, "model.safetensors" if vllm else "medusa_lm_head.pt")

    def logits(context, guesses):
        x = hidden_states(TARGET)[-1][len(context) - 2]
        head = len(guesses)
        for layer in range(layers):
            weight, offset = t[head, layer]
            y = weight.double() @ x + offset.double()
            x = x + y * torch.sigmoid(y)
        row = t[head].double() @ x
        unknown = torch.tensor([bool(kept) and token not in kept for token in range(5)])
        return row.masked_fill(unknown, -torch.inf)

    return name, logits


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layers": 1, "heads": 4},
        {"prefix": "medusa_head."},
        {"vllm": True},
        {"vllm": True, "bias": False},
        {"vllm": True, "kept": [3, 0, 4]},
        {"vllm": True, "kept": [3, 0, 4], "whole_rows": True},
        {"vllm": True, "shared": True},
    ],
    ids=str,
)
def test_medusa_computes_the_papers_formula_with_the_heads_that_are_there(tmp_path, options):
    """The configuration names 2 heads of 1 layer, as the published one of Vicuna does for 5; the tensors count."""
    name, logits = medusa(tmp_path, **options)
    check_rows(make_proposer("medusa", target=TARGET, draft=name), TARGET, logits, tolerance=1e-6)


def test_a_head_reads_the_text_and_not_itself():
    """The references would be worth little if a row did not depend on the context and on the guesses."""
    name_free = recurrent(lambda e, f: (f, e @ OUTPUT.T), features_of(TARGET), lambda ids: EMBEDDING[ids])
    assert not torch.allclose(name_free(TEXT[:4], []), name_free(TEXT[:5], []))
    assert not torch.allclose(name_free(TEXT[:4], [1]), name_free(TEXT[:4], [2]))
    with pytest.raises(InputError):
        make_proposer("eagle", target=TARGET)
