"""Claims about how much there is to gain: from short outputs, behind long prompts, with a quantised target.

Each asks what becomes of a gain, so that settings without one say nothing: they are left out, and told.
"""

from __future__ import annotations

from collections.abc import Callable

from specworkbench.experiments.claims.claim import Measured
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Figure, Sample, ends
from specworkbench.experiments.claims.settings import TIME_MARGIN, Cell, gains, setting, surely_above
from specworkbench.experiments.study.grid import NONE


def short_outputs(output_length: Evidence) -> Measured:
    """Speedup, prefills included, of the shortest outputs, where the longest gain."""

    def kept(sample: Sample, shortest: Cell, longest: Cell) -> tuple[str, Figure]:
        return f"{setting(shortest)}, {shortest['max_new_tokens']} tokens", sample.speedup(shortest)

    return _where_there_is_a_gain(output_length, "max_new_tokens", -1, kept, "long outputs")


def long_prompts(prompt_length: Evidence) -> Measured:
    """Speedup, prefills included, behind the longest prompts over that behind the shortest, where these gain."""

    def kept(sample: Sample, shortest: Cell, longest: Cell) -> tuple[str, Figure]:
        name = f"{setting(shortest)}, {longest['prompt_length']} against {shortest['prompt_length']} tokens"
        return name, sample.speedup(longest) / sample.speedup(shortest)

    return _where_there_is_a_gain(prompt_length, "prompt_length", 0, kept, "short prompts")


def _where_there_is_a_gain(
    evidence: Evidence, axis: str, gaining: int, kept: Callable[[Sample, Cell, Cell], tuple[str, Figure]], where: str
) -> Measured:
    """What is kept of the shortest and the longest cell of each proposer and temperature, by name.

    axis: how cells are ordered, of which there must be two to compare; gaining: the place in that order of the cell
    without whose gain, `where` in words, there is nothing to keep.
    """
    sample, figures, without = Sample(evidence), {}, []
    for _, cells in sample.groups("proposer", "temperature"):
        ordered = sorted(cells, key=lambda cell: cell[axis])
        if len(ordered) < 2:
            continue
        if gains(sample, ordered[gaining]):
            name, figure = kept(sample, ordered[0], ordered[-1])
            figures[name] = figure
        else:
            without.append(setting(ordered[gaining]))
    remark = f"Left out, as even {where} do not surely gain: {', '.join(without)}." if without else ""
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark)


def quantised_target(quantisation: Evidence) -> Measured:
    """Speedup on the quantised target over that on the target as it is, where quantising makes plain steps faster."""
    sample, figures, steps = Sample(quantisation), {}, []
    for _, cells in sample.groups("proposer", "temperature"):
        whole = [cell for cell in cells if cell["quantisation"] == NONE]
        for cell in cells if whole else ():
            if cell["quantisation"] == NONE:
                continue
            name = f"{setting(cell)}, {cell['quantisation']}"
            faster = sample.plain_ms(whole[0]) / sample.plain_ms(cell)
            low, high = ends(faster, 0.95)
            steps.append(f"{faster[0]:.2f} ({low:.2f} to {high:.2f}; {name})")
            if surely_above(faster, 1 + TIME_MARGIN):
                figures[name] = sample.speedup(cell) / sample.speedup(whole[0])
    remark = f"Plain steps of the quantised target, times as fast: {', '.join(steps)}."
    if steps and not figures:
        remark += " The claim has no premise where quantising does not surely make the target faster."
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), remark if steps else "")
