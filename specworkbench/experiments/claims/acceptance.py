"""Claims about what is accepted: by place in the output, by temperature and top-p, by the kind of text.

Acceptance is alpha as overlap, the mean of sum_x min(p, q) over examined tokens. It follows from the seed, not from the
machine's speed.
"""

from __future__ import annotations

import numpy as np

from specworkbench.experiments.claims.claim import Measured
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Figure, Sample
from specworkbench.experiments.claims.settings import CODE, PROSE, STRUCTURED, Cell, alike, setting, short


def late_against_early(long_outputs: Evidence) -> Measured:
    """Alpha in the last quarter of the output less alpha in the first."""
    sample = Sample(long_outputs)
    figures = {}
    for cell in sample.cells:
        end = cell["max_new_tokens"]
        late, early = sample.alpha_between(cell, 3 * end // 4, end), sample.alpha_between(cell, 0, end // 4)
        figures[setting(cell)] = late - early
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), _repetition(sample))


def by_sampling(temperature: Evidence, top_p: Evidence) -> Measured:
    """How far the fitted line of alpha falls, from temperature 0 upwards and from top-p 1 downwards."""
    figures, n = {}, {}
    for evidence, axis, backwards in ((temperature, "temperature", False), (top_p, "top_p", True)):
        sample = Sample(evidence)
        for (proposer,), cells in sample.groups("proposer"):
            values = sorted({cell[axis] for cell in cells}, reverse=backwards)
            if len(values) > 1:
                words = f"{short({'proposer': proposer})}, {axis.replace('_', '-')} {values[0]:g} to {values[-1]:g}"
                figures[words] = _change(sample, cells, axis) * (values[-1] - values[0])
                n[words] = len(sample.names)
    return Measured(figures, n)


def by_kind_of_text(proposers: Evidence) -> Measured:
    """Alpha in code, and in structured text, less alpha in prose."""
    sample = Sample(proposers)
    prose, figures, n = alike(sample, PROSE), {}, {}
    for name, buckets in (("code", CODE), ("structured", STRUCTURED)):
        inside = alike(sample, buckets)
        if not (inside.any() and prose.any()):
            continue
        for cell in sample.cells:
            words = f"{name}: {setting(cell)}"
            figures[words] = sample.alpha(cell, inside) - sample.alpha(cell, prose)
            n[words] = int(min(inside.sum(), prose.sum()))
    return Measured(figures, n, "" if figures else "There are no prompts of both kinds.")


def _change(sample: Sample, cells: list[Cell], axis: str) -> Figure:
    """Slope of the least-squares line of alpha over the axis, on every draw."""
    at = np.array([cell[axis] for cell in cells])
    alphas = np.array([sample.alpha(cell) for cell in cells])
    centred = at - at.mean()
    return centred @ alphas / (centred @ centred)


def _repetition(sample: Sample) -> str:
    """How repetitive the outputs are, by temperature: greedy outputs of small models run in circles."""
    said = []
    for (temperature,), cells in sample.groups("temperature"):
        share = float(sample.total(cells[0], "repeated")[0] / sample.total(cells[0], "plain_tokens")[0])
        said.append(f"{share:.0%} at temperature {temperature:g}")
    return f"An n-gram look-up would have known {', '.join(said)} of the output: what repeats itself is easy to guess."
