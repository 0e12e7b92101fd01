"""From rounds to a trace: every scalar is computed from the full rows, on the device, before rows are dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from specworkbench.engine.contracts import Decision
from specworkbench.engine.loop import Round
from specworkbench.engine.trees import depths_of
from specworkbench.errors import InputError
from specworkbench.trace import Trace, TraceBuilder
from specworkbench.trace.schema import CAPTURES

FROM_BOTH = (
    "q", "overlap", "tv", "residual_mass", "entropy_q", "rank_q", "overweight_p", "overweight_q", "in_overweight",
)  # fmt: skip
PENDING_ROUNDS = 128
"""Rounds whose measurements may wait on the device before they are fetched together."""


def measure(step: Round) -> torch.Tensor:
    """What the position columns need of the full rows, as one flat float64 tensor for `measured_columns` to unfold.

    There is a row of p for each proposed token and one for the token that was drawn (that after the last kept token),
    then the rows of q likewise; of the drawn token it is that of the first guess refused there. First come, for all of
    these rows, the token's probability, the row's entropy, how many tokens are more probable, and the row's sum; then,
    for each pair of rows, sum |p - q| and p of the draft-overweight set. Few large operations: each costs more than its
    arithmetic.
    """
    n, decision, p_rows = step.proposal.size, step.decision, step.target_probs
    tokens = [*decision.proposed, decision.next_token] * (2 if n else 1)
    rows = p_rows.new_empty(len(tokens), p_rows.shape[-1])
    of_p, of_q = rows_of(decision)
    torch.index_select(p_rows, 0, torch.tensor(of_p, device=rows.device), out=rows[: n + 1])
    if n:
        q_rows = step.proposal.draft_probs(p_rows)
        torch.index_select(q_rows, 0, torch.tensor(of_q, device=rows.device), out=rows[n + 1 :])
    prob = rows.gather(-1, torch.tensor(tokens, device=rows.device).unsqueeze(-1))
    entropy = -rows.clamp(min=torch.finfo(rows.dtype).tiny).log_().mul_(rows).sum(-1)
    above = (rows > prob).sum(-1)
    of_row = torch.stack([column.to(rows.dtype) for column in (prob.squeeze(-1), entropy, above, rows.sum(-1))])
    if not n:
        return of_row.flatten()
    p = rows[: n + 1]
    difference = p - rows[n + 1 :]
    overweight = (difference < 0).to(rows.dtype).mul_(p).sum(-1)
    return torch.cat([of_row.flatten(), difference.abs_().sum(-1), overweight])


def rows_of(decision: Decision) -> tuple[list[int], list[int]]:
    """Rows of p and of q, n + 1 each, for the n proposed tokens and the drawn one (any row of q for a bonus)."""
    n, after = len(decision.proposed), decision.last + 1
    if decision.parents is None:
        return [*range(n), after], [*range(n), min(after, n - 1)]
    first = next((node for node in decision.refused if decision.parents[node] == decision.last), 0)
    return [*(parent + 1 for parent in decision.parents), after], [*range(n), first]


def measured_columns(flat: np.ndarray, decision: Decision) -> dict[str, np.ndarray]:
    """Columns of the `positions` table, (n + 1,) each, from what `measure` gave.

    Sums of minima and of positive parts follow from sum |p - q| and the rows' own sums.
    """
    n = len(decision.proposed)
    pairs = n + 1
    absent = np.full(pairs, np.nan)
    rows = 2 * pairs if n else 1
    prob, entropy, above, total = flat[: 4 * rows].reshape(4, rows)
    columns = {"p": prob[:pairs], "entropy_p": entropy[:pairs], "rank_p": above[:pairs] + 1}
    if not n:
        return columns | dict.fromkeys(FROM_BOTH, absent)
    distance, overweight_p = flat[4 * rows :].reshape(2, pairs)
    p, q, excess = prob[:pairs], prob[pairs:], total[:pairs] - total[pairs:]
    from_both = (
        q, (total[:pairs] + total[pairs:] - distance) / 2, distance / 2, (distance + excess) / 2, entropy[pairs:],
        above[pairs:] + 1, overweight_p, overweight_p + (distance - excess) / 2, (q > p).astype(p.dtype),
    )  # fmt: skip
    has_row = np.arange(pairs) < (n if decision.outcome == "bonus" else pairs)
    return columns | {
        name: np.where(has_row, values, np.nan) for name, values in zip(FROM_BOTH, from_both, strict=True)
    }


def captured_rows(step: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """p and q, (n + 1, vocab) each: of every node its parent's row of p and its own of q; last, without a q (NaN), the
    row of p after the last node of a chain, after the last kept node of a tree.
    """
    p_rows, proposal = step.target_probs, step.proposal
    q_rows = torch.cat([proposal.draft_probs(p_rows), torch.full_like(p_rows[:1], torch.nan)])
    if proposal.is_tree:
        p_rows = p_rows[torch.tensor(rows_of(step.decision)[0], device=p_rows.device)]
    return p_rows, q_rows


def top_entries(step: Round, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """tokens, p, q, each (n + 1, 2 k + 2): both top-k sets and the drawn tokens of each row, with repetitions.

    Rows are those of `captured_rows`; that of a corrected token is the first refused guess's.
    """
    n, decision = step.proposal.size, step.decision
    p_rows, q_rows = captured_rows(step)
    k = min(k, p_rows.shape[-1])
    p_top = p_rows.topk(k, dim=-1).indices
    q_top = torch.cat([q_rows[:n].topk(k, dim=-1).indices, p_top[n:]])
    drawn = step.verdict.next_token.unsqueeze(0)
    guesses = torch.cat([step.proposal.tokens, drawn]).unsqueeze(-1)
    of_drawn = rows_of(decision)[1][-1] if decision.outcome == "corrected" else n
    at_drawn = (torch.arange(n + 1, device=drawn.device) == of_drawn).unsqueeze(-1)
    tokens = torch.cat([p_top, q_top, guesses, torch.where(at_drawn, drawn, guesses)], dim=-1)
    return tokens, p_rows.gather(-1, tokens), q_rows.gather(-1, tokens)


@dataclass(frozen=True)
class _Pending:
    """A recorded round whose tensors may still be on the device: its table row, and what its positions are made of.

    draft: (n,) uniforms the guesses were drawn with, None where they were certain.
    """

    row: dict[str, Any]
    decision: Decision
    accept_probs: torch.Tensor
    accept: torch.Tensor
    drawn: torch.Tensor
    draft: torch.Tensor | None
    measured: torch.Tensor
    captured: tuple[torch.Tensor, ...] | None

    @classmethod
    def of(cls, step: Round, captured: tuple[torch.Tensor, ...] | None) -> _Pending:
        uniforms, proposal = step.uniforms, step.proposal
        return cls(
            _round(step), step.decision, step.verdict.accept_probs, uniforms.accept, uniforms.drawn,
            None if proposal.probs is None else uniforms.draft[: proposal.size], measure(step), captured,
        )  # fmt: skip


class TraceRecorder:
    """Receives rounds, gives a trace. capture: none (scalars only), top-k or full rows; see `trace.schema`."""

    def __init__(self, capture: str = "none", top_k: int = 32):
        if capture not in CAPTURES:
            raise InputError(f"capture is {capture!r}; choose one of {', '.join(CAPTURES)}")
        if top_k < 1:
            raise InputError(f"the number of captured tokens is {top_k}; it must be at least 1")
        self.capture, self.top_k = capture, top_k
        self._builder = TraceBuilder()
        self._pending: list[_Pending] = []
        self._outputs: dict[int, int] = {}
        self._rows: dict[str, list[np.ndarray]] = {"target": [], "draft": []}
        self._row_count = 0

    @torch.inference_mode()
    def record(self, step: Round) -> None:
        """Measure a round on the device. The host fetches the numbers later, many rounds at once."""
        captured = None
        if self.capture == "top-k":
            captured = top_entries(step, self.top_k)
        elif self.capture == "full":
            captured = tuple(rows.float() for rows in captured_rows(step))
        self._pending.append(_Pending.of(step, captured))  # the rows themselves are let go of here
        if len(self._pending) >= PENDING_ROUNDS:
            self.flush()

    def flush(self) -> None:
        """Fetch what waits on the device."""
        for step in self._pending:
            sequence = step.row["sequence"]
            positions = _positions(step, self._outputs.get(sequence, 0))
            self._outputs[sequence] = self._outputs.get(sequence, 0) + step.decision.emitted
            self._builder.add_round(step.row, positions, self._distributions(step))
        self._pending.clear()

    def trace(self, manifest: dict[str, Any]) -> Trace:
        """The trace of all rounds so far."""
        self.flush()
        rows = None
        if self.capture == "full" and self._row_count:
            rows = {name: np.concatenate(parts) for name, parts in self._rows.items()}
        return self._builder.build(manifest, rows)

    def _distributions(self, step: _Pending) -> list[dict[str, Any]] | None:
        if step.captured is None:
            return None
        key = {name: step.row[name] for name in ("sequence", "round")}
        n, depths = step.row["proposed"], _depths(step.decision)
        ends = n + 1 if step.decision.parents is None else step.decision.accepted + 1
        keys = [key | {"node": node, "position": depth} for node, depth in enumerate(depths)]
        keys.append(key | {"node": -1, "position": ends})
        if self.capture == "top-k":
            tokens, p, q = (part.cpu().numpy() for part in step.captured)
            return [key | _entries(tokens[i], p[i], q[i]) for i, key in enumerate(keys)]
        target, draft = (part.cpu().numpy() for part in step.captured)
        self._rows["target"].append(target)
        self._rows["draft"].append(draft)
        first, self._row_count = self._row_count, self._row_count + len(keys)
        return [key | {"tokens": None, "p": None, "q": None, "row": first + i} for i, key in enumerate(keys)]


def _entries(tokens: np.ndarray, p: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    """One position's captured tokens without repetitions, by falling p."""
    kept, first = np.unique(tokens, return_index=True)
    order = np.argsort(-p[first], kind="stable")
    first = first[order]
    return {
        "tokens": kept[order].astype(np.int32),
        "p": p[first],
        "q": None if np.isnan(q[0]) else q[first],
        "row": None,
    }


