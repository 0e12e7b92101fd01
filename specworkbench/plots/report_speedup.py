"""Speedup by bucket: measured with its interval, beside what the formula predicts."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from specworkbench.plots import palette
from specworkbench.plots.style import INK, columns_of, error_bars, finish, literal

COLUMNS = ("series", "bucket", "speedup_measured", "speedup_low", "speedup_high", "speedup_predicted")
_SPREAD = 0.6


def report_speedup(
    table: pd.DataFrame,
    *,
    title: str = "Speedup over plain decoding",
    template: str | go.layout.Template | None = None,
    height: int = 420,
) -> go.Figure:
    """Filled points with intervals (measured) and open diamonds (predicted), side by side in each bucket.

    table: a row per series and bucket: `series`, `bucket` (text), `speedup_measured`, `speedup_low`, `speedup_high`,
    `speedup_predicted` (plain time over speculative time per token; null is no mark). The line at 1 is plain decoding.
    """
    columns_of("report_speedup", table, COLUMNS)
    table = table.astype({name: float for name in COLUMNS[2:]})
    buckets, series = (list(dict.fromkeys(table[name])) for name in ("bucket", "series"))
    figure = go.Figure()
    for number, name in enumerate(series):
        rows = table[table["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        x = [buckets.index(bucket) + offset for bucket in rows["bucket"]]
        for mark in _marks(rows, x, name, number):
            figure.add_trace(mark)
    figure.add_hline(y=1.0, line={"color": INK, "width": 1, "dash": "dot"})
    ticks = {"tickvals": list(range(len(buckets))), "ticktext": [literal(bucket) for bucket in buckets]}
    figure.update_xaxes(**ticks, range=[-0.5, len(buckets) - 0.5], zeroline=False)
    figure.update_yaxes(title_text="speedup", rangemode="tozero")
    return finish(figure, title, template, height)


def _marks(rows: pd.DataFrame, x: list[float], name: str, number: int) -> list[go.Scatter]:
    color = palette.SERIES[number % len(palette.SERIES)]
    hover = "%{y:.2f}<extra>%{fullData.name}</extra>"
    measured = go.Scatter(
        x=x,
        y=rows["speedup_measured"],
        error_y=error_bars(rows, "speedup_measured", "speedup_low", "speedup_high"),
        mode="markers",
        name=f"{literal(name)}: measured",
        marker={"color": color, "size": 10, "symbol": palette.SYMBOLS[number % len(palette.SYMBOLS)]},
        hovertemplate=hover,
    )
    predicted = go.Scatter(
        x=x,
        y=rows["speedup_predicted"],
        mode="markers",
        name=f"{literal(name)}: predicted",
        marker={"color": color, "size": 11, "symbol": "diamond-open", "line": {"width": 2}},
        hovertemplate=hover,
    )
    return [measured, predicted]
