"""The tables of a trace by the plain formulas, one token after another: what a recorder must give for these rounds.

tables, rows = reference_tables(rounds, capture="top-k", top_k=3)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from specworkbench.engine.round import Round
from specworkbench.engine.trees import depths_of
from specworkbench.trace import schema

SUMS = ("overlap", "tv", "residual_mass", "entropy_p", "entropy_q", "overweight_p", "overweight_q")
"""Columns that are sums over a row, and so known up to rounding."""


def reference_tables(
    rounds: list[Round], capture: str, top_k: int
) -> tuple[dict[str, pd.DataFrame | None], dict[str, np.ndarray] | None]:
    """rounds, positions and distributions, with the schema's dtypes; the full rows."""
    records = {"rounds": [], "positions": [], "distributions": []}
    outputs: dict[int, int] = {}
    target, draft = [], []
    for step in rounds:
        records["rounds"].append(round_record(step))
        records["positions"] += position_records(step, outputs.get(step.sequence, 0))
        outputs[step.sequence] = outputs.get(step.sequence, 0) + step.decision.emitted
        for key, p, q, tokens in row_records(step):
            if capture == "top-k":
                key |= listed(p, q, tokens, top_k) | {"row": None}
            else:
                key |= {"tokens": None, "p": None, "q": None, "row": len(target)}
            records["distributions"].append(key)
            target.append(p)
            draft.append(np.full(len(p), np.nan) if q is None else q)
    tables = {name: schema.conform(name, frame_of(name, rows)) for name, rows in records.items()}
    if capture == "none":
        tables["distributions"] = None
    full = {"target": np.array(target, dtype=np.float32), "draft": np.array(draft, dtype=np.float32)}
    return tables, full if capture == "full" else None


def frame_of(table: str, records: list[dict]) -> pd.DataFrame:
    columns = {column.name: [record[column.name] for record in records] for column in schema.TABLES[table]}
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def shape_of(step: Round) -> tuple[list[int], list[int], int]:
    """Parent and depth of each node, and the last node that was kept (-1: none)."""
    decision, n = step.decision, step.proposal.size
    if decision.parents is None:
        return list(range(-1, n - 1)), list(range(1, n + 1)), decision.accepted - 1
    return decision.parents, depths_of(decision.parents), (decision.path or [-1])[-1]


def first_refused(step: Round) -> int | None:
    """The first guess that continues the last kept node: none is left of it that was not refused."""
    parents, _, last = shape_of(step)
    return next((node for node, parent in enumerate(parents) if parent == last), None)


def round_record(step: Round) -> dict:
    decision, n = step.decision, step.proposal.size
    return {
        "sequence": step.sequence, "round": step.index, "context_length": step.context_length, "gamma": step.gamma,
        "asked": step.asked, "shortened": step.shortened, "proposed": n,
        "examined": decision.accepted + len(decision.refused), "accepted": decision.accepted,
        "verdict_length": decision.accepted + 1, "emitted": decision.emitted,
        **{f"ms_{phase}": ms for phase, ms in step.times.items()},
        "target_positions": n + 1, "draft_forwards": step.proposal.forwards,
        "draft_positions": step.proposal.positions, "target_cache_tokens": step.target_cache_tokens,
        "target_cache_bytes": step.target_cache_bytes, "draft_cache_bytes": step.draft_cache_bytes,
    }  # fmt: skip


