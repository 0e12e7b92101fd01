"""The acceptance map as HTML tables, for pages without scripts and for those who hear a page."""

from __future__ import annotations

from html import escape

import pandas as pd
from plotly.colors import sample_colorscale

from specworkbench.plots import palette
from specworkbench.plots.acceptance_map import describe
from specworkbench.widgets.page_style import PRINT

_MIDDLE = 0.179
"""The luminance that black and white have the same contrast with: (1.05 * 0.05) ** 0.5 - 0.05."""
_STYLE = f"<style>{PRINT}" + """
.swb-maps {font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px);
  color: var(--jp-ui-font-color1, inherit); font-variant-numeric: tabular-nums;}
.swb-maps .swb-row {display: flex; flex-wrap: wrap; gap: 8px 28px;}
.swb-maps table.swb-map {border-collapse: separate; border-spacing: 2px; margin: 0; color: inherit; font-size: inherit;}
.swb-maps .swb-map caption {text-align: left; font-weight: 600; white-space: nowrap;}
.swb-maps .swb-map tr:nth-child(n) {background: none;}
.swb-maps .swb-map th {font-weight: 400; padding: 1px 5px; text-align: right; white-space: nowrap;}
.swb-maps .swb-map td {text-align: center; padding: 1px 6px; min-width: 3em;}
.swb-maps .swb-map th[scope=col] {text-align: center;}
.swb-maps small {display: block;}
.swb-maps .swb-few {background: #8c8c8c29;}
</style>"""


def table_html(table: pd.DataFrame, few: int) -> str:
    """A table a bucket: position in the round down, output index across; acceptance, and below it what it rests on.

    table: as `analysis.acceptance_map` gives it; nothing for none. Cells of fewer than `few` examined positions
    are grey.
    """
    if table.empty:
        return ""
    buckets = dict.fromkeys(table["bucket"])
    tables = "".join(_bucket_html(str(bucket), table[table["bucket"] == bucket], few) for bucket in buckets)
    note = f"In a cell: acceptance, and how many positions were examined; grey: fewer than {few} of them."
    return f'{_STYLE}<div class="swb-maps"><div class="swb-row">{tables}</div><p>{note}</p></div>'


def _bucket_html(bucket: str, cells: pd.DataFrame, few: int) -> str:
    bins = sorted(set(zip(cells["output_index"], cells["output_index_end"], strict=True)))
    by_place = {(cell["position"], cell["output_index"]): cell for _, cell in cells.iterrows()}
    head = "".join(f'<th scope="col">{start}–{end - 1}</th>' for start, end in bins)
    rows = []
    for position in range(1, int(cells["position"].max()) + 1):
        row = "".join(_cell_html(by_place.get((position, start)), few) for start, _ in bins)
        rows.append(f'<tr><th scope="row">position {position}</th>{row}</tr>')
    caption = f"<caption>{escape(bucket)}: position over output index</caption>"
    return f'<table class="swb-map">{caption}<tr><td></td>{head}</tr>{"".join(rows)}</table>'


def _cell_html(cell: pd.Series | None, few: int) -> str:
    if cell is None:
        return "<td></td>"
    look = 'class="swb-few"' if cell["examined"] < few else f'style="{_shade(cell["acceptance"])}"'
    numbers = f"{cell['acceptance']:.2f} <small>{cell['examined']}</small>"
    return f'<td {look} title="{escape(describe(cell))}">{numbers}</td>'


def _shade(share: float) -> str:
    """Background on the scale of shares, and the ink of more contrast with it: below this luminance (WCAG), white."""
    color = sample_colorscale(palette.SEQUENTIAL, [share])[0]
    parts = (float(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(","))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < _MIDDLE
    return f"background: {color}; color: {'#fff' if dark else '#000'}"
