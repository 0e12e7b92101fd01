"""The columns of a trace's tables, of many rounds at once, from what was decided and what was measured.

A round's rows of `positions` are its nodes and then the token it drew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from specworkbench.engine.contracts import Decision
from specworkbench.engine.round import Round
from specworkbench.engine.trees import depths_of
from specworkbench.trace.builder import objects
from specworkbench.trace.schema import OUTCOMES

Columns = dict[str, Any]
Numbers = dict[str, np.ndarray]
ACCEPTED, REJECTED, DISCARDED, CORRECTED, BONUS, PLAIN = range(len(OUTCOMES))


class Noted(NamedTuple):
    """What is kept of a round beside its numbers: of the table `rounds` what nothing else tells; its times by phase;
    what was decided; whether its guesses were sampled, not certain; how many rows were measured.
    """

    sequence: int
    round: int
    context_length: int
    gamma: int
    asked: int
    shortened: str
    draft_forwards: int
    draft_positions: int
    target_cache_tokens: int
    target_cache_bytes: int
    draft_cache_bytes: int
    times: dict[str, float]
    decision: Decision
    sampled: bool
    rows: int

    @classmethod
    def of(cls, step: Round, whole: bool) -> Noted:
        """whole: the row after the last node is measured even where the round drew no token from it."""
        proposal, last = step.proposal, whole or step.decision.displaced is None
        return cls(
            step.sequence, step.index, step.context_length, step.gamma, step.asked, step.shortened, proposal.forwards,
            proposal.positions, step.target_cache_tokens, step.target_cache_bytes, step.draft_cache_bytes, step.times,
            step.decision, proposal.probs is not None, proposal.size + last,
        )  # fmt: skip


def tables(noted: list[Noted], numbers: Numbers) -> tuple[Columns, Columns, Columns | None, Numbers | None]:
    """The columns of `rounds`, `positions` and, where rows were captured, `distributions`; the full rows, if captured.

    numbers: all that `engine.measuring` gave for these rounds, and what was compared and drawn with.
    """
    notes = dict(zip(Noted._fields, zip(*noted, strict=True), strict=True))
    decisions, times = notes.pop("decision"), notes.pop("times")
    layout, sampled = Layout(decisions, np.array(notes.pop("rows"))), np.array(notes.pop("sampled"))
    rounds = {name: np.array(values) for name, values in notes.items()} | {
        "proposed": layout.proposed,
        "examined": layout.accepted + np.bincount(layout.of[layout.refused], minlength=len(noted)),
        "accepted": layout.accepted,
        "verdict_length": layout.accepted + 1,
        "emitted": np.array([decision.emitted for decision in decisions]),
        "target_positions": layout.proposed + 1,
        **{f"ms_{phase}": np.array([of_round[phase] for of_round in times]) for phase in times[0]},
    }
    positions = _positions(layout, rounds, decisions) | _of_rows(layout, numbers) | _uniforms(layout, sampled, numbers)
    if "top_tokens" in numbers:
        return rounds, positions, _keys(layout, positions) | _top_lists(layout, numbers), None
    if "rows_p" in numbers:
        numbers["rows_q"][layout.drawn] = np.nan
        rows = {"target": numbers["rows_p"], "draft": numbers["rows_q"]}
        return rounds, positions, _keys(layout, positions) | {"row": np.arange(len(layout.of))}, rows
    return rounds, positions, None, None


class Layout:
    """Where the tokens of some rounds stand in the table, where their rows were measured, and what became of them.

    proposed, accepted, displaced, is_tree: (rounds,), displaced -1 where no guess was. Of (positions,): of, the round
    of each; drawn; node (of the drawn token, the number proposed), parent, depth; kept, refused; row, in the stack.
    """

    def __init__(self, decisions: list[Decision], rows: np.ndarray):
        self.proposed = np.array([len(decision.proposed) for decision in decisions])
        self.accepted = np.array([decision.accepted for decision in decisions])
        self.displaced = np.array([-1 if (node := decision.displaced) is None else node for decision in decisions])
        self.is_tree = np.array([decision.parents is not None for decision in decisions])
        self.starts = np.cumsum(self.proposed + 1) - (self.proposed + 1)
        self.of = np.repeat(np.arange(len(decisions)), self.proposed + 1)
        self.node = np.arange(len(self.of)) - self.starts[self.of]
        self.drawn = self.node == self.proposed[self.of]
        self.row = (np.cumsum(rows) - rows)[self.of] + self.node
        self.row[self.drawn] += np.where(self.displaced < 0, 0, self.displaced - self.proposed)
        accepted = self.accepted[self.of]
        self.depth = np.where(self.drawn, accepted, self.node) + 1
        self.parent = self.depth - 2
        self.kept = ~self.drawn & (self.node < accepted)
        self.refused = ~self.drawn & (self.node == accepted)
        for number in np.flatnonzero(self.is_tree):
            self._place_tree(self.starts[number], decisions[number])

    def _place_tree(self, start: int, decision: Decision) -> None:
        end = start + len(decision.parents)
        self.parent[start : end + 1] = [*decision.parents, decision.last]
        self.depth[start:end] = depths_of(decision.parents)
        self.kept[start:end] = self.refused[start:end] = False
        self.kept[start + np.array(decision.path, dtype=int)] = True
        self.refused[start + np.array(decision.refused, dtype=int)] = True


def _positions(layout: Layout, rounds: Columns, decisions: list[Decision]) -> Columns:
    """What was proposed, drawn and decided."""
    of, drawn = layout.of, layout.drawn
    emitted = (layout.kept | drawn) & (layout.depth <= rounds["emitted"][of])
    index = _output_starts(rounds["sequence"], rounds["emitted"])[of] + layout.depth - 1
    outcome = np.where(layout.kept, ACCEPTED, np.where(layout.refused, REJECTED, DISCARDED))
    outcome[drawn] = np.where(layout.proposed == 0, PLAIN, np.where(layout.displaced < 0, BONUS, CORRECTED))
    return {
        "sequence": rounds["sequence"][of],
        "round": rounds["round"][of],
        "position": layout.depth,
        "node": np.where(drawn, -1, layout.node),
        "parent": layout.parent,
        "depth": layout.depth,
        "token": np.array([token for step in decisions for token in (*step.proposed, step.next_token)]),
        "outcome": np.array(OUTCOMES, dtype=object)[outcome],
        "emitted": emitted,
        "output_index": np.where(emitted, index, np.nan),
    }


def _output_starts(sequence: np.ndarray, emitted: np.ndarray) -> np.ndarray:
    """(rounds,) how many tokens of its sequence were out before each round."""
    order = np.argsort(sequence, kind="stable")
    before = np.cumsum(emitted[order]) - emitted[order]
    starts = np.empty_like(before)
    starts[order] = before - before[np.searchsorted(sequence[order], sequence[order])]
    return starts


def _of_rows(layout: Layout, numbers: Numbers) -> Columns:
    """What was measured. Sums of minima and of positive parts follow from sum |p - q| and the rows' own sums."""
    at, nodes = layout.row, ~layout.drawn
    total_p, total_q, distance = (numbers[name][at] for name in ("total_p", "total_q", "distance"))
    overweight_p, excess = numbers["overweight_p"][at], total_p - total_q
    looked_up = {}
    for name in ("prob_p", "prob_q", "above_p", "above_q"):
        looked_up[name] = numbers[name][at]
        looked_up[name][layout.drawn] = numbers[f"also_{name}"][at[layout.drawn]]
    from_both = {
        "q": looked_up["prob_q"],
        "overlap": (total_p + total_q - distance) / 2,
        "tv": distance / 2,
        "residual_mass": (distance + excess) / 2,
        "entropy_q": numbers["entropy_q"][at],
        "rank_q": looked_up["above_q"] + 1,
        "overweight_p": overweight_p,
        "overweight_q": overweight_p + (distance - excess) / 2,
        "in_overweight": looked_up["prob_q"] > looked_up["prob_p"],
    }
    has_row = nodes | (layout.displaced >= 0)[layout.of]
    columns = {"p": looked_up["prob_p"], "entropy_p": numbers["entropy_p"][at], "rank_p": looked_up["above_p"] + 1}
    return columns | {name: np.where(has_row, values, np.nan) for name, values in from_both.items()}


