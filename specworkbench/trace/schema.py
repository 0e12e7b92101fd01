"""The columns of a trace: what every number means, in which unit, and when it is null.

A trace is a manifest and two flat tables, `rounds` (one row a round) and `positions` (one row a token that
was proposed or drawn), and, when it was asked for, `distributions` (one row a position of a round). A `sequence`
column is in all of them, so that many prompts share one trace.

Missing numbers are null (NaN in a float column, <NA> in a nullable integer column), never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

SCHEMA_VERSION = 2
"""2 has the column `node` in `distributions`; a trace of version 1 is read as if it had it (see `with_nodes`)."""

OUTCOMES = ("accepted", "rejected", "discarded", "corrected", "bonus", "plain")
"""What became of a token; design terms. The first three were proposed, the last three drawn by the rule."""

PROPOSED = ("accepted", "rejected", "discarded")
DRAWN = ("corrected", "bonus", "plain")
EXAMINED = ("accepted", "rejected")

RULES_OF_CHAINS = ("token", "greedy", "block", "lenient", "ensemble", "typical")
"""Rules whose proposals are chains: of the tokens they examine, at most one is rejected."""

RULES_OF_BLOCKS = ("block",)
"""Rules under which the last guess with u < accept_prob decides: those before it are accepted whatever their own u."""

FIRST_CHOICE = ("greedy", "typical")
"""Rules that draw nothing: the token after the accepted ones is the most probable one of the target's row."""

RESIDUALS = ("token", "tree", "block", "lenient", "ensemble")
"""Rules whose corrected token comes from what p has more than q."""

STOP_REASONS = {
    "eos": "ended by itself (EOS)",
    "stop_string": "ended by a stop string",
    "length": "stopped by length",
    "context": "stopped by the end of the context",
    "stopped": "stopped on request",
}
"""Why a sequence ended, and that in words; "stopped" where whoever watched the rounds asked for it (a stop button, an
interrupt)."""
SHORTENED = ("", "budget", "context", "draft_context")
"""Why a round asked for fewer than gamma tokens: the remaining budget of new tokens, the end of the target's
context, the end of the draft's; empty where it did not. A proposer that found no guess is not shortened."""

CAPTURES = ("none", "top-k", "full")


@dataclass(frozen=True)
class Column:
    """One column: its name, pandas dtype, and what it holds (unit and when null)."""

    name: str
    dtype: str
    meaning: str


ROUNDS = (
    Column("sequence", "int32", "index into manifest['sequences']"),
    Column("round", "int32", "0, 1, ... within the sequence"),
    Column("context_length", "int32", "tokens of prompt and output before the round"),
    Column("gamma", "int16", "tokens proposed per round that the settings (or a controller) wanted; a tree's depth"),
    Column("asked", "int16", "tokens (in a tree, depth) the proposer was asked for, at most gamma"),
    Column("shortened", "str", "why asked < gamma or the draft stopped short: one of SHORTENED"),
    Column("proposed", "int16", "tokens it proposed (nodes, in a tree)"),
    Column("examined", "int16", "accepted + rejected"),
    Column("accepted", "int16", "accepted length the rule decided on, before EOS or a limit"),
    Column("verdict_length", "int16", "N = accepted + 1"),
    Column("emitted", "int16", "tokens of the round that reached the output"),
    Column("ms_propose", "float64", "ms in the proposer, its own forwards included"),
    Column("ms_verify", "float64", "ms in the target's forward and the processing of its rows"),
    Column("ms_accept", "float64", "ms in the rule, with the one synchronisation"),
    Column("ms_rollback", "float64", "ms to commit the tokens and roll back both caches"),
    Column("ms_total", "float64", "ms from the round's start to its end; at least the sum of the phases"),
    Column("target_positions", "int32", "rows of the round's one target forward: proposed + 1"),
    Column("draft_forwards", "int16", "forwards of the draft model in this round"),
    Column("draft_positions", "int32", "rows over those forwards"),
    Column("target_cache_tokens", "int32", "tokens in the target's cache after the round"),
    Column("target_cache_bytes", "int64", "bytes of the target's cache after the round"),
    Column("draft_cache_bytes", "int64", "bytes of the proposer's cache after the round, 0 without one"),
)

