"""Claims about which proposer and which gamma are the fastest.

Every cell has its own plain decoding, interleaved; speeds of two cells are compared as ratios of their speedups, so
that the machine's drift between them cancels.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from specworkbench.experiments.claims.claim import LEAST_PROMPTS, Measured
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Figure, Sample
from specworkbench.experiments.claims.settings import (
    ALPHA_MARGIN,
    RETRIEVAL,
    Cell,
    kind,
    setting,
    short,
    surely_above,
)

BEST_GAMMAS = (3, 4, 5)
BEST_SIZES = (1 / 20, 1 / 10)
REPETITIVE = 0.5
"""Text is repetitive where an n-gram look-up would have known at least this share of it."""


def break_even(proposers: Evidence) -> Measured:
    """Tokens a round that would break even: time of a round over time of a plain token."""
    sample = Sample(proposers)
    figures = {setting(cell): sample.round_cost(cell) for cell in sample.cells}
    tokens = {setting(cell): float(sample.tokens_per_round(cell)[0]) for cell in sample.cells}
    lose = sum(tokens[name] > 2 and tokens[name] < figure[0] for name, figure in figures.items())
    win = sum(tokens[name] < 2 and tokens[name] > figure[0] for name, figure in figures.items())
    remark = f"Slower than plain decoding with more than 2 tokens a round: {lose}; faster with fewer: {win}."
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark)


def gamma_three_to_five(gamma: Evidence) -> Measured:
    """Speed of the best gamma of 3 to 5 over that of the best other one."""
    sample, figures, best = Sample(gamma), {}, []
    for _, cells in sample.groups("proposer", "temperature"):
        inside = [sample.speedup(cell) for cell in cells if cell["gamma"] in BEST_GAMMAS]
        outside = [sample.speedup(cell) for cell in cells if cell["gamma"] not in BEST_GAMMAS]
        if inside and outside:
            figures[setting(cells[0])] = np.max(inside, axis=0) / np.max(outside, axis=0)
            fastest = max(cells, key=lambda cell: sample.speedup(cell)[0])
            best.append(f"{fastest['gamma']} ({setting(fastest)})")
    remark = f"Fastest in this run: gamma {', '.join(best)}." if best else ""
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark)


def draft_size(proposers: Evidence) -> Measured:
    """Speed of the best draft of 1/20 to 1/10 of the target over that of each draft of another size."""
    sample, figures, trained = Sample(proposers), {}, set()
    for (temperature,), cells in sample.groups("temperature"):
        drafts = [cell for cell in cells if kind(cell) in ("draft_model", "layer_skip")]
        inside = [cell for cell in drafts if BEST_SIZES[0] <= sample.size(cell) <= BEST_SIZES[1]]
        if not inside:
            continue
        best = np.max([sample.speedup(cell) for cell in inside], axis=0)
        for cell in drafts:
            size = sample.size(cell)
            if cell not in inside:
                words = f"{short(inside[0])} against {short(cell)} (1/{1 / size:.3g}), T {temperature:g}"
                figures[words] = best / sample.speedup(cell)
                trained |= {size > BEST_SIZES[1]} if kind(cell) == "draft_model" else set()
    bar = "" if len(trained) == 2 else "Models trained as drafts do not stand on both sides of that range."
    remark = "" if figures else "No draft has 1/20 to 1/10 of the target's parameters."
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark, bar)


def stronger_and_slower(proposers: Evidence) -> Measured:
    """Speed of a draft over that of another of its kind that surely accepts less."""
    sample, figures = Sample(proposers), {}
    for (temperature,), cells in sample.groups("temperature"):
        for group in (("draft_model", "layer_skip"), ("eagle", "medusa", "mtp")):
            for pair in combinations([cell for cell in cells if kind(cell) in group], 2):
                weaker, stronger = sorted(pair, key=lambda cell: sample.alpha(cell)[0])
                if surely_above(sample.alpha(stronger) - sample.alpha(weaker), ALPHA_MARGIN):
                    figures[f"{short(stronger)} against {short(weaker)}, T {temperature:g}"] = _ratio(
                        sample, stronger, weaker
                    )
    remark = "" if figures else "No draft surely accepts more than another."
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark)


def most_accepted_against_others(proposers: Evidence) -> Measured:
    """Speed of the proposer that accepts the largest share over that of each that surely accepts less."""
    sample, figures, order = Sample(proposers), {}, []
    for (temperature,), cells in sample.groups("temperature"):
        top = max(cells, key=lambda cell: sample.alpha(cell)[0])
        for cell in cells:
            if surely_above(sample.alpha(top) - sample.alpha(cell), ALPHA_MARGIN):
                figures[f"{short(top)} against {short(cell)}, T {temperature:g}"] = _ratio(sample, top, cell)
        fastest = max(cells, key=lambda cell: sample.speedup(cell)[0])
        order.append(f"at T {temperature:g} {short(top)} accepts most, {short(fastest)} is the fastest")
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), f"In this run {'; '.join(order)}.")


def retrieval_on_repetition(proposers: Evidence) -> Measured:
    """Speed of look-up over that of a small model, on prompts whose plain output repeats itself."""
    sample, figures, n = Sample(proposers), {}, {}
    for (temperature,), cells in sample.groups("temperature"):
        share = sample.values(cells[0], "repeated") / sample.values(cells[0], "plain_tokens")
        repetitive = share >= REPETITIVE
        if repetitive.sum() < LEAST_PROMPTS:
            continue
        drafts = [cell for cell in cells if kind(cell) == "draft_model"]
        for cell in (cell for cell in cells if kind(cell) in RETRIEVAL):
            for draft in drafts:
                words = f"{short(cell)} against {short(draft)}, T {temperature:g}"
                figures[words] = _ratio(sample, cell, draft, repetitive)
                n[words] = int(repetitive.sum())
    return Measured(figures, n, "" if figures else f"Fewer than {LEAST_PROMPTS} outputs repeat themselves.")


def _ratio(sample: Sample, cell: Cell, other: Cell, among: np.ndarray | None = None) -> Figure:
    """The speedup of one cell over that of another."""
    return sample.speedup(cell, among) / sample.speedup(other, among)
