"""Claims about how much there is to gain: from short outputs, behind long prompts, with a quantised target.

Each asks what becomes of a gain, so that settings without one say nothing: they are left out, and told.
"""

from __future__ import annotations

from specworkbench.experiments.claims.claim import Measured
from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Sample, ends
from specworkbench.experiments.claims.settings import TIME_MARGIN, gains, setting, surely_above
from specworkbench.experiments.study.grid import NONE


def short_outputs(output_length: Evidence) -> Measured:
    """Speedup, prefills included, of the shortest outputs, where the longest gain."""
    sample, figures, without = Sample(output_length), {}, []
    for _, cells in sample.groups("proposer", "temperature"):
        shortest, *_, longest = sorted(cells, key=lambda cell: cell["max_new_tokens"])
        if gains(sample, longest):
            name = f"{setting(shortest)}, {shortest['max_new_tokens']} tokens"
            figures[name] = sample.speedup(shortest)
        else:
            without.append(setting(longest))
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), _left_out(without, "long outputs"))


def long_prompts(prompt_length: Evidence) -> Measured:
    """Speedup, prefills included, behind the longest prompts over that behind the shortest, where these gain."""
    sample, figures, without = Sample(prompt_length), {}, []
    for _, cells in sample.groups("proposer", "temperature"):
        shortest, *_, longest = sorted(cells, key=lambda cell: cell["prompt_length"])
        if gains(sample, shortest):
            name = f"{setting(shortest)}, {longest['prompt_length']} against {shortest['prompt_length']} tokens"
            figures[name] = sample.speedup(longest) / sample.speedup(shortest)
        else:
            without.append(setting(shortest))
    return Measured(figures, dict.fromkeys(figures, len(sample.names)), _left_out(without, "short prompts"))


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


def _left_out(without: list[str], where: str) -> str:
    return f"Left out, as even {where} do not surely gain: {', '.join(without)}." if without else ""