def position_records(step: Round, output: int) -> list[dict]:
    """A record for each node and one for the drawn token. output: tokens of the sequence that were out before."""
    decision, n, uniforms = step.decision, step.proposal.size, step.uniforms
    parents, depths, last = shape_of(step)
    displaced = first_refused(step)
    p_rows, q_rows = step.target_probs.numpy(), step.proposal.draft_probs(step.target_probs).numpy()
    records = []
    for node, token in enumerate(decision.proposed):
        kept = node in decision.nodes
        place = decision.nodes.index(node) if kept else None
        records.append({
            "node": node, "parent": parents[node], "depth": depths[node], "position": depths[node], "token": token,
            "outcome": "accepted" if kept else "rejected" if node in decision.refused else "discarded",
            **output_of(place, output, decision.emitted),
            "accept_prob": step.verdict.accept_probs[node].item(), "u": uniforms.accept[node].item(),
            "u_draw": np.nan if step.proposal.probs is None else uniforms.draft[node].item(),
            **of_rows(token, p_rows[parents[node] + 1], q_rows[node]),
        })  # fmt: skip
    depth = decision.accepted + 1
    outcome = "plain" if n == 0 else "bonus" if displaced is None else "corrected"
    records.append({
        "node": -1, "parent": last, "depth": depth, "position": depth, "token": decision.next_token,
        "outcome": outcome, **output_of(decision.accepted, output, decision.emitted),
        "accept_prob": np.nan, "u": np.nan, "u_draw": uniforms.drawn[n if displaced is None else last + 1].item(),
        **of_rows(decision.next_token, p_rows[last + 1], None if displaced is None else q_rows[displaced]),
    })  # fmt: skip
    return [record | {"sequence": step.sequence, "round": step.index} for record in records]


def output_of(place: int | None, output: int, emitted: int) -> dict:
    """place: in the round's output, None for what was not kept."""
    out = place is not None and place < emitted
    return {"emitted": out, "output_index": output + place if out else None}


def of_rows(token: int, p: np.ndarray, q: np.ndarray | None) -> dict:
    """The figures of a token by definition."""
    record = {"p": p[token], "entropy_p": entropy(p), "rank_p": 1 + (p > p[token]).sum()}
    if q is None:
        floats = ("q", "overlap", "tv", "residual_mass", "entropy_q", "overweight_p", "overweight_q")
        return record | dict.fromkeys(floats, np.nan) | {"rank_q": None, "in_overweight": None}
    return record | {
        "q": q[token], "overlap": np.minimum(p, q).sum(), "tv": np.abs(p - q).sum() / 2,
        "residual_mass": np.maximum(p - q, 0).sum(), "entropy_q": entropy(q), "rank_q": 1 + (q > q[token]).sum(),
        "overweight_p": p[q > p].sum(), "overweight_q": q[q > p].sum(), "in_overweight": bool(q[token] > p[token]),
    }  # fmt: skip


def entropy(row: np.ndarray) -> float:
    return -(row[row > 0] * np.log(row[row > 0])).sum()


def row_records(step: Round) -> list[tuple[dict, np.ndarray, np.ndarray | None, set[int]]]:
    """Of each row of `distributions` its key, p, q, and the tokens that were proposed or drawn there."""
    decision, n = step.decision, step.proposal.size
    parents, depths, last = shape_of(step)
    p_rows, q_rows = step.target_probs.numpy(), step.proposal.draft_probs(step.target_probs).numpy()
    key = {"sequence": step.sequence, "round": step.index}
    records = []
    for node, token in enumerate(decision.proposed):
        tokens = {token, decision.next_token} if node == first_refused(step) else {token}
        at = key | {"node": node, "position": depths[node]}
        records.append((at, p_rows[parents[node] + 1], q_rows[node], tokens))
    row, end = (n, n + 1) if decision.parents is None else (last + 1, decision.accepted + 1)
    return [*records, (key | {"node": -1, "position": end}, p_rows[row], None, {decision.next_token})]


def listed(p: np.ndarray, q: np.ndarray | None, tokens: set[int], top_k: int) -> dict:
    """Both top-k sets and those tokens, by falling p, then by id."""
    for row in (p,) if q is None else (p, q):
        tokens = tokens | set(torch.from_numpy(row).topk(min(top_k, len(row))).indices.tolist())
    kept = np.array(sorted(tokens, key=lambda token: (-p[token], token)), dtype=np.int32)
    return {"tokens": kept, "p": p[kept], "q": None if q is None else q[kept]}
