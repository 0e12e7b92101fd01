"""Traces made by hand: every accepted length and every millisecond is chosen.

plain = made({"one": [plain_round()] * 12})
trace = made({"one": [round_of(accepted=2), round_of(accepted=0, propose=3.0)]}, gamma=3)
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from specworkbench.trace import Trace, schema


def round_of(accepted=0, proposed=3, *, gamma=3, shortened="", cut=0, propose=0.0, target=10.0, rollback=0.0, loop=0.0):
    """A round of a chain; cut: tokens that EOS takes off its end; ms by phase."""
    return {
        "gamma": gamma, "asked": proposed if shortened else gamma, "shortened": shortened, "proposed": proposed,
        "examined": min(accepted + 1, proposed), "accepted": accepted, "verdict_length": accepted + 1,
        "emitted": accepted + 1 - cut, "ms_propose": propose, "ms_verify": 0.75 * target, "ms_accept": 0.25 * target,
        "ms_rollback": rollback, "ms_total": propose + target + rollback + loop, "target_positions": proposed + 1,
    }  # fmt: skip


def plain_round(**ms):
    return round_of(0, 0, **ms)


def made(prompts, *, proposer="draft_model", between=0.0, prefill=0.0, draft_prefill=0.0, cost_set=None, tree=False):
    """A trace of one sequence a prompt; prompts: {id: rounds}; between and both prefills: ms a sequence."""
    rows, sequences = [], []
    for index, (name, rounds) in enumerate(prompts.items()):
        rows += [{"sequence": index, "round": number, **row} for number, row in enumerate(rounds)]
        spent = sum(row["ms_total"] for row in rounds) + between + prefill + draft_prefill
        sequences.append(
            {
                "id": name, "bucket": "code", "token_ids": [0] * sum(row["emitted"] for row in rounds),
                "ms_prefill": prefill, "ms_draft_prefill": draft_prefill, "ms_total": spent,
            }
        )  # fmt: skip
    rounds = pd.DataFrame(rows).reindex(columns=schema.names("rounds"), fill_value=0)
    described = {"name": proposer, "settings": {}, "draft": None}
    if cost_set is not None:
        described["cost_set"] = cost_set
    manifest = {
        "target": "made", "device": "cpu", "sampling": {"temperature": 1.0}, "proposer": described, "capture": "none",
        "gamma": int(rounds["gamma"].max()), "max_new_tokens": 99, "sequences": sequences, "vocabulary": {},
    }  # fmt: skip
    return Trace(manifest, schema.conform("rounds", rounds), _positions(tree))


def _positions(tree):
    """Nothing but, for a tree, two guesses that continue the context."""
    if not tree:
        return schema.empty("positions")
    positions = pd.DataFrame(index=range(2), columns=schema.names("positions")).assign(
        sequence=0, round=0, node=[0, 1], parent=-1, position=1, depth=1, token=0, outcome="accepted", emitted=True
    )
    return positions.fillna({name: np.nan for name in ("p", "q", "u")})


def plain_of(tokens=12, prompts=("one",), **more):
    """Plain decoding of so many tokens a prompt; ms by phase and by sequence as in `round_of` and `made`."""
    ms = {name: more.pop(name) for name in ("propose", "target", "rollback", "loop") if name in more}
    return made({name: [plain_round(**ms)] * tokens for name in prompts}, proposer="none", **more)