def _depths(decision: Decision) -> list[int]:
    """Depth of each node, 1 for a child of the context."""
    if decision.parents is None:
        return list(range(1, len(decision.proposed) + 1))
    return depths_of(decision.parents)


def _positions(step: _Pending, output_start: int) -> dict[str, Any]:
    """Columns of the `positions` table for one round."""
    decision, n = step.decision, step.row["proposed"]
    accepted, emitted = decision.accepted, decision.emitted
    outcome = ["discarded"] * n
    place = np.full(n + 1, n + 1)  # in the round's output; beyond it for what was not kept
    place[n] = accepted
    for number, node in enumerate(decision.nodes):
        outcome[node] = "accepted"
        place[node] = number
    for node in decision.refused:
        outcome[node] = "rejected"
    depth = np.array([*_depths(decision), accepted + 1])
    parents = range(-1, n - 1) if decision.parents is None else decision.parents
    in_output = place < emitted
    draft = np.full(n, np.nan) if step.draft is None else step.draft.cpu().numpy()
    drawn_with = n if decision.outcome == "bonus" else decision.last + 1
    return measured_columns(step.measured.cpu().numpy(), decision) | {
        "token": np.append(np.array(decision.proposed, dtype=np.int64), decision.next_token),
        "accept_prob": np.append(step.accept_probs.cpu().numpy(), np.nan),
        "u": np.append(step.accept.cpu().numpy(), np.nan),
        "u_draw": np.append(draft, step.drawn.cpu().numpy()[drawn_with]),
        "sequence": np.full(n + 1, step.row["sequence"]),
        "round": np.full(n + 1, step.row["round"]),
        "position": depth,
        "node": np.append(np.arange(n), -1),
        "parent": np.array([*parents, decision.last]),
        "depth": depth,
        "outcome": [*outcome, decision.outcome],
        "emitted": in_output,
        "output_index": np.where(in_output, output_start + place, np.nan),
    }


def _round(step: Round) -> dict[str, Any]:
    """One row of the `rounds` table."""
    n, decision = step.proposal.size, step.decision
    return {
        "sequence": step.sequence,
        "round": step.index,
        "context_length": step.context_length,
        "gamma": step.gamma,
        "asked": step.asked,
        "shortened": step.shortened,
        "proposed": n,
        "examined": decision.accepted + len(decision.refused),
        "accepted": decision.accepted,
        "verdict_length": decision.accepted + 1,
        "emitted": decision.emitted,
        **{f"ms_{phase}": ms for phase, ms in step.times.items()},
        "target_positions": n + 1,
        "draft_forwards": step.proposal.forwards,
        "draft_positions": step.proposal.positions,
        "target_cache_tokens": step.target_cache_tokens,
        "target_cache_bytes": step.target_cache_bytes,
        "draft_cache_bytes": step.draft_cache_bytes,
    }
