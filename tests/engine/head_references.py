"""Heads computed plainly from their papers' formulas: the whole prefix anew for every guess, no cache, no code of ours.

Tensors come by their public names, float64. Shared by the tests of heads.
"""

from __future__ import annotations

import json
from functools import cache

import torch
from safetensors.torch import save_file

from specworkbench.engine.contracts import Decision
from tests.engine.test_proposers import context_of

WIDTH, INNER, HEADS, KV_HEADS = 16, 24, 2, 1
LLAMA = {
    "hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "num_hidden_layers": 1, "rms_norm_eps": 1e-5, "rope_theta": 500.0, "hidden_act": "silu", "vocab_size": 5,
    "max_position_embeddings": 64, "model_type": "llama", "torch_dtype": "float32",
}  # fmt: skip
TEXT = [0, 3, 1, 4, 2, 2, 0, 1, 3, 3, 1, 0, 4, 1, 2, 3]


class Random:
    """Tensors as a public checkpoint might hold them, float32."""

    def __init__(self, seed=0):
        self.generator = torch.Generator().manual_seed(seed)

    def matrix(self, *shape):
        return torch.randn(shape, generator=self.generator) * 0.5

    def norm(self, width):
        return 1 + 0.3 * torch.randn(width, generator=self.generator)

    def block(self, prefix, reads=WIDTH, width=WIDTH, *, input_norm=True, bias=False, qk_norm=False):
        head = width // HEADS
        names = {
            "self_attn.q_proj": (width, reads), "self_attn.k_proj": (KV_HEADS * head, reads),
            "self_attn.v_proj": (KV_HEADS * head, reads), "self_attn.o_proj": (width, width),
            "mlp.gate_proj": (INNER, width), "mlp.up_proj": (INNER, width), "mlp.down_proj": (width, INNER),
        }  # fmt: skip
        found = {f"{prefix}.{name}.weight": self.matrix(*shape) for name, shape in names.items()}
        found[f"{prefix}.post_attention_layernorm.weight"] = self.norm(width)
        if input_norm:
            found[f"{prefix}.input_layernorm.weight"] = self.norm(width)
        for name in "qkv" if bias else "":
            rows = found[f"{prefix}.self_attn.{name}_proj.weight"].shape[0]
            found[f"{prefix}.self_attn.{name}_proj.bias"] = self.matrix(rows)
        for name in "qk" if qk_norm else "":
            found[f"{prefix}.self_attn.{name}_norm.weight"] = self.norm(head)
        return found


