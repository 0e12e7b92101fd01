"""Figures of plotly: tables in, `go.Figure` out. Nothing here computes a statistic or shows anything.

Every figure takes `template`, a plotly template or its name; without one the look reads on light and dark pages.
"""

from specworkbench.plots.acceptance import acceptance
from specworkbench.plots.acceptance_map import acceptance_map
from specworkbench.plots.claim_parts import claim_parts
from specworkbench.plots.distribution import distribution
from specworkbench.plots.e_race import e_race
from specworkbench.plots.expected_tokens import expected_tokens
from specworkbench.plots.gap import gap
from specworkbench.plots.phases import phases
from specworkbench.plots.speedup_slice import speedup_slice
from specworkbench.plots.speedup_surface import speedup_surface
from specworkbench.plots.study_cells import study_cells
from specworkbench.plots.study_grid import study_grid

__all__ = [
    "acceptance", "acceptance_map", "claim_parts", "distribution", "e_race", "expected_tokens", "gap", "phases",
    "speedup_slice", "speedup_surface", "study_cells", "study_grid",
]  # fmt: skip
