"""What the widgets show of a trace, as tables: the tokens of a strip, and p against q at one position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from specworkbench.errors import InputError
from specworkbench.trace import Trace
from specworkbench.trace.rule import lossy_sentence
from specworkbench.trace.schema import STOP_REASONS
from specworkbench.widgets.text import spoken, visible


def strip_rows(trace: Trace, sequence: int) -> pd.DataFrame:
    """The tokens of a sequence in the order of a strip: by round; as proposed, then the token that was drawn.

    Of a tree, by depth, the kept path and what was tried beside it; its other nodes are left out. Rows of
    `trace.positions`, numbered from 0 as in the strip. Raises `InputError` for a sequence that is not there.
    """
    if not 0 <= sequence < len(trace.sequences):
        raise InputError(f"there is no sequence {sequence}; the trace has {len(trace.sequences)}, counted from 0")
    rows = trace.positions[trace.positions["sequence"] == sequence]
    branching = rows.loc[(rows["node"] >= 0) & (rows["parent"] != rows["node"] - 1), "round"].unique()
    rows = rows[(rows["outcome"] != "discarded") | ~rows["round"].isin(branching)]
    order = np.lexsort((rows["node"], rows["position"], rows["node"] < 0, rows["round"]))
    return rows.iloc[order].reset_index(drop=True)


def tokens_of(trace: Trace, sequence: int = 0) -> list[dict[str, Any]]:
    """The tokens of a sequence as `TokenStrip` takes them: text (visible), outcome, emitted, round, position, label.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> tokens = tokens_of(load_trace(traces_dir() / "quickstart.trace"))
    >>> [(token["text"], token["outcome"]) for token in tokens[:3]]
    [('#', 'accepted'), ('·B', 'accepted'), ('y', 'rejected')]
    """
    columns = ["token", "outcome", "emitted", "round", "position"]
    tokens = []
    for token, outcome, emitted, round_index, position in strip_rows(trace, sequence)[columns].itertuples(index=False):
        raw, cut = trace.token_text(token), is_cut(outcome, emitted)
        label = f"Round {round_index}, position {position}: {spoken(raw)}, {outcome}{', not emitted' if cut else ''}"
        tokens.append(
            {
                "text": visible(raw),
                "outcome": outcome,
                "emitted": bool(emitted),
                "round": int(round_index),
                "position": int(position),
                "label": label,
            }
        )
    return tokens


def sequence_name(entry: dict[str, Any]) -> str:
    """A sequence by its prompt's id and bucket. Not escaped for HTML."""
    return f"{entry['id']} · {entry['bucket']}" if entry.get("bucket") else str(entry["id"])


def sequence_title(trace: Trace, sequence: int) -> str:
    """A line above the tokens of a sequence: its name, how long it is and why it ended. Not escaped for HTML."""
    entry = trace.sequences[sequence]
    why = STOP_REASONS.get(entry["stop_reason"], "not ended")
    return caption(trace, f"{sequence_name(entry)}: {len(entry['token_ids'])} tokens, {why}")


def caption(trace: Trace, title: str) -> str:
    """A line above tokens of the trace: the title and, where its rule is lossy, that. Not escaped for HTML."""
    note = lossy_sentence(trace.manifest["rule"])
    return f"{title}. {note}" if title and note else title or note


def is_cut(outcome: str, emitted: bool) -> bool:
    """Whether the rule kept a token that the end of the sequence cut off."""
    return not emitted and outcome not in ("rejected", "discarded")


def distribution_table(trace: Trace, row: pd.Series, top: int = 12) -> pd.DataFrame | None:
    """p, q, overlap and residual at a token's position, for `plots.distribution`; None without distributions.

    row: a row of `trace.positions`. The `top` tokens by max(p, q), the token itself and the others of its position
    stand alone, by falling p; the last row holds all others, so that p and q sum to 1. Its overlap and residual are
    what the recorded scalars, which were computed from whole rows, leave over.
    """
    found = trace.distribution_of(row)
    if found is None:
        return None
    marks = _marks(trace, row)
    proposed = found.q is not None
    q = found.q if proposed else np.full(len(found.p), np.nan)
    height = np.fmax(found.p, q)
    keep = np.zeros(len(height), dtype=bool)
    keep[np.argsort(-height, kind="stable")[:top]] = True
    keep |= np.isin(found.tokens, list(marks))
    keep &= (height > 0) | np.isin(found.tokens, list(marks))
    p, q, tokens = found.p[keep], q[keep], found.tokens[keep]
    table = pd.DataFrame(
        {
            "label": [visible(trace.token_text(token)) for token in tokens],
            "p": p,
            "q": q,
            "overlap": np.minimum(p, q),
            "residual": np.maximum(p - q, 0.0),
            "mark": [marks.get(int(token), "") for token in tokens],
        }
    ).sort_values("p", ascending=False, kind="stable")
    return pd.concat([table, _other(table, row, proposed)], ignore_index=True)


def _marks(trace: Trace, row: pd.Series) -> dict[int, str]:
    """{token id: outcome} of the tokens that continue the same one; the selected one last, so that it wins."""
    together = trace.round_positions(int(row["sequence"]), int(row["round"]))
    together = together[together["parent"] == row["parent"]]
    marks = dict(zip(together["token"].astype(int), together["outcome"], strict=True))
    return marks | {int(row["token"]): row["outcome"]}


def _other(table: pd.DataFrame, row: pd.Series, proposed: bool) -> pd.DataFrame:
    """The row of all tokens that have no bar of their own."""

    def rest(total: float, column: str) -> float:
        return max(0.0, float(total) - float(table[column].sum()))

    return pd.DataFrame(
        {
            "label": ["all others"],
            "p": [rest(1.0, "p")],
            "q": [rest(1.0, "q") if proposed else np.nan],
            "overlap": [rest(row["overlap"], "overlap") if proposed else np.nan],
            "residual": [rest(row["residual_mass"], "residual") if proposed else np.nan],
            "mark": [""],
        }
    )