POSITIONS = (
    Column("sequence", "int32", "index into manifest['sequences']"),
    Column("round", "int32", "the round in the sequence"),
    Column(
        "position",
        "int16",
        "1..n of the proposed (depth, in a tree), n + 1 of the bonus; the corrected token's is the rejected's",
    ),
    Column("node", "int16", "0..n-1 in the order proposed; -1 for the token the rule drew"),
    Column("parent", "int16", "node this one continues, -1 for the context itself; siblings are tried in node order"),
    Column("depth", "int16", "distance from the context: equal to position in a chain"),
    Column("token", "int32", "token id"),
    Column("outcome", "str", "one of OUTCOMES"),
    Column("emitted", "bool", "false for what EOS, a stop string or a limit cut off, and for what was not accepted"),
    Column("output_index", "Int32", "index of the token in the sequence's output; null where not emitted"),
    Column("p", "float64", "target probability of the token in its row, after processing"),
    Column(
        "q",
        "float64",
        "draft probability of the token in its row (a corrected token's is that of the guess refused "
        "there, the first of several); null where no row was proposed (bonus, plain)",
    ),
    Column(
        "accept_prob",
        "float64",
        "probability with which the rule accepts this position given those before (in a "
        "tree: its parent kept, its earlier siblings refused); null for drawn tokens",
    ),
    Column(
        "u",
        "float64",
        "uniform it was compared with, accepted iff u < accept_prob (under the block rule accepted up to the last "
        "position with u < accept_prob); null for drawn tokens",
    ),
    Column("u_draw", "float64", "uniform it was drawn with (draft, residual or bonus stream); null if not random"),
    Column("overlap", "float64", "sum_x min(p, q) of the position's rows; null where no row was proposed"),
    Column("tv", "float64", "total variation 1/2 sum_x |p - q|; null where no row was proposed"),
    Column("residual_mass", "float64", "sum_x max(p - q, 0); null where no row was proposed"),
    Column("entropy_p", "float64", "entropy of the target's row, nats"),
    Column("entropy_q", "float64", "entropy of the draft's row, nats; null where no row was proposed"),
    Column("rank_p", "int32", "1 + number of tokens more probable than this one in the target's row"),
    Column("rank_q", "Int32", "the same in the draft's row; null where no row was proposed"),
    Column("overweight_p", "float64", "p(A) of the draft-overweight set A = {x: q(x) > p(x)}; null without draft row"),
    Column("overweight_q", "float64", "q(A); null without a draft row"),
    Column("in_overweight", "boolean", "whether this row's token lies in A; null without a draft row"),
)

DISTRIBUTIONS = (
    Column("sequence", "int32", "index into manifest['sequences']"),
    Column("round", "int32", "the round in the sequence"),
    Column("position", "int16", "that of the node; of the last row n + 1, in a tree the drawn token's"),
    Column(
        "node",
        "int16",
        "the node whose row of q and parent's row of p these are (a corrected token is in that of the "
        "first guess refused there); -1 for the last row, p after the last node (in a tree: the last kept one)",
    ),
    Column("tokens", "object", "int32 list: both top-k sets and the drawn tokens, by falling p (capture 'top-k')"),
    Column("p", "object", "float64 list, target probability of each"),
    Column("q", "object", "float64 list, draft probability of each; null where no row was proposed"),
    Column("row", "Int32", "index into the full rows (capture 'full'); null otherwise"),
)

TABLES = {"rounds": ROUNDS, "positions": POSITIONS, "distributions": DISTRIBUTIONS}


def names(table: str) -> list[str]:
    """Column names of a table, in order."""
    return [column.name for column in TABLES[table]]


def with_nodes(distributions: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """The table `distributions` with its column `node`, which chains can do without: node j - 1 at position j."""
    if "node" in distributions.columns:
        return distributions
    keys = ["sequence", "round"]
    proposed = distributions[keys].merge(rounds[[*keys, "proposed"]], on=keys, how="left")["proposed"].to_numpy()
    position = distributions["position"].to_numpy()
    return distributions.assign(node=np.where(position > proposed, -1, position - 1))


def conform(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the schema's columns in the schema's order and dtypes.

    Raises `KeyError` naming the columns the frame lacks.
    """
    missing = [name for name in names(table) if name not in frame.columns]
    if missing:
        raise KeyError(f"table {table!r} lacks the columns {', '.join(missing)}")
    return frame[names(table)].astype({column.name: column.dtype for column in TABLES[table]})


def empty(table: str) -> pd.DataFrame:
    """A table without rows, with the schema's dtypes."""
    return conform(table, pd.DataFrame({name: [] for name in names(table)}))