def _uniforms(layout: Layout, sampled: np.ndarray, numbers: Numbers) -> Columns:
    """What was compared and drawn with."""
    nodes = ~layout.drawn
    columns = {name: np.full(len(layout.of), np.nan) for name in ("accept_prob", "u", "u_draw")}
    columns["accept_prob"][nodes], columns["u"][nodes] = numbers["accept_prob"], numbers["u"]
    columns["u_draw"][nodes & sampled[layout.of]] = numbers["u_guess"]
    after = np.where(layout.displaced < 0, layout.proposed, layout.parent[layout.drawn] + 1)
    columns["u_draw"][layout.drawn] = numbers["u_drawn"][layout.starts + after]
    return columns


def _keys(layout: Layout, positions: Columns) -> Columns:
    """What names the rows of `distributions`: a node's, and that after the last one (of a tree, the last kept)."""
    ends = np.where(layout.is_tree, layout.accepted, layout.proposed) + 1
    keys = {name: positions[name] for name in ("sequence", "round", "node")}
    return keys | {"position": np.where(layout.drawn, ends[layout.of], layout.depth)}


def _top_lists(layout: Layout, numbers: Numbers) -> Columns:
    """tokens, p and q of `distributions`, each a list a row: a token once, by falling p, then by id."""
    tokens, p, q = numbers["top_tokens"].astype(np.int32), numbers["top_p"], numbers["top_q"]
    order = np.argsort(tokens, axis=1, kind="stable")
    by_id = np.take_along_axis(tokens, order, 1)
    repeated = np.zeros(tokens.shape, dtype=bool)
    repeated[:, 1:] = by_id[:, 1:] == by_id[:, :-1]
    falling = np.where(repeated, np.inf, -np.take_along_axis(p, order, 1))
    order = np.take_along_axis(order, np.argsort(falling, axis=1, kind="stable"), 1)
    widths = tokens.shape[1] - repeated.sum(axis=1)
    listed = np.arange(tokens.shape[1]) < widths[:, None]
    ends = np.cumsum(widths)
    columns = {}
    for name, values in (("tokens", tokens), ("p", p), ("q", q)):
        flat = np.take_along_axis(values, order, 1)[listed]
        columns[name] = objects([flat[start:end] for start, end in zip(ends - widths, ends, strict=True)])
    columns["q"][layout.drawn] = None
    return columns
