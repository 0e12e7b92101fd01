"""What a trace needs of full rows, computed on the device in few large operations, for many rounds at once or for one.

Tensors in, tensors out, without a branch on a value, so that it can be compiled. Rows of many rounds lie in a stack,
one round's after another's: for each node the row of p that it was judged by and the row of q that it was drawn from;
then, for some rounds, the row of p after the last node (of a tree, after the last kept one), and the same for q.
"""

from __future__ import annotations

import torch

WAITING_BYTES = 2**22
"""Bytes of rows that are measured together: so many that dispatching costs little beside the arithmetic, so few that a
cache holds them. Rounds of a large vocabulary are measured one by one."""
OF_EACH = ("prob", "above", "also_prob", "also_above", "entropy", "total")
MEASURED = (*(f"{name}_{kind}" for name in OF_EACH for kind in "pq"), "overweight_p", "distance")
"""What `measure` gives of each row, in this order: of p and of q the prob of its token and how many tokens are above
it, the same of its second token, the row's entropy and its total (sum); p of the draft-overweight set; sum |p - q|."""
TOP = ("top_tokens", "top_p", "top_q")


def measure(
    rows: torch.Tensor, tokens: torch.Tensor, also: torch.Tensor, room: torch.Tensor | None = None
) -> torch.Tensor:
    """The scalars of a stack of rows: (names, stack), see `MEASURED`.

    rows: (2, stack, vocab) p and q, or (1, stack, vocab) p alone where all guesses were certain; tokens, also:
    (stack,) two tokens for each row; room: as rows, overwritten, where there is no compiler to do without it.
    """
    entropy = torch.clamp(rows, min=torch.finfo(rows.dtype).tiny, out=room).log_().mul_(rows).sum(-1).neg_()
    of_each = [*_looked_up(rows, tokens, room), *_looked_up(rows, also, room), entropy, rows.sum(-1)]
    if rows.shape[0] == 1:
        prob, *_, total = (values[0] for values in of_each)
        of_q, between = _of_certain(prob, total, (also == tokens).to(prob.dtype))
        of_both = [value for values, certain in zip(of_each, of_q, strict=True) for value in (values[0], certain)]
        return torch.stack([*of_both, *between])
    p, q = rows
    spare = (None, None) if room is None else room
    difference = torch.sub(p, q, out=spare[0])
    lighter = torch.lt(difference, 0, out=spare[1]).to(rows.dtype)
    between = [lighter.mul_(p).sum(-1), difference.abs_().sum(-1)]
    return torch.stack([value for values in of_each for value in values] + between)


def _looked_up(
    rows: torch.Tensor, tokens: torch.Tensor, room: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Probability of a token in each row, and how many tokens are more probable there; room: as rows, overwritten."""
    prob = rows.gather(-1, tokens.expand(rows.shape[0], -1).unsqueeze(-1))
    return prob.squeeze(-1), torch.gt(rows, prob, out=room).to(rows.dtype).sum(-1)


def _of_certain(prob: torch.Tensor, total: torch.Tensor, same: torch.Tensor) -> tuple[list[torch.Tensor], ...]:
    """What `measure` gives of one-hot rows of q, which need not be there, and of p against them.

    prob, total: of p, of the guess and of the row; same: 1 where the second token is the guess, else 0.
    """
    one, zero = torch.ones_like(prob), torch.zeros_like(prob)
    overweight_p = torch.where(prob < 1, prob, 0.0)
    return [one, zero, same, 1 - same, zero, one], [overweight_p, total - prob + (prob - 1).abs()]


def measure_chain(
    p: torch.Tensor, tokens: torch.Tensor, accepted: torch.Tensor, next_token: torch.Tensor, *q: torch.Tensor, top: int
) -> tuple[torch.Tensor, ...]:
    """What `measure` gives of one round with a chain of n guesses, row by row to that after the last, (names, n + 1);
    then, unless top is 0, what `top_entries` gives of it.

    p: (n + 1, vocab); tokens: (n,) guesses; accepted, next_token: () of the verdict; q: (n, vocab), or nothing where
    all guesses were certain and top is 0.
    """
    tokens = torch.cat([tokens, next_token.unsqueeze(0)])
    also = torch.where(torch.arange(len(tokens), device=p.device) == accepted, next_token, tokens)
    rows = torch.stack([p, *(torch.cat([rows, p[-1:]]) for rows in q)])
    measured = measure(rows, tokens, also)
    return (measured, *top_entries(rows, top, tokens, also)) if top else (measured,)


def top_entries(rows: torch.Tensor, k: int, tokens: torch.Tensor, also: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The parts of `TOP`, (stack, 2 k + 2) each: both top-k sets of each row and its two tokens, with repetitions,
    tokens as floats; p of these; q. rows: p and q.
    """
    p_top, q_top = rows.topk(min(k, rows.shape[-1]), dim=-1).indices
    found = torch.cat([p_top, q_top, tokens.unsqueeze(-1), also.unsqueeze(-1)], dim=-1)
    return found.to(rows.dtype), *rows.gather(-1, found.expand(2, -1, -1))
