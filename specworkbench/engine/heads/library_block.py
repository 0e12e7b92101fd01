"""A decoder block as transformers runs it, in place of `blocks.Block`: for MTP modules whose block is no Llama's.

DeepSeek-V3's latent attention, the mixtures of experts, Qwen3-Next's gated attention: the module has the block of its
target's architecture, so the library's own decoder layer is run, with a cache of one layer. Decoding only: the training
loop's attention cannot be put into it.
"""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.masking_utils import create_causal_mask

from specworkbench.engine.kvcache import KVCache

ROUTED = re.compile(r"(.*\bexperts)\.(\d+)\.(gate|up|down)_proj\.weight")


def module_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The target's configuration for one MTP block: a single layer of full attention, with experts where there are any.

    What transformers' `get_mtp_config` does, also for architectures that do not declare their modules (Qwen3-Next).
    """
    single = copy.deepcopy(config)
    if getattr(single, "layer_types", None) is not None:
        single.layer_types = ["full_attention"]
    if getattr(single, "mlp_layer_types", None) is not None:
        single.mlp_layer_types = ["sparse"]
    if hasattr(single, "first_k_dense_replace"):
        single.first_k_dense_replace = 0
    if getattr(single, "mlp_only_layers", None):
        single.mlp_only_layers = []
    if hasattr(single, "decoder_sparse_step"):
        single.decoder_sparse_step = 1
    single.num_hidden_layers = 1
    return single


class LibraryRotary:
    """The target's own rotary positions, as `blocks.Rotary` gives them: an opaque value for the block."""

    def __init__(self, model: Any):
        self._rotary = model.get_decoder().rotary_emb

    def span(self, start: int, n: int, like: torch.Tensor) -> Any:
        """The n positions from `start` on, (1, n), and their angles, in the dtype and on the device of `like`."""
        positions = torch.arange(start, start + n, device=like.device).unsqueeze(0)
        return positions, self._rotary(like.unsqueeze(0), positions)


@dataclass(frozen=True)
class LibraryAttend:
    """What `LibraryCache.attend` hands to the block in place of a function: the cache, and what each new token sees."""

    cache: KVCache
    mask: torch.Tensor | None


class LibraryCache:
    """The library's cache of one layer for one sequence, with the manner of `blocks.BlockCache`."""

    def __init__(self, config: PreTrainedConfig):
        self._cache = KVCache(config)

    @property
    def length(self) -> int:
        return self._cache.length

    @property
    def nbytes(self) -> int:
        return self._cache.nbytes

    def keep(self, tokens: int) -> None:
        """Keep the first `tokens`."""
        self._cache.rollback(max(0, self.length - tokens))

    def attend(self, mask: torch.Tensor | None = None) -> LibraryAttend:
        """See `blocks.BlockCache.attend`."""
        return LibraryAttend(self._cache, mask)


class LibraryBlock(nn.Module):
    """A decoder layer of transformers with the call of `blocks.Block`. It norms its own input."""

    def __init__(self, layer_class: type[nn.Module], config: PreTrainedConfig):
        """config: of a single layer, see `module_config`."""
        super().__init__()
        self.config = config
        self.layer = layer_class(config, 0)
        accepted = inspect.signature(layer_class.forward).parameters
        self._cache_keyword = "cache" if "cache" in accepted else "past_key_values"

    def new_cache(self) -> LibraryCache:
        """An empty cache for one sequence."""
        return LibraryCache(self.config)

    def forward(self, read: torch.Tensor, residual: torch.Tensor, angles: Any, attend: LibraryAttend) -> torch.Tensor:
        """residual (n, width), un-normed; read: the same, not used; angles: of n positions, or of one that all have.
        Returns (n, width).
        """
        cache, rows, n = attend.cache, residual.unsqueeze(0), residual.shape[0]
        positions, turned = angles
        output = self.layer(
            rows, attention_mask=self._mask(rows, attend), position_ids=positions.expand(1, n),
            position_embeddings=turned, use_cache=True, **{self._cache_keyword: cache.cache},
        )  # fmt: skip
        cache.grew(n)
        return (output[0] if isinstance(output, tuple) else output)[0]

    def _mask(self, rows: torch.Tensor, attend: LibraryAttend) -> torch.Tensor | None:
        if attend.mask is None:
            return create_causal_mask(self.config, rows, None, attend.cache.cache)
        hidden = torch.zeros(attend.mask.shape, dtype=rows.dtype, device=rows.device)
        return hidden.masked_fill_(~attend.mask, torch.finfo(rows.dtype).min)[None, None]


def joined_experts(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Experts stored one by one, as public checkpoints have them, joined as transformers 5 has them.

    {experts}.{e}.{gate,up,down}_proj.weight become {experts}.gate_up_proj (experts, 2 inner, width) and
    {experts}.down_proj (experts, width, inner). What is joined already, and all else, stays. Raises `ValueError` where
    some are missing.
    """
    found: dict[str, dict[str, dict[int, torch.Tensor]]] = {}
    joined = {}
    for name, value in tensors.items():
        if match := ROUTED.fullmatch(name):
            base, expert, part = match.groups()
            found.setdefault(base, {}).setdefault(part, {})[int(expert)] = value
        else:
            joined[name] = value
    for base, parts in found.items():
        count = 1 + max(expert for numbered in parts.values() for expert in numbered)
        if any(len(parts.get(part, ())) != count for part in ("gate", "up", "down")):
            raise ValueError(f"some of the {count} experts under {base} lack gate_proj, up_proj or down_proj")
        stacked = {part: torch.stack([parts[part][e] for e in range(len(parts[part]))]) for part in parts}
        joined[f"{base}.gate_up_proj"] = torch.cat([stacked["gate"], stacked["up"]], dim=1)
        joined[f"{base}.down_proj"] = stacked["down"]
    return joined
