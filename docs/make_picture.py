"""Draws docs/strip.svg, the picture in the README, from the shipped trace: a few rounds, and one position's p and q.

python docs/make_picture.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from specworkbench.paths import data_dir
from specworkbench.plots import palette
from specworkbench.trace import Trace, load_trace
from specworkbench.trace.schema import EXAMINED
from specworkbench.widgets.sentences import sentence
from specworkbench.widgets.tables import distribution_table, strip_rows
from specworkbench.widgets.text import visible

WIDTH, MARGIN, LINE = 860, 24, 34
INK, FAINT = "#24292f", "#8c8c8c"
ROUNDS, BARS = 9, 7


def text(x: float, y: float, words: str, size: int = 13, color: str = INK, **options: str) -> str:
    """One line of text; attribute names take an underscore for a hyphen."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in options.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}"{more}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, color: str, opacity: float = 1.0) -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" rx="3" fill="{color}" '
        f'fill-opacity="{opacity:g}"/>'
    )


def strip(trace: Trace, sequence: int, top: float) -> tuple[list[str], float]:
    """The first rounds as chips, one colour and glyph an outcome; and where they end."""
    rows, parts = strip_rows(trace, sequence), []
    x, y = MARGIN, top
    for _round_index, tokens in rows[rows["round"] < ROUNDS].groupby("round"):
        chips = [(short(visible(trace.token_text(row.token))), row.outcome) for row in tokens.itertuples()]
        widths = [8.2 * (len(word) + 2) + 14 for word, _ in chips]
        if x + sum(widths) + 6 * len(chips) > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE + 10
        for (word, outcome), width in zip(chips, widths, strict=True):
            mark = palette.OUTCOMES[outcome]
            struck = {"text_decoration": "line-through"} if outcome == "rejected" else {}
            parts.append(box(x, y, width, LINE - 6, mark.color, 0.28))
            parts.append(text(x + 7, y + 18, mark.glyph, color=INK))
            parts.append(text(x + 23, y + 18, word, color=FAINT if outcome == "discarded" else INK, **struck))
            x += width + 5
        x += 9
    return parts, y + LINE


def legend(top: float) -> list[str]:
    """Glyph and name of each outcome."""
    parts, x = [], MARGIN
    for name, mark in palette.OUTCOMES.items():
        parts += [
            box(x, top - 11, 16, 14, mark.color, 0.45),
            text(x + 3, top, mark.glyph, 11),
            text(x + 22, top, name, 12),
        ]
        x += 30 + 7.6 * len(name) + 16
    return parts


def bars(trace: Trace, row, top: float) -> tuple[list[str], float]:
    """p and q of the likeliest tokens at the row's position, and all the others as one bar."""
    table = distribution_table(trace, row, top=BARS)
    labels, p, q = (list(table[name]) for name in ("label", "p", "q"))
    scale, parts = (WIDTH - 2 * MARGIN - 150) / max(*p, *q), []
    for i, (label, target, draft) in enumerate(zip(labels, p, q, strict=True)):
        y = top + i * 26
        parts.append(text(MARGIN + 110, y + 15, str(label), 13, text_anchor="end"))
        parts += [box(MARGIN + 120, y, scale * target, 10, palette.TARGET)]
        parts += [box(MARGIN + 120, y + 11, scale * draft, 10, palette.DRAFT)]
        parts += [text(MARGIN + 124 + scale * target, y + 9, f"p {target:.3f}", 10, FAINT)]
        parts += [text(MARGIN + 124 + scale * draft, y + 20, f"q {draft:.3f}", 10, FAINT)]
    return parts, top + len(labels) * 26 + 8


def short(word: str, most: int = 14) -> str:
    """At most so many characters."""
    return word if len(word) <= most else word[: most - 1] + "…"


def wrapped(words: str, width: int = 100) -> list[str]:
    """Lines of at most `width` characters."""
    lines = [""]
    for word in words.split(" "):
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def telling(trace: Trace) -> int:
    """The sequence whose first rounds accept about as much as they reject, so that both are seen."""
    first = trace.positions[trace.positions["round"] < ROUNDS]
    share = (
        first[first["outcome"].isin(EXAMINED)].groupby("sequence")["outcome"].apply(lambda o: (o == "accepted").mean())
    )
    return int((share - 0.65).abs().idxmin())


def picture(trace: Trace) -> str:
    """The whole SVG: strip, legend, p and q of the rejected position where they overlap most, and its sentence."""
    sequence = telling(trace)
    rows = strip_rows(trace, sequence)
    rejected = rows[(rows["outcome"] == "rejected") & (rows["round"] < ROUNDS)]
    row = rejected.loc[rejected["overlap"].idxmax()]
    chips, y = strip(trace, sequence, MARGIN + 8)
    drawn, end = bars(trace, row, y + 44)
    lines = wrapped(sentence(trace, row))
    words = [text(MARGIN, end + 20 + 18 * i, line, 13) for i, line in enumerate(lines)]
    height = end + 20 + 18 * len(lines) + 8
    body = "\n".join([*chips, *legend(y + 18), *drawn, *words])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    target = Path(__file__).with_name("strip.svg")
    target.write_text(picture(load_trace(data_dir() / "traces" / "quickstart.trace")), encoding="utf-8")
    print(target)