def write(folder, config, tensors, file="model.safetensors"):
    """A checkpoint as others write it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if file.endswith(".safetensors"):
        save_file({name: value.contiguous() for name, value in tensors.items()}, folder / file)
    else:
        torch.save(tensors, folder / file)
    return str(folder)


def double(tensors):
    return {name: value.double() for name, value in tensors.items()}


def normed(x, weight, epsilon=1e-5):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight


def turned(x, theta):
    """Rotary positions 0 .. n - 1 on (n, heads, d): the pairs (i, i + d/2) turn by position / theta^(2i/d)."""
    n, _, d = x.shape
    angle = torch.arange(n).double()[:, None, None] / theta ** (torch.arange(0, d, 2).double() / d)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], dim=-1)


def llama_block(t, prefix, read, residual, theta=500.0, window=None, epsilon=1e-5):
    """A decoder block over all of a sequence. read, residual: (n, ...)."""

    def projected(name, x):
        return x @ t[f"{prefix}.{name}.weight"].T + t.get(f"{prefix}.{name}.bias", 0)

    n, width = residual.shape
    q, k, v = (projected(f"self_attn.{name}_proj", read).reshape(n, -1, width // HEADS) for name in "qkv")
    if f"{prefix}.self_attn.q_norm.weight" in t:
        q = normed(q, t[f"{prefix}.self_attn.q_norm.weight"], epsilon)
        k = normed(k, t[f"{prefix}.self_attn.k_norm.weight"], epsilon)
    q, k = turned(q, theta), turned(k, theta)
    distance = torch.arange(n)[:, None] - torch.arange(n)[None]
    unseen = (distance < 0) | (distance >= (window or n))
    attended = []
    for head in range(HEADS):
        own = head * KV_HEADS // HEADS
        scores = (q[:, head] @ k[:, own].T / (width // HEADS) ** 0.5).masked_fill(unseen, -torch.inf)
        attended.append(scores.softmax(-1) @ v[:, own])
    x = residual + projected("self_attn.o_proj", torch.cat(attended, dim=-1))
    y = normed(x, t[f"{prefix}.post_attention_layernorm.weight"], epsilon)
    gate = projected("mlp.gate_proj", y)
    return x + projected("mlp.down_proj", gate * torch.sigmoid(gate) * projected("mlp.up_proj", y))


def recurrent(step, features, embed):
    """A head that goes on from its own outputs. step(embedded, feature) -> (what is fed on, logits), each (n, ...).

    Returns logits after a context and guesses: features(context) -> (len(context) - 1, width).
    """

    def logits(context, guesses):
        feature, tokens = features(context), list(context)
        fed, found = step(embed(tokens[1:]), feature)
        for guess in guesses:
            tokens, feature = [*tokens, guess], torch.cat([feature, fed[-1:]])
            fed, found = step(embed(tokens[1:]), feature)
        return found[-1]

    return logits


def chained(steps, features, embed):
    """Several modules, one for each guess, each over the outputs of the one before."""

    def logits(context, guesses):
        feature, tokens = features(context), [*context, *guesses]
        for k in range(len(guesses) + 1):
            feature, found = steps[k](embed(tokens[1 + k : 1 + k + len(feature)]), feature)
        return found[-1]

    return logits


def eagle3_logits(
    target, t, *, layers, kept, prefix="midlayer", residual_normed=False, feeds_normed=False, window=None
):  # fmt: skip
    """EAGLE-3: the attention reads cat[norm(embedding), norm(g)], g = fc(cat[hidden states]); norms that are there."""

    def features(context):
        states = [hidden_states(target)[layer][: len(context) - 1] for layer in layers]
        if "fc_norm.0.weight" in t:
            states = [normed(state, t[f"fc_norm.{k}.weight"]) for k, state in enumerate(states)]
        joined = torch.cat(states, dim=-1)
        if "input_norm.weight" in t:
            joined = normed(joined, t["input_norm.weight"])
        return joined @ t["fc.weight"].T if "fc.weight" in t else joined

    def step(embedded, feature):
        hidden = normed(feature, t[f"{prefix}.hidden_norm.weight"])
        read = torch.cat([normed(embedded, t[f"{prefix}.input_layernorm.weight"]), hidden], dim=-1)
        output = llama_block(t, prefix, read, hidden if residual_normed else feature, window=window)
        headed = normed(output, t["norm.weight"])
        logits = torch.full((len(output), target.vocab_size), -torch.inf, dtype=torch.float64)
        logits[:, kept] = headed @ t["lm_head.weight"].T
        return headed if feeds_normed else output, logits

    embedding = t.get("embed_tokens.weight", target.model.get_input_embeddings().weight.detach())
    return recurrent(step, features, lambda ids: embedding[ids])


def deepseek_names(layer):
    """Of the module that is stored as this layer: two norms, projection, output norm, block."""
    parts = ("enorm", "hnorm", "eh_proj", "shared_head.norm")
    return (*(f"model.layers.{layer}.{part}" for part in parts), f"model.layers.{layer}")


def mtp_logits(target, t, names, feeds_normed):
    """MTP: block(proj(cat[norm(e), norm(h)])); MiMo's pair is cat[norm(h), norm(e)]. names: of each module."""
    output_matrix = target.model.get_output_embeddings().weight.detach()
    embedding = target.model.get_input_embeddings().weight.detach()

    def step_of(token_norm, hidden_norm, project, output_norm, block):
        def step(embedded, feature):
            e, h = normed(embedded, t[f"{token_norm}.weight"]), normed(feature, t[f"{hidden_norm}.weight"])
            x = torch.cat([h, e] if "mtp_layers" in block else [e, h], dim=-1) @ t[f"{project}.weight"].T
            output = llama_block(t, block, normed(x, t[f"{block}.input_layernorm.weight"]), x)
            headed = normed(output, t[f"{output_norm}.weight"])
            return headed if feeds_normed else output, headed @ output_matrix.T

        return step

    steps = [step_of(*module) for module in names]
    if len(steps) == 1:
        return recurrent(steps[0], features_of(target), lambda ids: embedding[ids])
    return chained(steps, features_of(target), lambda ids: embedding[ids])


class Told:
    """A chooser that draws what it is told, and keeps the rows it was asked to draw from."""

    def __init__(self, tokens):
        self.tokens, self.rows = iter(tokens), []

    def draw(self, probs, at=None):
        self.rows.append(probs)
        return torch.tensor([next(self.tokens)])


@cache
def hidden_states(target):
    """transformers' own of `TEXT`, of all layers, (n, width) each; those of a prefix are their beginning."""
    with torch.no_grad():
        states = target.model(input_ids=torch.tensor([TEXT]), output_hidden_states=True).hidden_states
    return [state[0] for state in states]


def features_of(target, layer=-1):
    """The features of a context: its last token has none yet."""
    return lambda context: hidden_states(target)[layer][: len(context) - 1]


def check_rows(proposer, target, logits, gamma=3, accepted=(0, 2, 1, 3, 1), vocab=5, tolerance=1e-9):
    """Round after round on one text, so many guesses kept in each: every row a guess was drawn from is the softmax of
    `logits` after the context and the guesses before, the wrong ones too.
    """
    whole = hidden_states(target)
    layers, length, entered = proposer.needs.hidden_layers, 3, 0
    context = context_of(TEXT[:length], vocab=vocab)
    context.hidden = {layer: whole[layer][: length - 1] for layer in layers}
    proposer.reset()
    proposer.prefill(context)
    for kept in accepted:
        right = TEXT[length : length + gamma]
        guesses = [token if step < kept else (token + 1) % vocab for step, token in enumerate(right)]
        told = Told(guesses)
        proposal = proposer.propose(context, gamma, told)
        assert proposal.size == len(told.rows) > 0
        for step, row in enumerate(told.rows):
            expected = logits(TEXT[:length], guesses[:step]).softmax(-1)
            assert torch.allclose(row[0], expected, atol=tolerance), (length, step)
            entered += 1
        kept = min(kept, proposal.size)
        block = [*guesses[:kept], TEXT[length + kept]]
        context.tokens.extend(block)
        context.hidden = {layer: whole[layer][length - 1 : length + kept] for layer in layers}
        length += kept + 1
        proposer.observe(Decision(guesses[: proposal.size], kept, block[-1], kept + 1))
    assert entered >= len(accepted)
