"""DFlash: a block of masks denoised in one forward, conditioned on hidden states of the target (arXiv 2602.06036).

The head has no embedding and no output matrix of its own as a rule: it uses the target's. The hidden states of some of
the target's layers, concatenated and projected, are to every layer of the head what the prefix is to a language model:
they give keys and values at the positions of the context. The block, the last token and then masks, attends to them
and to itself in both directions; row j of the result is for the token at the block's place j.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP, Qwen3RotaryEmbedding

from specworkbench.engine.heads.blocks import turn
from specworkbench.engine.heads.checkpoint import Checkpoint
from specworkbench.engine.heads.dflash_config import DFlashConfig, Reach, read_dflash
from specworkbench.errors import InputError

OWN = {"embed_tokens.weight": "embed_tokens", "lm_head.weight": "lm_head"}
"""Tensors that a checkpoint may carry beside the head's parameters, and the attributes they become."""
RENAMED = {"encoder.fc.": "fc.", "encoder.output_norm_enc.": "hidden_norm.", "model.": ""}
"""Beginnings of names in transformers' layout and under a wrapper, as z-lab, vLLM and speculators write them."""
UNUSED = ("t2d",)


@dataclass
class ContextCache:
    """Keys and values that each layer made of the context, (heads, length, head_dim) each. It only grows: what the
    target accepted stays accepted, and the block's own are never kept.
    """

    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)
    length: int = 0

    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in (*self.keys, *self.values))

    def append(self, keys: list[torch.Tensor], values: list[torch.Tensor]) -> None:
        """One tensor a layer, for the same new positions."""
        if self.length:
            keys = [torch.cat(pair, dim=1) for pair in zip(self.keys, keys, strict=True)]
            values = [torch.cat(pair, dim=1) for pair in zip(self.values, values, strict=True)]
        self.keys, self.values, self.length = keys, values, keys[0].shape[1]


