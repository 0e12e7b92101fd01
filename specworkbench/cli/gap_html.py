"""The page of `gap --html`: a waterfall, the steps and the sentence of every configuration, in one file."""

from __future__ import annotations

from html import escape

from specworkbench.analysis import Gap
from specworkbench.cli.gap import NOTE, Explained, step_rows
from specworkbench.cli.report_html import drawn, waterfall, whole_page

HEAD = ("step", "speedup", "interval", "change", "interval", "without", "figures")


def page(found: list[Explained], bucket: str) -> str:
    """The whole page. Every text in it that came from outside is escaped."""
    parts = [f"<h1>From the formula to the measured speedup</h1><p>Prompts: {escape(bucket)}. {NOTE}</p>"]
    for number, explained in enumerate(found):
        gap = explained.gap
        parts += [
            f"<h2>{escape(explained.name)}</h2><p>{escape(gap.sentence)}</p>",
            f"<figure>{drawn(waterfall(gap), script=number == 0)}</figure>",
            _steps(gap),
        ]
    return whole_page("specworkbench gap", "\n".join(parts))


def _steps(gap: Gap) -> str:
    meanings = ["", *(step.meaning for step in gap.steps)]
    lines = "".join(
        f"<tr title='{escape(meaning)}'>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for meaning, cells in zip(meanings, step_rows(gap), strict=True)
    )
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
