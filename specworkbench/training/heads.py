"""Losses of heads: the head is unrolled in training as it is in decoding, and learns the target's own rows."""

from __future__ import annotations

import torch
from torch.nn import functional

from specworkbench.engine.heads.blocks import Attend
from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.heads.medusa import MedusaHeads
from specworkbench.training.features import Batch

__all__ = [
    "row_loss", "step_rows", "unrolled", "causal", "head_rows", "head_losses", "overlaps", "rank_acceptance",
]  # fmt: skip

DECAY = 0.9
"""Weight of a guess against the one before it: later guesses are reached less often."""


def row_loss(logits: torch.Tensor, top: torch.Tensor, probs: torch.Tensor, place: torch.Tensor | None) -> torch.Tensor:
    """Mean cross entropy of a head's rows with the target's, in nats.

    logits: (..., own vocabulary); top, probs: (..., k), the target's most probable tokens, taken as the whole row;
    place: (vocabulary,) the place of each token in a reduced vocabulary, -1 for none.

    >>> logits, top, probs = torch.zeros(1, 4), torch.tensor([[2, 3]]), torch.tensor([[0.5, 0.5]])
    >>> round(row_loss(logits, top, probs, None).item(), 4)
    1.3863
    """
    if place is not None:
        top = place[top]
        probs = probs * (top >= 0)
        top = top.clamp(min=0)
    probs = probs / probs.sum(-1, keepdim=True).clamp(min=1e-6)
    at = logits.gather(-1, top)
    return ((probs * at).sum(-1) - probs.sum(-1) * logits.logsumexp(-1)).neg().mean()


def step_rows(batch: Batch, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's rows, top and probs, that guess `step` (0 the first) of every position t is compared with.

    From the feature of position t, guess `step` is of token t + 2 + step, whose row is at t + 1 + step.

    >>> batch = Batch(torch.arange(8)[None], {}, torch.arange(8)[None, :, None], torch.ones(1, 8, 1))
    >>> step_rows(batch, step=1)[0].flatten().tolist()
    [2, 3, 4, 5, 6, 7]
    """
    return batch.top[:, 1 + step :], batch.probs[:, 1 + step :]


def unrolled(head: FeatureHead, batch: Batch, steps: int) -> list[torch.Tensor]:
    """Logits of guesses 0 .. steps - 1 from every position at once: (windows, positions that have one, vocabulary).

    A single module is unrolled on its own outputs: in step s position t sees the true entries up to t and its own s
    earlier guesses (training-time test, Li et al. 2025, section 3.2). Chained modules each see their own sequence.

    >>> from specworkbench.engine import load_model
    >>> from specworkbench.training.make_heads import make_eagle
    >>> head = make_eagle(load_model("embedded"), layers=(1, -1))
    >>> hidden = {layer: torch.zeros(2, 8, head.shape.target_width) for layer in (1, -1)}
    >>> batch = Batch(torch.zeros(2, 8, dtype=torch.int64), hidden, torch.zeros(2, 8, 4), torch.zeros(2, 8, 4))
    >>> [logits.shape[:2] for logits in unrolled(head, batch, steps=2)]
    [torch.Size([2, 7]), torch.Size([2, 6])]
    """
    whole, chained = batch.ids.shape[1] - 1, len(head.stages) > 1
    feature = head.features({layer: rows[:, :whole] for layer, rows in batch.hidden.items()})
    entries: list[tuple[torch.Tensor, torch.Tensor]] = []
    logits = []
    for step in range(steps):
        length = whole - step
        module = min(step, len(head.stages) - 1)
        attend = causal if chained else continued(entries, length)
        angles = head.rotary.span(0 if chained else step, length, feature)
        embedded = head.embedded(batch.ids[:, 1 + step :], module)
        feature, headed = head.stages[module](embedded, feature[:, :length], angles, attend)
        logits.append(head.own_logits(headed))
    return logits


def causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Plain causal attention over (windows, heads, positions, head_dim).

    >>> query = torch.ones(1, 1, 3, 2)
    >>> causal(query, query, torch.arange(3.0).expand(1, 1, 3).unsqueeze(-1)).flatten().tolist()
    [0.0, 0.5, 1.0]
    """
    return functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, enable_gqa=key.shape[1] != query.shape[1]
    )


def continued(entries: list[tuple[torch.Tensor, torch.Tensor]], length: int) -> Attend:
    """Attention of one more step: the first step's keys up to each position, then the position's own later ones.

    entries: keys and values of the steps so far, appended to; length: positions that have such a step.
    """

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        repeats = query.shape[1] // key.shape[1]
        entries.append((key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)))
        if len(entries) == 1:
            return functional.scaled_dot_product_attention(query, *entries[0], is_causal=True)
        (first_key, first_value), *later = [(k[:, :, :length], v[:, :, :length]) for k, v in entries]
        scores = query @ first_key.transpose(-1, -2)
        unseen = torch.ones(length, length, dtype=torch.bool, device=query.device).triu_(1)
        own = [(query * key).sum(-1, keepdim=True) for key, _ in later]
        scores = torch.cat([scores.masked_fill(unseen, -torch.inf), *own], dim=-1)
        weights = (scores * query.shape[-1] ** -0.5).softmax(-1)
        attended = weights[..., :length] @ first_value
        for i, (_, value) in enumerate(later):
            attended = attended + weights[..., length + i : length + i + 1] * value
        return attended

    return attend