class DFlashHead(nn.Module):
    """The layers of a head. Its parameters have the names of the published checkpoints.

    embed_tokens, lm_head: (vocabulary, width) of its own, where the checkpoint has them; target_ids: (rows of lm_head,)
    the target's ids of a reduced vocabulary.
    """

    def __init__(self, config: DFlashConfig, name: str = "dflash"):
        super().__init__()
        decoder = config.decoder
        width, epsilon = decoder.hidden_size, decoder.rms_norm_eps
        self.config, self.name = config, name
        self.fc = nn.Linear(config.feature_width, width, bias=False)
        self.hidden_norm = nn.RMSNorm(width, eps=epsilon)
        self.layers = nn.ModuleList(_Layer(decoder, reach) for reach in config.reaches)
        self.norm = nn.RMSNorm(width, eps=epsilon)
        self.rotary_emb: nn.Module | None = None
        self.embed_tokens: torch.Tensor | None = None
        self.lm_head: torch.Tensor | None = None
        self.target_ids: torch.Tensor | None = None

    def prepare(self, dtype: torch.dtype, device: torch.device) -> DFlashHead:
        """To a dtype and a device; the angles of the rotary positions stay in float32."""
        self.to(device=device, dtype=dtype).eval()
        self.rotary_emb = Qwen3RotaryEmbedding(self.config.decoder).to(device)
        return self

    def read(self, features: torch.Tensor, cache: ContextCache) -> None:
        """features: (m, layers x target width), the target's hidden states of the next m tokens of the context."""
        context = self.hidden_norm(self.fc(features))
        rotary = self._rotary(context, cache.length)
        keys, values = zip(*(layer.self_attn.keys_values(context, *rotary) for layer in self.layers), strict=True)
        cache.append(list(keys), list(values))

    def forward(self, block: torch.Tensor, cache: ContextCache) -> torch.Tensor:
        """block: (b, width) embeddings of the last token and the masks after it. Returns (b, width), normed."""
        cos, sin = self._rotary(block, cache.length)
        for place, layer in enumerate(self.layers):
            context = (cache.keys[place], cache.values[place]) if cache.length else None
            block = layer(block, cos, sin, context)
        return self.norm(block)

    def _rotary(self, like: torch.Tensor, start: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, head_dim) cosines and sines of the positions of `like` (n, width)."""
        positions = torch.arange(start, start + like.shape[0], device=like.device).unsqueeze(0)
        cos, sin = self.rotary_emb(like, positions)
        return cos[0], sin[0]


class _Layer(nn.Module):
    def __init__(self, decoder, reach: Reach):
        super().__init__()
        self.self_attn = _Attention(decoder, reach)
        self.mlp = Qwen3MLP(decoder)
        self.input_layernorm = nn.RMSNorm(decoder.hidden_size, eps=decoder.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(decoder.hidden_size, eps=decoder.rms_norm_eps)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, context: tuple[torch.Tensor, torch.Tensor] | None
    ) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, context)
        return x + self.mlp(self.post_attention_layernorm(x))


class _Attention(nn.Module):
    """Queries of the block; keys and values of the context and of the block."""

    def __init__(self, decoder, reach: Reach):
        super().__init__()
        width, head_dim, bias = decoder.hidden_size, decoder.head_dim, decoder.attention_bias
        heads, kv_heads = decoder.num_attention_heads, decoder.num_key_value_heads
        self.head_dim, self.reach = head_dim, reach
        self.q_proj = nn.Linear(width, heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(heads * head_dim, width, bias=bias)
        self.q_norm = nn.RMSNorm(head_dim, eps=decoder.rms_norm_eps)
        self.k_norm = nn.RMSNorm(head_dim, eps=decoder.rms_norm_eps)

    def keys_values(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (n, width). Returns keys, turned to their positions, and values, (kv_heads, n, head_dim) each."""
        return turn(self.k_norm(self._heads(self.k_proj(x))), (cos, sin)), self._heads(self.v_proj(x))

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, context: tuple[torch.Tensor, torch.Tensor] | None
    ) -> torch.Tensor:
        query = turn(self.q_norm(self._heads(self.q_proj(x))), (cos, sin))
        keys, values = self.keys_values(x, cos, sin)
        if context is not None:
            keys, values = torch.cat([context[0], keys], dim=1), torch.cat([context[1], values], dim=1)
        attended = functional.scaled_dot_product_attention(
            query.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0),
            self.reach.mask(x.shape[0], keys.shape[1], x.device), enable_gqa=True,
        )  # fmt: skip
        return self.o_proj(attended[0].transpose(0, 1).reshape(x.shape[0], -1))

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        """(n, heads x head_dim) to (heads, n, head_dim)."""
        return x.view(x.shape[0], -1, self.head_dim).transpose(0, 1)


def load_dflash(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> DFlashHead:
    """The head in these files. Raises `InputError` for weights that do not fit its config.json."""
    name = checkpoint.name
    with torch.device("meta"):
        head = DFlashHead(read_dflash(checkpoint.config, name), name)
    weights = {_renamed(key): tensor for key, tensor in checkpoint.read(lambda key: True).items()}
    for key, attribute in OWN.items():
        tensor = weights.pop(key, None)
        if tensor is not None:
            setattr(head, attribute, tensor.to(device, dtype))
    offsets = weights.pop("d2t", None)
    if offsets is not None:
        head.target_ids = (torch.arange(len(offsets)) + offsets).to(device)
    for key in UNUSED:
        weights.pop(key, None)
    wanted = head.state_dict()
    problems = [f"{key} is missing" for key in wanted.keys() - weights.keys()]
    problems += [f"{key} is not known" for key in weights.keys() - wanted.keys()]
    problems += [
        f"{key} is {tuple(weights[key].shape)}, not {tuple(wanted[key].shape)}"
        for key in wanted.keys() & weights.keys()
        if weights[key].shape != wanted[key].shape
    ]
    if problems:
        rest = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise InputError(
            f"the weights of {name!r} are not those of a DFlash head of its config.json: "
            f"{'; '.join(sorted(problems)[:3])}{rest}"
        )
    head.load_state_dict(weights, assign=True)
    return head.prepare(dtype, device)


def _renamed(key: str) -> str:
    for old, new in RENAMED.items():
        if key.startswith(old):
            return new + key.removeprefix(old)
    return key
