"""From rounds to a trace: every scalar is computed from the full rows, on the device, before rows are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from specworkbench.engine.loop import Round
from specworkbench.errors import InputError
from specworkbench.trace import Trace, TraceBuilder
from specworkbench.trace.schema import CAPTURES

MEASURED = (
    "token", "p", "q", "accept_prob", "u", "u_draw", "overlap", "tv", "residual_mass", "entropy_p", "entropy_q",
    "rank_p", "rank_q", "overweight_p", "overweight_q", "in_overweight",
)  # fmt: skip
PENDING_ROUNDS = 128
"""Rounds whose measurements may wait on the device before they are fetched together."""


def measure(step: Round) -> torch.Tensor:
    """(n + 1, len(MEASURED)) float64: a row for each proposed token and one for the token that was drawn.

    The drawn token's row of the distributions is the one at the accepted length: the rejected position's, or the
    bonus position's, where there is no draft row (NaN).
    """
    p_rows, n = step.target_probs, step.proposal.size
    accepted = step.verdict.accepted.unsqueeze(0)
    tokens = torch.cat([step.proposal.tokens, step.verdict.next_token.unsqueeze(0)])
    at = torch.cat([torch.arange(n, device=accepted.device), accepted])
    p = p_rows[at].gather(-1, tokens.unsqueeze(-1))
    nan = torch.full((1,), torch.nan, dtype=p_rows.dtype, device=p_rows.device)
    columns = {
        "token": tokens,
        "p": p.squeeze(-1),
        "accept_prob": torch.cat([step.verdict.accept_probs, nan]),
        "u": torch.cat([step.uniforms.accept, nan]),
        "u_draw": torch.cat([_draft_uniforms(step, nan), step.uniforms.drawn[accepted]]),
        "entropy_p": torch.special.entr(p_rows).sum(-1)[at],
        "rank_p": (p_rows[at] > p).sum(-1) + 1,
    }
    columns |= _draft_columns(step, at, tokens, nan) if n else {}
    absent = nan.expand(n + 1)
    return torch.stack([columns.get(name, absent).to(p_rows.dtype) for name in MEASURED], dim=-1)


def _draft_uniforms(step: Round, nan: torch.Tensor) -> torch.Tensor:
    """(n,) uniforms the guesses were drawn with; NaN where a guess was certain."""
    n = step.proposal.size
    return nan.expand(n) if step.proposal.probs is None else step.uniforms.draft[:n]


def _draft_columns(step: Round, at: torch.Tensor, tokens: torch.Tensor, nan: torch.Tensor) -> dict[str, torch.Tensor]:
    """The columns that compare p with q; NaN for a token drawn where there is no draft row."""
    p, q = step.target_probs[:-1], step.proposal.draft_probs(step.target_probs)
    difference, overweight = p - q, q > p
    by_row = {
        "overlap": torch.minimum(p, q).sum(-1),
        "tv": difference.abs().sum(-1) / 2,
        "residual_mass": difference.clamp(min=0).sum(-1),
        "entropy_q": torch.special.entr(q).sum(-1),
        "overweight_p": (p * overweight).sum(-1),
        "overweight_q": (q * overweight).sum(-1),
    }
    columns = {name: torch.cat([values, nan])[at] for name, values in by_row.items()}
    inside = at.clamp(max=q.shape[0] - 1)
    q_token = q[inside].gather(-1, tokens.unsqueeze(-1))
    by_token = {
        "q": q_token.squeeze(-1),
        "rank_q": (q[inside] > q_token).sum(-1) + 1,
        "in_overweight": overweight[inside].gather(-1, tokens.unsqueeze(-1)).squeeze(-1),
    }
    has_row = at < q.shape[0]
    return columns | {name: torch.where(has_row, values.to(p.dtype), nan) for name, values in by_token.items()}


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
        self._pending: list[tuple[Round, torch.Tensor, Any]] = []
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
        self._pending.append((step.without_rows(), measure(step), captured))
        if len(self._pending) >= PENDING_ROUNDS:
            self.flush()

    def flush(self) -> None:
        """Fetch what waits on the device."""
        for step, measured, captured in self._pending:
            values = measured.cpu().numpy()
            positions = _positions(step, values, self._outputs.get(step.sequence, 0))
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


def _positions(step: Round, values: np.ndarray, output_start: int) -> dict[str, Any]:
    """Columns of the `positions` table for one round."""
    n, accepted, emitted = step.proposal.size, step.decision.accepted, step.decision.emitted
    order = np.arange(n)
    outcome = ["accepted"] * accepted + ["rejected"] * (accepted < n) + ["discarded"] * (n - accepted - 1)
    outcome.append("plain" if n == 0 else "bonus" if accepted == n else "corrected")
    in_output = np.append(np.where(order < accepted, order, n + 1), accepted) < emitted
    columns = {name: values[:, i] for i, name in enumerate(MEASURED)}
    return columns | {
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
