"""From rounds to a trace: every scalar is computed from the full rows, on the device, before rows are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from specworkbench.engine.loop import Round
from specworkbench.errors import InputError
from specworkbench.trace import Trace, TraceBuilder
from specworkbench.trace.schema import CAPTURES

FROM_TARGET = ("p", "entropy_p", "rank_p")
FROM_BOTH = (
    "q", "overlap", "tv", "residual_mass", "entropy_q", "rank_q", "overweight_p", "overweight_q", "in_overweight",
)  # fmt: skip
MEASURED = FROM_TARGET + FROM_BOTH
PENDING_ROUNDS = 128
"""Rounds whose measurements may wait on the device before they are fetched together."""


def measure(step: Round) -> torch.Tensor:
    """(n + 1, len(MEASURED)): what needs the full rows, for each proposed token and for the token that was drawn.

    The drawn token's row of the distributions is the one at the accepted length: the rejected position's, or the
    bonus position's, where there is no draft row (NaN).
    """
    n, accepted = step.proposal.size, step.verdict.accepted.unsqueeze(0)
    tokens = torch.cat([step.proposal.tokens, step.verdict.next_token.unsqueeze(0)])
    at = torch.cat([torch.arange(n, device=accepted.device), accepted])
    p_rows = step.target_probs.index_select(0, at)
    p = p_rows.gather(-1, tokens.unsqueeze(-1))
    from_target = torch.stack([p.squeeze(-1), _entropy(p_rows), (p_rows > p).sum(-1).to(p.dtype) + 1], dim=-1)
    if not n:
        return torch.cat([from_target, p.new_full((1, len(FROM_BOTH)), torch.nan)], dim=-1)
    q_rows = step.proposal.draft_probs(step.target_probs).index_select(0, at.clamp(max=n - 1))
    from_both = torch.where((at < n).unsqueeze(-1), _compared(p_rows, q_rows, tokens), torch.nan)
    return torch.cat([from_target, from_both], dim=-1)


def _compared(p_rows: torch.Tensor, q_rows: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """(n + 1, len(FROM_BOTH)) from the two rows (n + 1, vocab) at each token."""
    difference = p_rows - q_rows
    overweight = (difference < 0).to(p_rows.dtype)
    p, q = (rows.gather(-1, tokens.unsqueeze(-1)) for rows in (p_rows, q_rows))
    columns = (
        q.squeeze(-1),
        torch.minimum(p_rows, q_rows).sum(-1),
        difference.abs().sum(-1) / 2,
        difference.clamp(min=0).sum(-1),
        _entropy(q_rows),
        (q_rows > q).sum(-1).to(q.dtype) + 1,
        torch.linalg.vecdot(p_rows, overweight),
        torch.linalg.vecdot(q_rows, overweight),
        (q > p).squeeze(-1).to(q.dtype),
    )
    return torch.stack(columns, dim=-1)


def _entropy(rows: torch.Tensor) -> torch.Tensor:
    """(n,) nats of rows (n, vocab); an entry of 0 counts 0."""
    return -torch.linalg.vecdot(rows, rows.clamp(min=torch.finfo(rows.dtype).tiny).log())


def top_entries(step: Round, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """tokens, p, q, each (n + 1, 2 k + 2): both top-k sets and the drawn tokens of each position, with repetitions.

    q of the last row, where nothing was proposed, is NaN.
    """
    p_rows, n = step.target_probs, step.proposal.size
    q_rows = torch.cat([step.proposal.draft_probs(p_rows), torch.full_like(p_rows[:1], torch.nan)])
    k = min(k, p_rows.shape[-1])
    p_top = p_rows.topk(k, dim=-1).indices
    q_top = torch.cat([q_rows[:n].topk(k, dim=-1).indices, p_top[n:]])
    drawn = step.verdict.next_token.unsqueeze(0)
    guesses = torch.cat([step.proposal.tokens, drawn]).unsqueeze(-1)
    at_drawn = (torch.arange(n + 1, device=drawn.device) == step.verdict.accepted).unsqueeze(-1)
    tokens = torch.cat([p_top, q_top, guesses, torch.where(at_drawn, drawn, guesses)], dim=-1)
    return tokens, p_rows.gather(-1, tokens), q_rows.gather(-1, tokens)


class TraceRecorder:
    """Receives rounds, gives a trace. capture: none (scalars only), top-k or full rows; see `trace.schema`."""

    def __init__(self, capture: str = "none", top_k: int = 32):
        if capture not in CAPTURES:
            raise InputError(f"capture is {capture!r}; choose one of {', '.join(CAPTURES)}")
        if top_k < 1:
            raise InputError(f"the number of captured tokens is {top_k}; it must be at least 1")
        self.capture, self.top_k = capture, top_k
        self._builder = TraceBuilder()
        self._pending: list[tuple[Round, bool, torch.Tensor, Any]] = []
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
            q = step.proposal.draft_probs(step.target_probs)
            captured = (step.target_probs.float(), q.float())
        # the rows themselves are let go of here
        self._pending.append((step.without_rows(), step.proposal.probs is None, measure(step), captured))
        if len(self._pending) >= PENDING_ROUNDS:
            self.flush()

    def flush(self) -> None:
        """Fetch what waits on the device."""
        for step, certain, measured, captured in self._pending:
            values = measured.cpu().numpy()
            positions = _positions(step, certain, values, self._outputs.get(step.sequence, 0))
            self._outputs[step.sequence] = self._outputs.get(step.sequence, 0) + step.decision.emitted
            self._builder.add_round(_round(step), positions, self._distributions(step, captured))
        self._pending.clear()

    def trace(self, manifest: dict[str, Any]) -> Trace:
        """The trace of all rounds so far."""
        self.flush()
        rows = None
        if self.capture == "full" and self._row_count:
            rows = {name: np.concatenate(parts) for name, parts in self._rows.items()}
        return self._builder.build(manifest, rows)

    def _distributions(self, step: Round, captured: Any) -> list[dict[str, Any]] | None:
        if captured is None:
            return None
        keys = [
            {"sequence": step.sequence, "round": step.index, "position": position}
            for position in range(1, step.proposal.size + 2)
        ]
        if self.capture == "top-k":
            tokens, p, q = (part.cpu().numpy() for part in captured)
            return [key | _entries(tokens[i], p[i], q[i]) for i, key in enumerate(keys)]
        target, draft = (part.cpu().numpy() for part in captured)
        self._rows["target"].append(target)
        self._rows["draft"].append(np.concatenate([draft, np.full_like(target[:1], np.nan)]))
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


def _positions(step: Round, certain: bool, values: np.ndarray, output_start: int) -> dict[str, Any]:
    """Columns of the `positions` table for one round. certain: its guesses were made without a draw."""
    n, accepted, emitted = step.proposal.size, step.decision.accepted, step.decision.emitted
    order = np.arange(n)
    outcome = ["accepted"] * accepted + ["rejected"] * (accepted < n) + ["discarded"] * (n - accepted - 1)
    outcome.append("plain" if n == 0 else "bonus" if accepted == n else "corrected")
    in_output = np.append(np.where(order < accepted, order, n + 1), accepted) < emitted
    accept_probs, accept, drawn = (
        values.cpu().numpy() for values in (step.verdict.accept_probs, step.uniforms.accept, step.uniforms.drawn)
    )
    draft = np.full(n, np.nan) if certain else step.uniforms.draft[:n].cpu().numpy()
    columns = {name: values[:, i] for i, name in enumerate(MEASURED)}
    return columns | {
        "token": np.append(np.array(step.decision.proposed, dtype=np.int64), step.decision.next_token),
        "accept_prob": np.append(accept_probs, np.nan),
        "u": np.append(accept, np.nan),
        "u_draw": np.append(draft, drawn[accepted]),
        "sequence": np.full(n + 1, step.sequence),
        "round": np.full(n + 1, step.index),
        "position": np.append(order + 1, accepted + 1),
        "node": np.append(order, -1),
        "parent": np.append(order - 1, accepted - 1),
        "depth": np.append(order + 1, accepted + 1),
        "outcome": outcome,
        "emitted": in_output,
        "output_index": np.where(in_output, output_start + np.append(order, accepted), np.nan),
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
        "examined": min(n, decision.accepted + 1),
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
