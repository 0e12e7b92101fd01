"""Distillation of the drafts: one forward of the finished target teaches all of them at once."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

__all__ = ["distil_losses"]

HARD_SHARE = 0.1  # weight of the text's own next token; the rest is the teacher's distribution at temperature 1


def distil_losses(teacher: torch.nn.Module):
    """A loss for `Trainer`: cross entropy of every draft with (1 - HARD_SHARE) p + HARD_SHARE one-hot(next token).

    Up to the constant entropy this is (1 - HARD_SHARE) KL(p || q) + HARD_SHARE times the hard-label loss.

    >>> from specworkbench.training.family import make_config, make_model
    >>> shape = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
    >>> teacher, draft = (make_model(make_config(300, **shape), seed) for seed in (0, 1))
    >>> losses = distil_losses(teacher)({"draft": draft}, np.arange(10)[None])
    >>> losses["draft"].item() > 0
    True
    """

    def losses(models: dict[str, torch.nn.Module], ids: np.ndarray) -> dict[str, torch.Tensor]:
        ids = torch.as_tensor(ids)
        inputs, targets = ids[:, :-1], ids[:, 1:].flatten()
        with torch.no_grad():
            soft = torch.softmax(teacher(input_ids=inputs, use_cache=False).logits.flatten(0, 1), -1)
            soft.mul_(1 - HARD_SHARE)
            soft[torch.arange(len(targets)), targets] += HARD_SHARE
        return {
            name: functional.cross_entropy(model(input_ids=inputs, use_cache=False).logits.flatten(0, 1), soft)
            for name, model in models.items()
        }

    return losses
