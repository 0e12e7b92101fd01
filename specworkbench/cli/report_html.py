"""report.html: tables and figures in one file that opens without a network, on light and dark screens alike."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specworkbench import plots
from specworkbench.analysis import Gap
from specworkbench.cli.report import cells
from specworkbench.experiments.report import Report
from specworkbench.experiments.rows import ALL, efficiency_tables, gaps, position_tables, time_table
from specworkbench.plots.report_speedup import report_speedup
from specworkbench.plots.style import ink_css

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --line: #d5d5d5; --soft: #f4f4f4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --line: #3c3c3c; --soft: #222222; } }
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.4rem 0; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; overflow-wrap: anywhere; }
th:first-child, td:first-child, table.facts td { text-align: left; }
tr.all { background: var(--soft); font-weight: 600; }
figure { margin: 1rem 0; min-width: 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
.scroll { overflow-x: auto; }
.note { border-left: 4px solid #D55E00; padding: 0.3rem 1rem; background: var(--soft); }
@media print { :root { --ink: #000; --paper: #fff; --line: #d5d5d5; --soft: #f4f4f4; } }
""" + ink_css("var(--ink)")

COLUMNS = {
    "bucket": "the kind of prompt; all of them in the last row",
    "alpha": "accepted / examined tokens, by counts",
    "overlap": "mean of sum min(p, q) over examined tokens: the same alpha with less noise",
    "E[N]": "tokens per round as measured (block efficiency)",
    "theory": "(1 - alpha^(gamma + 1)) / (1 - alpha), as if every token were accepted alike, independently",
    "c": "proposer time per proposed token, in plain target steps; for an instrument that reads the target, as set",
    "v": "target forward over gamma + 1 tokens, in plain target steps",
    "predicted": "speedup by theory: E[N] of alpha / (gamma c + v)",
    "speedup": "plain time per token over speculative time per token, as measured; none where c is set",
    "interval": "95 %, by bootstrap over prompts",
    "tokens": "decoded speculatively",
}


def page(report: Report) -> str:
    """The whole page. Every text in it that came from outside is escaped."""
    environment = report.environment
    parts = [
        f"<h1>Speculative decoding of {escape(environment['target']['name'])}</h1>",
        f"<p>{escape(_summary(environment))}</p>",
        _interrupted(environment),
        "<h2>Figures by proposer and bucket</h2>",
        *_tables(report.rows),
        "<h3>What the columns say</h3>",
        _facts(COLUMNS),
        *_sections(report),
        "<h2>Environment</h2>",
        _facts({name: value for name, value in environment.items() if name != "traces"}),
    ]
    return whole_page(f"specworkbench report: {environment['target']['name']}", "\n".join(parts))


def whole_page(title: str, body: str) -> str:
    """A page of this body (HTML) under a title (text)."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(title)}</title><style>{STYLE}</style>"
    return f"<!doctype html>\n<html lang=en><head>{head}</head>\n<body>{body}</body></html>\n"


def _summary(environment: dict[str, Any]) -> str:
    prompts = environment["prompts"]
    return (
        f"{prompts['number']} prompts ({prompts['source']}), up to {environment['max_new_tokens']} tokens each, "
        f"decoded plainly and with {', '.join(environment['proposers'][1:])}, interleaved, on {environment['device']} "
        f"({environment['cpu']}, {environment['threads']} threads), {environment['dtype']}, {environment['date']}."
    )


def _interrupted(environment: dict[str, Any]) -> str:
    runs = environment["runs"]
    if runs["finished"] == runs["planned"]:
        return ""
    return f"<p class=note>Ended early: the figures rest on {runs['finished']} of {runs['planned']} planned runs.</p>"


def _sections(report: Report) -> list[str]:
    """The figures under their headings, plotly's script inlined with the first one."""
    parts, script = [], True
    for heading, figures in _figures(report).items():
        shown = []
        for caption, figure in figures:
            shown.append(f"<figure><figcaption>{escape(caption)}</figcaption>{drawn(figure, script)}</figure>")
            script = False
        kind = "grid" if len(figures) > 2 else "column"
        parts.append(f"<h2>{escape(heading)}</h2><div class={kind}>{''.join(shown)}</div>")
    return parts


def drawn(figure: go.Figure, script: bool) -> str:
    """A figure as HTML; its caption is the page's, the legend below it, however long that is.

    script: with plotly's own, which the first figure of a page brings.
    """
    figure.update_layout(title_text=None, modebar_bgcolor="rgba(0, 0, 0, 0)", margin={"t": 20, "b": 40})
    figure.update_layout(legend={"y": -0.22, "yanchor": "top"})
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    config = {"displaylogo": False, "responsive": True}
    return figure.to_html(full_html=False, include_plotlyjs=script, config=config)


def _figures(report: Report) -> dict[str, list[tuple[str, go.Figure]]]:
    """{heading: [(caption, figure)]}; nothing where nothing was compared."""
    if not report.rows:
        return {}
    several = len({row["gamma"] for row in report.rows}) > 1
    speedups = []
    for temperature in dict.fromkeys(row["temperature"] for row in report.rows):
        rows = [row for row in report.rows if row["temperature"] == temperature]
        series = [f"{row['proposer']}, gamma {row['gamma']}" if several else row["proposer"] for row in rows]
        speedups.append((f"temperature {temperature:g}", report_speedup(pd.DataFrame(rows).assign(series=series))))
    tokens = plots.expected_tokens(*efficiency_tables(report.traces))
    times = plots.phases(time_table(report.traces), unit="ms per token")
    ways = [(f"{name}: {gap.sentence}", waterfall(gap)) for name, gap in gaps(report.traces).items()]
    positions = [(name, plots.acceptance(table)) for name, table in position_tables(report.traces).items()]
    return {
        "Speedup over plain decoding": speedups,
        "Tokens per round: measured against theory": [("points with 95 % intervals, curves for i.i.d. tokens", tokens)],
        "Time per token by phase": [("other: prefills, recording and the loop", times)],
        "From the formula to the measured speedup, all prompts": ways,
        "Acceptance by position in the round": positions,
    }


def waterfall(gap: Gap) -> go.Figure:
    """The figure of a gap, its first and last bar named after what they are."""
    start = "tokens a round" if gap.alpha is None else "the formula"
    return plots.gap(gap.table(), start=start, end="measured" if gap.cost_set is None else "at the cost set")


def _tables(rows: list[dict[str, Any]]) -> list[str]:
    """One table a configuration."""
    tables: dict[str, list[str]] = {}
    for row in rows:
        caption = f"{row['proposer']}, gamma {row['gamma']}, temperature {row['temperature']:g}"
        kind = " class=all" if row["bucket"] == ALL else ""
        values = "".join(f"<td>{escape(value)}</td>" for value in (row["bucket"], *cells(row)))
        tables.setdefault(caption, []).append(f"<tr{kind}>{values}</tr>")
    head = "".join(f"<th title='{escape(meaning)}'>{escape(name)}</th>" for name, meaning in COLUMNS.items())
    return [
        f"<div class=scroll><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
        for caption, lines in tables.items()
    ]


def _facts(facts: dict[str, Any]) -> str:
    lines = "".join(f"<tr><td>{escape(name)}</td><td>{escape(_text(value))}</td></tr>" for name, value in facts.items())
    return f"<table class=facts>{lines}</table>"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
