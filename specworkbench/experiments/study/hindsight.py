"""Controllers against the best constant gamma, which is known only afterwards. No torch."""

from __future__ import annotations

import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.study.grid import AXES, CONSTANT

COLUMNS = ["controller", "gamma", "best_gamma", "speedup", "speedup_best", "share", "speedup_worst"]


def hindsight(table: pd.DataFrame, measure: str = "speedup_measured") -> pd.DataFrame:
    """One row a cell with a controller: how near it came to the constant gamma that was best for the same cell.

    table: of `read_study`. Columns: the axes that vary beside gamma and controller; controller and its limit, gamma;
    best_gamma, the constant with the greatest `measure`, among those of the study; speedup, speedup_best and
    speedup_worst: the measure of the controller, of that constant and of the worst one; share: speedup / speedup_best.
    The best of several noisy figures is flattered, so that a share near 1 is more than it looks.
    Raises `InputError` where there are no cells of both kinds that agree in all else.

    >>> from specworkbench.experiments.study import Study
    >>> cells = Study(proposer="ngram", controller=["constant", "optimal"], gamma=[1, 4]).cells()
    >>> table = pd.DataFrame(map(vars, cells)).assign(status="finished", speedup_measured=[1.2, 1.1, 1.6, 1.5])
    >>> hindsight(table)[["controller", "gamma", "best_gamma", "speedup", "share"]].round(2)
      controller  gamma  best_gamma  speedup  share
    0    optimal      1           4      1.1   0.69
    1    optimal      4           4      1.5   0.94
    """
    finished = table[(table["status"] == "finished") & table[measure].notna()]
    others = [name for name in AXES if name not in ("gamma", "controller")]
    rows = []
    for values, cells in finished.groupby(others, sort=False, dropna=False):
        constant = cells[cells["controller"] == CONSTANT]
        if constant.empty:
            continue
        best, worst = constant.loc[constant[measure].idxmax()], constant[measure].min()
        for cell in cells[cells["controller"] != CONSTANT].to_dict("records"):
            speedups = (cell[measure], best[measure], cell[measure] / best[measure], worst)
            found = (cell["controller"], cell["gamma"], int(best["gamma"]), *speedups)
            rows.append(dict(zip(others, values, strict=True)) | dict(zip(COLUMNS, found, strict=True)))
    if not rows:
        raise InputError(
            "there is no controller to compare: the study needs finished cells of a controller and of constant gammas "
            'that agree in all else, such as controller = ["constant", "optimal"] and gamma = [1, 2, 4, 8]'
        )
    found = pd.DataFrame(rows)
    varying = [name for name in others if found[name].nunique() > 1]
    return found[[*varying, *COLUMNS]]
