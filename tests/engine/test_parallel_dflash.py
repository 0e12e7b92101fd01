"""DFlash: the rows are those of transformers' own head and of the plain formula, in every layout, and the law holds."""

import pytest
import torch
from torch.nn import functional

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, decode, decode_rounds, make_proposer
from specworkbench.engine.heads.dflash import ContextCache
from specworkbench.engine.heads.dflash_config import Reach
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.verifiers import make_verifier
from specworkbench.equivalence.law import decode_law, product_law, total_variation
from specworkbench.equivalence.setup import Setup
from specworkbench.trace import contracts
from tests.engine.toy_dflash import BLOCK, FUSED, MASK, PLAIN, SIZES, TARGETS, WIDTH, dflash, random_weights
from tests.engine.toys import toy_model

SLIDING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 3}
WARM = SamplingSettings(temperature=0.7, top_k=4, repetition_penalty=1.4)


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


def test_hidden_states_that_passed_unread_are_missed(tmp_path):
    sequence = Decoder(FUSED, dflash(tmp_path), settings=DecodeSettings(gamma=3)).start("abcab")
    sequence.prefill()
    sequence.proposer.reset()
    sequence.round()
    sequence.proposer.reset()
    with pytest.raises(ValueError, match=r"tokens to read; the context has \d hidden states"):
        sequence.round()


def test_reaches_are_what_they_say():
    cpu = torch.device("cpu")
    assert Reach().mask(2, 5, cpu) is None
    assert Reach(1, 0).mask(2, 4, cpu).int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]
    assert Reach(2, 1).mask(2, 4, cpu).int().tolist() == [[1, 1, 1, 1], [0, 1, 1, 1]]
