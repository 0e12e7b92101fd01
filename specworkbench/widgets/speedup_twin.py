"""The speedup explorer's figures as tables, for pages that keep no drawings."""

from __future__ import annotations

from html import escape

from specworkbench.widgets.speedup_figures import View
from specworkbench.widgets.speedup_tables import COLUMNS, QUANTITIES
from specworkbench.widgets.speedup_words import measured_words

ALPHAS = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Columns of the surface, beside the alpha where the sliders stand."""
_SAME = 0.005


def numbers_html(view: View) -> str:
    """The surface at a few alphas, and the measured points that may be seen; it can be folded away."""
    name = escape(QUANTITIES[view.quantity])
    note = f"{name}; bold: where the sliders stand" + ("; ★: the best gamma there" if view.best else "")
    tables = f"<p>{note}.</p>{_surface(view)}{_points(view)}"
    return f'<details class="swb-table" open><summary>The same in numbers</summary>{tables}</details>'


def _surface(view: View) -> str:
    alphas = sorted({alpha for alpha in ALPHAS if abs(alpha - view.alpha) > _SAME} | {view.alpha})
    head = "".join(f'<th scope="col" align="right">alpha {alpha:.2g}</th>' for alpha in alphas)
    rows = []
    for gamma in range(1, view.max_gamma + 1):
        cells = "".join(_cell(view, alpha, gamma) for alpha in alphas)
        rows.append(f'<tr><th scope="row" align="left">gamma {gamma}</th>{cells}</tr>')
    return _table(f"<td></td>{head}", rows)


def _cell(view: View, alpha: float, gamma: int) -> str:
    text = f"{float(view.costs.value(view.quantity, alpha, gamma)):.2f}"
    if alpha == view.alpha:
        text = f"<strong>{text}</strong>" if gamma == view.gamma else text
        text = f"★ {text}" if gamma == view.best else text
    return f'<td align="right">{text}</td>'


def _points(view: View) -> str:
    """Nothing where none was measured."""
    points = view.points[view.points[COLUMNS[view.quantity][0]].notna()]
    rows = [
        f'<tr><th scope="row" align="left">{escape(point["label"])}</th><td align="right">{point["alpha"]:.2f}</td>'
        f'<td align="right">{point["gamma"]:g}</td><td align="right">{measured_words(point, view.quantity)}</td></tr>'
        for _, point in points.iterrows()
    ]
    heads = "".join(f'<th scope="col" align="right">{name}</th>' for name in ("alpha", "gamma", "measured"))
    return _table(f'<th scope="col" align="left">point</th>{heads}', rows) if rows else ""


def _table(head: str, rows: list[str]) -> str:
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
