"""The cells of a study over one of its axes, as `read_study` gives them: named, with their intervals."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specworkbench.experiments.study.figures import INTERVALS, MEASURES
from specworkbench.experiments.study.table import cell_names
from specworkbench.plots.study_grid import study_grid


def study_cells(table: pd.DataFrame, *, x: str, y: str = "speedup_measured", **options: Any) -> go.Figure:
    """`study_grid` of cells: y one of `MEASURES` with its interval where it has one, speedups beside a line at 1.

    table: rows of `read_study`; x: an axis, or another figure; options: color, facet, title and what else `study_grid`
    takes. Hovering names a cell by the axes that vary. Raises `KeyError` for a column that the table lacks.

    >>> from specworkbench.experiments.study import read_study
    >>> from specworkbench.paths import claims_dir
    >>> figure = study_cells(read_study(claims_dir() / "embedded" / "temperature"), x="temperature", color="proposer")
    >>> len(figure.data)
    2
    """
    low, high = INTERVALS.get(y, (None, None))
    reference = 1.0 if y.startswith("speedup") else None
    given = {"low": low, "high": high, "y_title": MEASURES.get(y, y), "reference": reference} | options
    return study_grid(table.assign(cell=cell_names(table)), x=x, y=y, **given)
