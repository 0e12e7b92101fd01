"""The smallest total variation that a chi-square test finds."""

from __future__ import annotations

from scipy import optimize, stats


def smallest_tv(degrees: int, n: float, level: float = 1e-3, power: float = 0.9) -> float:
    """0.5 sqrt(lambda / n), lambda the non-centrality at which chi-square rejects with probability `power`.

    The non-centrality of cells p when the truth is r is n sum (r - p)^2 / p, by Cauchy and Schwarz at least 4 n TV^2.
    n: number of outputs; of two samples n_a n_b / (n_a + n_b). At most 1.
    """
    critical = stats.chi2.isf(level, degrees)
    found = optimize.brentq(lambda size: stats.ncx2.sf(critical, degrees, size) - power, 1e-9, 1e5)
    return min(1.0, 0.5 * (found / n) ** 0.5)
