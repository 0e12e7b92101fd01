"""DFlash: the rows are those of transformers' own head and of the plain formula, in every layout, and the law holds."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.heads.dflash import ContextCache, DFlashHead
from specworkbench.engine.heads.dflash_config import Reach, read_dflash
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.errors import InputError
from specworkbench.trace import contracts
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
SLIDING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3}
WARM = SamplingSettings(temperature=0.7, top_k=4, repetition_penalty=1.4)


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


def features_of(target: LanguageModel, tokens: list[int]) -> torch.Tensor:
    """(len(tokens) - 1, 2 x width): what the head reads of a context, by one fresh forward."""
    hidden = target.forward(torch.tensor(tokens[:-1]), target.new_cache(), layers=(1, 2)).hidden
    return torch.cat([hidden[1], hidden[2]], dim=-1)


def block_of(tokens: list[int]) -> torch.Tensor:
    """(block, width): embeddings of the last token and the masks."""
    return FUSED.model.get_input_embeddings()(torch.tensor([tokens[-1]] + [MASK] * (BLOCK - 1))).detach()


def plain_formula(weights: dict, features: torch.Tensor, block: torch.Tensor, seen) -> torch.Tensor:
    """The head, one query at a time. seen(layer, query position, key position): whether it is attended to."""

    def norm(x, key):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weights[key]

    def turned(x, position):
        angles = position * 10000.0 ** -(torch.arange(0, 8, 2, dtype=torch.float64) / 8)
        first, second = x[..., :4], x[..., 4:]
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1
        )

    context, x = norm(features @ weights["fc.weight"].T, "hidden_norm.weight"), block
    for layer in range(2):
        at = f"layers.{layer}."
        normed = norm(x, f"{at}input_layernorm.weight")
        source = torch.cat([context, normed])
        keys = [
            turned(
                norm((row @ weights[f"{at}self_attn.k_proj.weight"].T).view(2, 8), f"{at}self_attn.k_norm.weight"), i
            )
            for i, row in enumerate(source)
        ]
        values = [(row @ weights[f"{at}self_attn.v_proj.weight"].T).view(2, 8) for row in source]
        attended = []
        for j, row in enumerate(normed):
            place = len(context) + j
            query = (row @ weights[f"{at}self_attn.q_proj.weight"].T).view(4, 8)
            query = turned(norm(query, f"{at}self_attn.q_norm.weight"), place)
            visible = [i for i in range(len(source)) if seen(layer, place, i)]
            heads = []
            for head in range(4):
                scores = torch.stack([query[head] @ keys[i][head // 2] for i in visible]) / 8**0.5
                heads.append(scores.softmax(0) @ torch.stack([values[i][head // 2] for i in visible]))
            attended.append(torch.cat(heads) @ weights[f"{at}self_attn.o_proj.weight"].T)
        x = x + torch.stack(attended)
        normed = norm(x, f"{at}post_attention_layernorm.weight")
        gate, up = (normed @ weights[f"{at}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (functional.silu(gate) * up) @ weights[f"{at}mlp.down_proj.weight"].T
    return norm(x, "norm.weight")


VISIBLE = {
    "full": ({}, lambda layer, query, key: True),
    "sliding": (SLIDING, lambda layer, query, key: layer == 1 or 0 <= query - key < 3),
    "sliding, not causal": (
        SLIDING | {"is_causal": False},
        lambda layer, query, key: layer == 1 or abs(query - key) < 3,
    ),
    "causal": ({"is_causal": True}, lambda layer, query, key: key <= query),
}


@pytest.mark.parametrize("kind", VISIBLE)
def test_the_head_computes_the_plain_formula(tmp_path, kind):
    more, seen = VISIBLE[kind]
    head = dflash(tmp_path, PLAIN | more).draft.head
    tokens, weights = [0, 1, 4, 3, 3, 2, 0], random_weights()
    features, cache = features_of(FUSED, tokens), ContextCache()
    for part in features.split([3, 1, 2]):
        head.read(part, cache)
    ours, formula = head(block_of(tokens), cache), plain_formula(weights, features, block_of(tokens), seen)
    assert torch.allclose(ours, formula, atol=1e-5)  # the angles are float32


@pytest.mark.parametrize("window", [None, 2, 3])
def test_the_rows_are_those_of_transformers_own_head(tmp_path, window):
    """A head of transformers, saved by it and loaded by us: rows of a whole decoding against its own, each anew."""
    theirs_module = pytest.importorskip("transformers.models.muse_glimmer_assistant.modeling_muse_glimmer_assistant")
    from transformers import MuseGlimmerAssistantConfig
    from transformers.cache_utils import DFlashCache

    kinds = ["full_attention" if window is None else "sliding_attention", "full_attention"]
    sizes = {key: value for key, value in SIZES.items() if key != "rms_norm_eps"}
    config = MuseGlimmerAssistantConfig(
        **sizes, layer_types=kinds, sliding_window=window or 8, block_size=BLOCK, mask_token_id=MASK,
        target_layer_ids=[0, 1], rms_norm_eps=1e-6,
    )  # fmt: skip
    theirs = theirs_module.MuseGlimmerAssistantModel(config).double().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=parameter.shape[-1] ** -0.5) if parameter.ndim > 1 else parameter.uniform_(0.5, 1.5)
    theirs.save_pretrained(tmp_path)
    proposer = make_proposer("parallel", target=FUSED, draft=str(tmp_path))
    sequence = Decoder(FUSED, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=20)).start("abcab")
    for step in decode_rounds(sequence):
        tokens, n = sequence.context.tokens[: step.context_length], step.proposal.size
        if n:
            cache = DFlashCache(config=config)
            cache.set_previous_accepted_tokens(len(tokens) - 1)
            cache.activate_past_recording()
            hidden = theirs(block_of(tokens)[None], features_of(FUSED, tokens)[None], cache=cache).last_hidden_state
            rows = FUSED.model.lm_head(hidden[0, 1 : n + 1])[:, :5].softmax(-1)
            assert torch.allclose(step.proposal.probs, rows, atol=1e-5)


@pytest.mark.parametrize("forward", TARGETS)
@pytest.mark.parametrize("more", [{}, SLIDING], ids=["full", "sliding"])
def test_after_every_kind_of_round_the_rows_equal_a_fresh_start(tmp_path, forward, more):
    target = TARGETS[forward]
    proposer, kinds = dflash(tmp_path, PLAIN | more, target=target), set()
    head = proposer.draft.head
    decoder = Decoder(target, proposer, settings=DecodeSettings(gamma=3, max_new_tokens=45))
    for prompt in ("abcab", "d"):
        sequence = decoder.start(prompt)
        for step in decode_rounds(sequence):
            tokens, n = sequence.context.tokens[: step.context_length], step.proposal.size
            kinds.add(step.decision.accepted)
            cache = ContextCache()
            if len(tokens) > 1:
                head.read(features_of(target, tokens), cache)
            rows = FUSED.model.lm_head(head(block_of(tokens), cache)[1 : n + 1])[:, :5].softmax(-1)
            assert n == 0 or torch.allclose(step.proposal.probs, rows, atol=1e-10)
            assert n == 0 or proposer.draft._cache.length == step.context_length - 1
    assert kinds >= {0, 1}


@pytest.mark.parametrize("settings", [{}, SLIDING], ids=["full", "sliding"])
@pytest.mark.parametrize("sampling", [SamplingSettings(), WARM, SamplingSettings(temperature=0.0)], ids=str)
def test_the_law_of_the_whole_loop_is_the_targets_own(tmp_path, settings, sampling):
    target = toy_model(3, layers=2, rows=7, sharpness=2.0)
    proposer = dflash(tmp_path, PLAIN | settings, target=target)
    setup = Setup(target, (0, 1, 0), DecodeSettings(2, 3, sampling), proposer, make_verifier("token", sampling))
    law = decode_law(setup)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(law, product_law(target, setup.prompt, setup.settings)) < 1e-12


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


def test_a_reduced_vocabulary_guesses_its_own_tokens_only_and_keeps_the_law(tmp_path):
    weights = random_weights() | {
        "lm_head.weight": torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(1)).double() / 8,
        "d2t": torch.tensor([0, 1]),
        "t2d": torch.tensor([True, False, True, False, False, False, False]),
    }
    target = toy_model(3, layers=2, rows=7, sharpness=2.0)
    proposer = dflash(tmp_path, PLAIN, weights, target)
    settings = DecodeSettings(2, 3)
    setup = Setup(target, (0, 1, 0), settings, proposer, make_verifier(None, settings.sampling))
    assert total_variation(decode_law(setup), product_law(target, setup.prompt, settings)) < 1e-12
    trace = decode("abc", target=target, proposer=proposer, gamma=2, max_new_tokens=20, capture="full").trace
    drafted = trace.positions["outcome"].isin(["accepted", "rejected", "discarded"]).to_numpy()
    assert (trace.rows["draft"][drafted][:, 1] == 0).all()
    assert set(trace.positions[drafted]["token"]) == {0, 2}


def test_scales_and_a_softcap_of_the_configuration_are_applied(tmp_path):
    scaled = PLAIN | {"input_embedding_scale": 2.0, "output_multiplier": 0.5, "final_logit_softcapping": 1.5}
    sequence = Decoder(FUSED, dflash(tmp_path, scaled), settings=DecodeSettings(gamma=3)).start("abcab")
    sequence.prefill()
    probs, tokens, cache = sequence.round().proposal.probs, sequence.context.tokens[:5], ContextCache()
    head = sequence.proposer.draft.head
    head.read(features_of(FUSED, tokens), cache)
    logits = FUSED.model.lm_head(head(2.0 * block_of(tokens), cache)[1:])[:, :5]
    assert torch.allclose(probs, (1.5 * (0.5 * logits / 1.5).tanh()).softmax(-1), atol=1e-10)


def test_it_guesses_no_more_than_its_block_holds_in_one_forward(tmp_path):
    trace = decode("abcab", target=FUSED, proposer=dflash(tmp_path), gamma=6, max_new_tokens=30).trace
    rounds = trace.rounds[trace.rounds["asked"] > 0]
    assert (rounds["proposed"] == rounds["asked"].clip(upper=BLOCK - 1)).all()
    assert (rounds["draft_forwards"] == 1).all() and rounds["draft_cache_bytes"].gt(0).all()
    new = rounds["emitted"].shift(1, fill_value=0)
    assert (rounds["draft_positions"] == new + BLOCK).all()
    assert [contract.name for contract, finding in contracts.run(trace) if finding.status == "fail"] == []
    entry = trace.manifest["proposer"]["draft"]
    assert (entry["family"], entry["block_size"], entry["hidden_layers"]) == ("DFlash", BLOCK, [1, 2])


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


def test_hidden_states_that_passed_unread_are_missed(tmp_path):
    sequence = Decoder(FUSED, dflash(tmp_path), settings=DecodeSettings(gamma=3)).start("abcab")
    sequence.prefill()
    sequence.proposer.reset()
    sequence.round()
    sequence.proposer.reset()
    with pytest.raises(ValueError, match=r"tokens to read; the context has \d hidden states"):
        sequence.round()


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


def test_reaches_are_what_they_say():
    cpu = torch.device("cpu")
    assert Reach().mask(2, 5, cpu) is None
    assert Reach(1, 0).mask(2, 4, cpu).int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]
    assert Reach(2, 1).mask(2, 4, cpu).int().tolist() == [[1, 1, 1, 1], [0, 1, 1, 1]]
