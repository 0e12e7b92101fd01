"""Evidence made up so that it is known what is true of it."""

import numpy as np
import pandas as pd

from specworkbench.experiments.claims.evidence import CELL_AXES, PLACE_TOKENS, Evidence

BUCKETS = ("code", "prose", "structured")
AXES = {
    "target": "toy", "dtype": "default", "quantisation": "none", "engine": "eager", "proposer": "ngram", "gamma": 4,
    "controller": "constant", "rule": "default", "temperature": 0.0, "top_p": 1.0, "top_k": 0, "prompt_length": 0,
    "max_new_tokens": 64, "batch": 1, "seed": 0,
}  # fmt: skip
FIGURES = {
    "alpha": 0.6, "late": 0.0, "speedup": 1.2, "tokens_per_round": 2.0, "plain_ms": 1.0, "repeated": 0.0,
    "size": np.nan, "noise": 0.01,
}  # fmt: skip
"""Of a cell: alpha (or {bucket: alpha}), by how much it is higher at the end of the output, speedup, tokens a round, ms
of a plain token, share of repeated tokens, draft over target; noise: relative, from prompt to prompt."""
ROUNDS, EXAMINED = 50, 100


def evidence(*cells: dict, per_bucket: int = 8) -> Evidence:
    """Evidence of cells, each given by what differs from `AXES` and `FIGURES`."""
    parts = [_cell(number, AXES | FIGURES | cell, per_bucket) for number, cell in enumerate(cells)]
    prompts, places = (pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))
    return Evidence(prompts[["cell", *CELL_AXES]].drop_duplicates(), prompts, places)


def _cell(number: int, cell: dict, per_bucket: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(number)
    axes = {name: cell[name] for name in CELL_AXES} | {"cell": f"cell-{number}"}
    rows, places = [], []
    for bucket in BUCKETS:
        alpha = cell["alpha"][bucket] if isinstance(cell["alpha"], dict) else cell["alpha"]
        for index in range(per_bucket):
            shaken = np.exp(cell["noise"] * rng.standard_normal(3) - cell["noise"] ** 2 / 2)
            prompt = {"prompt": f"{bucket}-{index}", "bucket": bucket}
            tokens = ROUNDS * cell["tokens_per_round"]
            plain_ms = tokens * cell["plain_ms"]
            ms = plain_ms / cell["speedup"] * shaken[0]
            own = min(1.0, alpha * shaken[1])
            rows.append(axes | prompt | {
                "examined": EXAMINED, "accepted": own * EXAMINED, "overlap": own * EXAMINED, "rounds": ROUNDS,
                "tokens": tokens, "ms": ms, "ms_rounds": ms, "plain_tokens": tokens, "plain_ms": plain_ms,
                "plain_ms_rounds": plain_ms, "repeated": cell["repeated"] * tokens, "parameters": 1000.0,
                "draft_parameters": cell["size"] * 1000.0,
            })  # fmt: skip
            for place in range(0, cell["max_new_tokens"], PLACE_TOKENS):
                here = own + cell["late"] * shaken[2] * place / cell["max_new_tokens"]
                places.append(axes | prompt | {"place": place, "examined": 10, "accepted": 0, "overlap": 10 * here})
    return pd.DataFrame(rows), pd.DataFrame(places)
