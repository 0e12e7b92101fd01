"""What a trace needs of full rows, computed on the device for many rounds at once, in few large operations.

Tensors in, tensors out, without a branch on a value. Rows of many rounds lie in a stack, one round's after another's:
for each node the row of p that it was judged by and the row of q that it was drawn from; then, for some rounds, the row
of p after the last node (of a tree, after the last kept one), and the same for q.
"""

from __future__ import annotations

import torch

Numbers = dict[str, torch.Tensor]


def measure(
    rows: torch.Tensor, scratch: torch.Tensor, tokens: torch.Tensor, drawn: torch.Tensor, at: torch.Tensor
) -> Numbers:
    """The scalars of a stack of rows.

    rows: (2, stack, vocab) p and q, or (1, stack, vocab) p alone where all guesses were certain; scratch: as rows,
    overwritten; tokens: (stack,) a token for each row; drawn: (rounds,) the token each round drew; at: (rounds,) the
    row it was drawn at (of a corrected one, that of the first guess refused there).

    Returns, (stack,) each, of p and of q: prob of the token, how many tokens are above it, entropy and total (sum) of
    the row; distance, sum |p - q|, and overweight_p, p of the draft-overweight set. (rounds,) each, of p and of q:
    drawn_prob and drawn_above, of the drawn tokens.
    """
    kinds, stack, _ = rows.shape
    entropy = torch.clamp(rows, min=torch.finfo(rows.dtype).tiny, out=scratch).log_().mul_(rows).sum(-1).neg_()
    prob, above = _looked_up(rows, tokens, scratch)
    total = rows.sum(-1)
    places = torch.cat([at + kind * stack for kind in range(kinds)])
    again = torch.index_select(rows.flatten(0, 1), 0, places, out=scratch.flatten(0, 1)[: len(places)])
    again = again.unflatten(0, (kinds, -1))
    drawn_prob, drawn_above = _looked_up(again, drawn, again)
    of_both = {
        "prob": prob, "above": above, "entropy": entropy, "total": total,
        "drawn_prob": drawn_prob, "drawn_above": drawn_above,
    }  # fmt: skip
    numbers = {f"{name}_{'pq'[i]}": parts[i] for name, parts in of_both.items() for i in range(kinds)}
    if kinds == 1:
        return numbers | _against_certain(prob[0], total[0], drawn == tokens[at])
    difference = torch.sub(*rows, out=scratch[0])
    lighter = torch.lt(difference, 0, out=scratch[1])
    return numbers | {"overweight_p": lighter.mul_(rows[0]).sum(-1), "distance": difference.abs_().sum(-1)}


def _looked_up(rows: torch.Tensor, tokens: torch.Tensor, room: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Probability of a token in each row, and how many tokens are more probable there; room: as rows, overwritten."""
    prob = rows.gather(-1, tokens.expand(rows.shape[0], -1).unsqueeze(-1))
    return prob.squeeze(-1), torch.gt(rows, prob, out=room).sum(-1)


def _against_certain(prob: torch.Tensor, total: torch.Tensor, same: torch.Tensor) -> Numbers:
    """Figures of one-hot rows of q, which need not be there: from p of the guess and the sum of its row.

    same: (rounds,) whether the drawn token is the guess it was drawn at.
    """
    one, zero, same = torch.ones_like(prob), torch.zeros_like(prob), same.to(prob.dtype)
    return {
        "prob_q": one, "above_q": zero, "entropy_q": zero, "total_q": one,
        "drawn_prob_q": same, "drawn_above_q": 1 - same,
        "overweight_p": torch.where(prob < 1, prob, 0.0), "distance": total - prob + (prob - 1).abs_(),
    }  # fmt: skip


def top_entries(rows: torch.Tensor, k: int, tokens: torch.Tensor, drawn: torch.Tensor, at: torch.Tensor) -> Numbers:
    """top_tokens, top_p and top_q, (stack, 2 k + 2): both top-k sets of each row, its token and, where one was drawn,
    the drawn one, with repetitions; tokens as floats. rows: p and q; the rest as in `measure`.
    """
    p_top, q_top = rows.topk(min(k, rows.shape[-1]), dim=-1).indices
    also = tokens.index_copy(0, at, drawn)
    found = torch.cat([p_top, q_top, tokens.unsqueeze(-1), also.unsqueeze(-1)], dim=-1)
    p, q = rows.gather(-1, found.expand(2, -1, -1))
    return {"top_tokens": found.to(rows.dtype), "top_p": p, "top_q": q}