def head_rows(head: FeatureHead | MedusaHeads, batch: Batch, steps: int) -> list[torch.Tensor]:
    """Logits of every guess, by step.

    >>> from specworkbench.engine import load_model
    >>> from specworkbench.training.make_heads import make_medusa
    >>> heads = make_medusa(load_model("embedded"), heads=2)
    >>> hidden, top = {-1: torch.zeros(2, 8, heads.shape.width)}, torch.arange(4).expand(2, 8, 4)
    >>> batch = Batch(torch.zeros(2, 8, dtype=torch.int64), hidden, top, torch.full((2, 8, 4), 0.25))
    >>> [logits.shape[:2] for logits in head_rows(heads, batch, steps=2)]
    [torch.Size([2, 7]), torch.Size([2, 6])]
    """
    if isinstance(head, MedusaHeads):
        return [head(batch.hidden[-1][:, : -1 - step], step) for step in range(steps)]
    return unrolled(head, batch, steps)


def head_losses(steps: int, place: torch.Tensor | None = None):
    """A loss for `Trainer`: the mean over guesses of `row_loss`, later guesses weighing less.

    >>> from specworkbench.engine import load_model
    >>> from specworkbench.training.make_heads import make_medusa
    >>> heads = make_medusa(load_model("embedded"), heads=2)
    >>> hidden, top = {-1: torch.zeros(2, 8, heads.shape.width)}, torch.arange(4).expand(2, 8, 4)
    >>> batch = Batch(torch.zeros(2, 8, dtype=torch.int64), hidden, top, torch.full((2, 8, 4), 0.25))
    >>> head_losses(steps=2)({"medusa": heads}, batch)["medusa"].item() > 0
    True
    """

    def losses(models: dict[str, torch.nn.Module], batch: Batch) -> dict[str, torch.Tensor]:
        found = {}
        for name, head in models.items():
            total = sum(
                DECAY**step * row_loss(logits, *step_rows(batch, step), place)
                for step, logits in enumerate(head_rows(head, batch, steps))
            )
            found[name] = total / sum(DECAY**step for step in range(steps))
        return found

    return losses


@torch.inference_mode()
def overlaps(
    head: FeatureHead | MedusaHeads, batch: Batch, steps: int, place: torch.Tensor | None = None
) -> list[float]:
    """Mean overlap sum_x min(p, q) of every guess with the target's row, on its most probable tokens, temperature 1.

    The text's own tokens lead to each guess, not the head's: a quick look, above what decoding will measure.

    >>> from specworkbench.engine import load_model
    >>> from specworkbench.training.make_heads import make_medusa
    >>> heads = make_medusa(load_model("embedded"), heads=2)
    >>> hidden, top = {-1: torch.zeros(2, 8, heads.shape.width)}, torch.arange(4).expand(2, 8, 4)
    >>> batch = Batch(torch.zeros(2, 8, dtype=torch.int64), hidden, top, torch.full((2, 8, 4), 0.25))
    >>> [0 <= share <= 1 for share in overlaps(heads, batch, steps=2)]
    [True, True]
    """
    found = []
    for step, logits in enumerate(head_rows(head, batch, steps)):
        top, probs = step_rows(batch, step)
        q = logits.softmax(-1)
        at = top if place is None else place[top]
        shared = torch.minimum(q.gather(-1, at.clamp(min=0)), probs) * (at >= 0)
        found.append(shared.sum(-1).mean().item())
    return found


@torch.inference_mode()
def rank_acceptance(heads: MedusaHeads, batch: Batch, most: int = 10) -> tuple[tuple[float, ...], ...]:
    """For every head, the target's mean probability of its first, second, ... candidate, on the text of a batch.

    That is how often the target, sampling at temperature 1, draws that candidate.

    >>> from specworkbench.engine import load_model
    >>> from specworkbench.training.make_heads import make_medusa
    >>> heads = make_medusa(load_model("embedded"), heads=2)
    >>> hidden, top = {-1: torch.zeros(2, 8, heads.shape.width)}, torch.arange(4).expand(2, 8, 4)
    >>> batch = Batch(torch.zeros(2, 8, dtype=torch.int64), hidden, top, torch.full((2, 8, 4), 0.25))
    >>> [len(of_head) for of_head in rank_acceptance(heads, batch, most=3)]
    [3, 3]
    """
    found = []
    for step, logits in enumerate(head_rows(heads, batch, heads.shape.heads)):
        top, probs = step_rows(batch, step)
        candidates = logits.topk(most, dim=-1).indices
        accepted = [((top == candidates[..., rank : rank + 1]) * probs).sum(-1).mean().item() for rank in range(most)]
        found.append(tuple(min(accepted[: rank + 1]) for rank in range(most)))
    return tuple(found)
