"""The rows of a report and the tables of its figures, all computed by `analysis` and `theory`. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from specworkbench import analysis, theory
from specworkbench.analysis.parts import has_trees
from specworkbench.analysis.summary import PHASES
from specworkbench.errors import InputError
from specworkbench.experiments.plan import Configuration
from specworkbench.trace import Trace

__all__ = ["join", "pairs", "rows", "efficiency_tables", "position_tables", "time_table", "phase_row", "gaps"]

ALL = "all"
COLUMNS = (
    "proposer", "bucket", "gamma", "temperature", "alpha_counts", "alpha_overlap", "block_efficiency",
    "expected_tokens", "c", "verify_cost", "speedup_predicted", "speedup_measured", "speedup_low", "speedup_high",
    "tokens",
)  # fmt: skip
CURVE_TO = 8
"""The theory's curve goes to this gamma at least."""

Traces = dict[Configuration, list[Trace]]
"""By configuration, one trace a prompt."""


def join(traces: Sequence[Trace]) -> Trace:
    """One trace of all their sequences, in this order; the manifest is the first one's. Distributions are left out.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> trace = load_trace(traces_dir() / "quickstart.trace")
    >>> len(join([trace, trace]).sequences), len(trace.sequences)
    (12, 6)
    """
    offsets = np.cumsum([0, *(len(trace.sequences) for trace in traces)])[:-1]
    tables = {
        name: pd.concat(
            [_moved(getattr(trace, name), offset) for trace, offset in zip(traces, offsets, strict=True)],
            ignore_index=True,
        )
        for name in ("rounds", "positions")
    }
    manifest = traces[0].manifest | {
        "sequences": [sequence for trace in traces for sequence in trace.sequences],
        "vocabulary": {token: text for trace in traces for token, text in trace.manifest["vocabulary"].items()},
        "capture": "none",
    }
    return Trace(manifest, **tables)


def pairs(traces: Traces) -> Iterator[tuple[Configuration, Trace, Trace]]:
    """(configuration, plain trace, its own trace) of every speculative one, over the prompts that both finished.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> [configuration.name for configuration, plain, trace in pairs(traces)]
    ['draft_model:embedded/draft-m gamma 4 temperature 1']
    """
    plain = {found.temperature: decoded for found, decoded in traces.items() if found.plain}
    for configuration, decoded in traces.items():
        if configuration.plain:
            continue
        both = _shared(plain[configuration.temperature], decoded)
        if both[0]:
            yield configuration, join(both[0]), join(both[1])


def rows(traces: Traces) -> list[dict[str, Any]]:
    """The rows of a report: per proposer, gamma and temperature, one a bucket and one of all. Null, never NaN.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> [(row["bucket"], round(row["alpha_counts"], 2)) for row in rows(traces)]
    [('code', 0.56), ('prose', 0.54), ('structured', 0.91), ('all', 0.66)]
    """
    found = []
    for configuration, plain, speculative in pairs(traces):
        plain_by, speculative_by = analysis.by_bucket(plain), analysis.by_bucket(speculative)
        parts = [(bucket, plain_by[bucket], part) for bucket, part in speculative_by.items()]
        for bucket, before, after in [*parts, (ALL, plain, speculative)]:
            row = analysis.compare(before, after) | {"proposer": configuration.label, "bucket": bucket}
            found.append({name: row[name] for name in COLUMNS})
    return found


