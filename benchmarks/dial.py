"""The formulas held against real decoding whose acceptance is set: the proposer `dial` over alpha x gamma.

    python -m benchmarks.dial
    python -m benchmarks.dial --per-bucket 12 --json dial.json

For every cell: does E[N] = (1 - alpha^(gamma + 1)) / (1 - alpha) lie in the 95 % interval of the measured block
efficiency; over all cells, a chi-square of the verdict lengths' means. And is the measured speedup (a ratio of totals
over the rounds that no budget shortened) within 5 % of the cost-aware prediction, E[N] (1 + o) / (gamma c +
v(gamma + 1) + o'), with the costs of the same runs? o and o' are what a plain and a speculative round take beside; a
cost is a mean of the middle nine tenths. The dial reads the target ahead, so that its c is about 1 and every speedup
below: the formula must say so. Every prompt is decoded plainly and by the dial in turn; each cell has a seed of its
own, as cells that share uniforms would move together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import stats
from tqdm import tqdm

from benchmarks.common import start
from specworkbench import analysis, theory
from specworkbench.analysis.dependence import whole_rounds
from specworkbench.analysis.predictions import typical
from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, load_model, make_proposer
from specworkbench.experiments.environment import environment_of
from specworkbench.experiments.files import to_json, write_whole
from specworkbench.trace import Trace
from specworkbench.workloads import Prompt, load_prompts

ALPHAS, GAMMAS = (0.3, 0.5, 0.7, 0.9), (1, 2, 4, 8)
NEAR = 0.05
"""How far from the prediction a measured speedup may be, as a share of it."""


def decoded(
    target: LanguageModel, prompts: list[Prompt], alpha: float, gamma: int, tokens: int, seed: int
) -> list[Trace]:
    """The plain trace and the dial's, prompt by prompt in turn; the first prompt warms both up."""
    settings = DecodeSettings(gamma=gamma, max_new_tokens=tokens, ignore_eos=True)
    dial = make_proposer("dial", target=target, alpha=alpha)

    def pair() -> list[Decoder]:
        return [Decoder(target, settings=settings, seed=seed), Decoder(target, dial, settings=settings, seed=seed)]

    for decoder in pair():
        decoder.run(prompts[0].text)
    both = pair()
    for turn, prompt in enumerate(prompts):
        for decoder in both if turn % 2 else both[::-1]:
            decoder.run(prompt.text, id=prompt.id, bucket=prompt.bucket)
    return [decoder.trace() for decoder in both]


def cell(plain: Trace, dialled: Trace, alpha: float, gamma: int) -> dict[str, Any]:
    """What theory expects and what was measured; z: of the mean verdict length under independence with this alpha."""
    expected, measured = theory.expected_tokens(alpha, gamma), analysis.block_efficiency(dialled)
    lengths = np.arange(1, gamma + 2)
    weights = np.append(alpha ** (lengths[:-1] - 1) * (1 - alpha), alpha**gamma)
    spread = np.sqrt((weights * lengths**2).sum() - expected**2)
    step = typical(plain.rounds["ms_verify"] + plain.rounds["ms_accept"])
    found, loop = costs_of(whole_rounds(dialled), gamma, step), typical(plain.rounds["ms_total"]) / step
    predicted = loop * theory.speedup(alpha, gamma, found["c"], verify_cost=found["v"], overhead=found["o"])
    speedup = rate(dialled) / rate(plain)
    return {
        "alpha": alpha, "gamma": gamma, "expected": expected, "measured": measured.value, "low": measured.low,
        "high": measured.high, "rounds": measured.n, "inside": bool(measured.low <= expected <= measured.high),
        "z": (measured.value - expected) / (spread / np.sqrt(measured.n)), **found, "predicted": predicted,
        "speedup": speedup, "near": bool(abs(speedup / predicted - 1) <= NEAR),
    }  # fmt: skip


def costs_of(rounds: pd.DataFrame, gamma: int, step: float) -> dict[str, float]:
    """c, v(gamma + 1) and o' of these rounds, in target steps of `step` ms. The dial's own time counts, not the cost
    that can be set for it."""
    target = rounds["ms_verify"] + rounds["ms_accept"]
    rest = rounds["ms_total"] - target - rounds["ms_propose"]
    parts = {"c": rounds["ms_propose"] / gamma, "v": target, "o": rest}
    return {name: typical(part) / step for name, part in parts.items()}


def rate(trace: Trace) -> float:
    """Tokens per ms of the rounds that no budget shortened."""
    rounds = whole_rounds(trace)
    return rounds["verdict_length"].sum() / rounds["ms_total"].sum()


def show(cells: list[dict[str, Any]], console: Console) -> None:
    """A line a cell, and the sums."""
    table = Table("alpha", "gamma", "E[N]", "measured", "95 %", "rounds", "", "c", "v", "predicted", "measured", "off")
    for found in cells:
        table.add_row(
            f"{found['alpha']:g}", str(found["gamma"]), f"{found['expected']:.3f}", f"{found['measured']:.3f}",
            f"{found['low']:.3f}–{found['high']:.3f}", str(found["rounds"]), "inside" if found["inside"] else "outside",
            f"{found['c']:.2f}", f"{found['v']:.2f}", f"{found['predicted']:.3f}", f"{found['speedup']:.3f}",
            f"{100 * (found['speedup'] / found['predicted'] - 1):+.1f} %",
        )  # fmt: skip
    console.print(table)
    chi, count = sum(found["z"] ** 2 for found in cells), len(cells)
    inside, near = (sum(found[name] for found in cells) for name in ("inside", "near"))
    console.print(
        f"E[N] inside in {inside} of {count} cells; joint chi-square {chi:.1f} on {count} degrees of freedom, "
        f"p = {stats.chi2.sf(chi, count):.3g}; speedup within {NEAR:.0%} in {near} of {count}"
    )


def main() -> None:
    """Decode every cell and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="embedded", help="name of the target")
    parser.add_argument("--engine", default="eager", choices=("eager", "compiled"))
    parser.add_argument("--per-bucket", type=int, default=12, help="prompts of each bucket")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="also write the figures to this file")
    given = parser.parse_args()
    target, prompts = load_model(given.target, engine=given.engine), load_prompts(per_bucket=given.per_bucket)
    cells = []
    grid = [(alpha, gamma) for alpha in ALPHAS for gamma in GAMMAS]
    for number, (alpha, gamma) in enumerate(tqdm(grid, unit="cell", dynamic_ncols=True)):
        seed = given.seed + number
        cells.append(cell(*decoded(target, prompts, alpha, gamma, given.max_new_tokens, seed), alpha, gamma))
    console, environment = Console(highlight=False, width=140), environment_of(target)
    show(cells, console)
    console.print(", ".join(f"{name} {value}" for name, value in environment.items()))
    if given.json:
        write_whole(Path(given.json), to_json({"environment": environment, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    start(main)
