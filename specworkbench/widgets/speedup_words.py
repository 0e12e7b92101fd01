"""What the speedup explorer says: where the sliders stand, and how a guess compares with what was measured."""

from __future__ import annotations

import math

import pandas as pd

from specworkbench import theory
from specworkbench.widgets.speedup_figures import View
from specworkbench.widgets.speedup_tables import COLUMNS, Costs

EMPTY = (
    "No measured points yet. Give some: SpeedupExplorer([analysis.compare(plain, speculative), ...]), or a table with "
    "alpha, gamma and speedup_measured or block_efficiency."
)
UNITS = {"speedup": "", "tokens": " tokens per round"}


def headline(view: View) -> str:
    """The speedup here and what it is made of, the best gamma, and where break-even is."""
    costs, alpha, gamma = view.costs, view.alpha, view.gamma
    tokens = theory.expected_tokens(alpha, gamma)
    steps = theory.round_cost(gamma, costs.c, verify_cost=costs.verify_cost(gamma), overhead=costs.overhead)
    here = f"A round brings {tokens:.2f} tokens and costs {steps:.2f} plain target steps: speedup {tokens / steps:.2f}."
    return f"{here} {_best(view)} {_break_even(costs, gamma)}"


def _best(view: View) -> str:
    best = view.best
    if best == 0:
        return "At this alpha no gamma pays: decode plainly."
    speedup = float(view.costs.speedup(view.alpha, best))
    return f"The best gamma here is {best}, with {speedup:.2f}."


def _break_even(costs: Costs, gamma: int) -> str:
    least = theory.break_even_alpha(gamma, costs.c, verify_cost=costs.verify_cost(gamma), overhead=costs.overhead)
    if math.isnan(least):
        return f"With gamma = {gamma} no alpha would pay: the round costs more than {gamma + 1} plain steps."
    if least == 0:
        return f"With gamma = {gamma} every alpha pays."
    return f"With gamma = {gamma} it pays from alpha = {least:.2f} on."


def measured_words(row: pd.Series, quantity: str) -> str:
    """The measured value with its interval."""
    value, low, high = (row[name] for name in COLUMNS[quantity])
    around = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
    return f"{value:.2f}{around}{UNITS[quantity]}"


def beside_theory(row: pd.Series, view: View) -> str:
    """A point that is seen, beside the theory where the sliders stand."""
    value, low, high = (row[name] for name in COLUMNS[view.quantity])
    if math.isnan(value):
        other = "tokens per round" if view.quantity == "speedup" else "the speedup"
        return f"{row['label']}: not measured; look at {other} instead."
    off = _percent(view.value, value)
    if not math.isnan(low):
        off += f", {'inside' if low <= view.value <= high else 'outside'} the interval"
    where = f"the theory, where the sliders stand, {view.value:.2f} ({off})"
    return f"{row['label']}: measured {measured_words(row, view.quantity)}; {where}."


def revealed(row: pd.Series, guess: float, view: View) -> str:
    """How far the guess was off, and how far the theory is."""
    value, low, high = (row[name] for name in COLUMNS[view.quantity])
    if not math.isnan(low) and low <= guess <= high:
        verdict = "inside the interval"
    else:
        verdict = _percent(guess, value)
    return f"You said {guess:.2f}: {verdict}. {beside_theory(row, view)}"


def _percent(guess: float, value: float) -> str:
    """How far the first is from the second."""
    off = guess / value - 1
    return "the same" if abs(off) < 5e-4 else f"{abs(off):.1%} too {'high' if off > 0 else 'low'}"