def efficiency_tables(traces: Traces) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Block efficiency as measured (with intervals) and E[N] in theory over gamma, for `plots.expected_tokens`.

    A theoretical curve takes the alpha measured at its series' largest gamma; trees have none, as it is for chains.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> measured, theory = efficiency_tables(traces)
    >>> measured[["gamma", "block_efficiency"]].round(2).to_dict("records")
    [{'gamma': 4, 'block_efficiency': 2.57}]
    >>> int(theory["gamma"].max())
    8
    """
    measured, largest = [], {}
    for configuration, _, trace in pairs(traces):
        series = f"{configuration.label}, temperature {configuration.temperature:g}"
        value, low, high = analysis.block_efficiency(trace)
        measured.append((series, configuration.gamma, value, low, high))
        if configuration.gamma >= largest.get(series, (0, None))[0]:
            largest[series] = configuration.gamma, None if has_trees(trace) else analysis.alpha_counts(trace).value
    curves = []
    for series, (gamma, alpha) in largest.items():
        if alpha is not None:
            steps = np.arange(1, max(CURVE_TO, gamma) + 1)
            tokens = theory.expected_tokens(alpha, steps)
            curves.append(pd.DataFrame({"series": series, "gamma": steps, "alpha": alpha, "expected_tokens": tokens}))
    columns = ["series", "gamma", "block_efficiency", "low", "high"]
    types = {name: float for name in columns[2:]}
    empty = pd.DataFrame(columns=["series", "gamma", "alpha", "expected_tokens"])
    return pd.DataFrame(measured, columns=columns).astype(types), pd.concat(curves) if curves else empty


def position_tables(traces: Traces) -> dict[str, pd.DataFrame]:
    """Acceptance by position of every configuration that proposed anything, for `plots.acceptance`.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> [table["acceptance"].round(2).tolist() for table in position_tables(traces).values()]
    [[0.67, 0.61, 0.7, 0.68]]
    """
    return {
        configuration.name: analysis.acceptance_by_position(trace)
        for configuration, _, trace in pairs(traces)
        if trace.rounds["examined"].sum()
    }


def time_table(traces: Traces) -> pd.DataFrame:
    """ms per emitted token by phase, for `plots.phases`; see `phase_row`. A row a configuration.

    A bar's length is the time per token whose ratio to the plain one is the measured speedup; where there is no such
    speedup, as the proposer's cost is set, there is no bar.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> time_table(traces)["group"].tolist()
    ['none temperature 1', 'draft_model:embedded/draft-m gamma 4 temperature 1']
    """
    found = [phase_row(configuration.name, join(decoded)) for configuration, decoded in traces.items() if decoded]
    return pd.DataFrame([row for row in found if row])


def phase_row(group: str, trace: Trace) -> dict[str, Any] | None:
    """ms per emitted token by phase; other: prefills, recording, loop. None where a time is missing, or means nothing
    as the proposer's cost is set.

    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> list(phase_row("draft-m", load_trace(traces_dir() / "quickstart.trace")))
    ['group', 'ms_propose', 'ms_verify', 'ms_accept', 'ms_rollback', 'ms_other']
    """
    figures = analysis.summary(trace)
    if analysis.cost_set(trace) is not None or not figures["emitted"] or figures["ms_total"] is None:
        return None
    phases = {name: figures[name] for name in PHASES}
    times = phases | {"ms_other": max(0.0, figures["ms_total"] - sum(phases.values()))}
    return {"group": group} | {name: ms / figures["emitted"] for name, ms in times.items()}


def gaps(traces: Traces) -> dict[str, analysis.Gap]:
    """The gap of every configuration by its name, for `plots.gap`; those of which nothing can be said are left out.

    >>> from specworkbench.experiments.plan import ProposerSpec
    >>> from specworkbench.paths import traces_dir
    >>> from specworkbench.trace import load_trace
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> own = Configuration(ProposerSpec.parse("draft_model:embedded/draft-m"), 4, 1.0)
    >>> traces = {Configuration(ProposerSpec("none"), None, 1.0): [plain], own: [trace]}
    >>> [(name, round(gap.alpha, 2)) for name, gap in gaps(traces).items()]
    [('draft_model:embedded/draft-m gamma 4 temperature 1', 0.66)]
    """
    found = {}
    for configuration, plain, trace in pairs(traces):
        with suppress(InputError):
            found[configuration.name] = analysis.gap(plain, trace)
    return found


def _shared(plain: list[Trace], speculative: list[Trace]) -> tuple[list[Trace], list[Trace]]:
    """The traces of the prompts that are in both."""
    ids = [{trace.sequences[0]["id"] for trace in decoded} for decoded in (plain, speculative)]
    both = ids[0] & ids[1]
    kept = [[trace for trace in decoded if trace.sequences[0]["id"] in both] for decoded in (plain, speculative)]
    return kept[0], kept[1]


def _moved(table: pd.DataFrame, offset: int) -> pd.DataFrame:
    return table.assign(sequence=(table["sequence"] + offset).astype(table["sequence"].dtype))
