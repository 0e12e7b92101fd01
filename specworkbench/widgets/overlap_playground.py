"""`OverlapPlayground`: p and q over a few tokens as bars to drag, and what comes out of a rule or of a fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from specworkbench.errors import InputError
from specworkbench.plots import palette
from specworkbench.theory.one_position import RULES, SETTINGS, OnePosition, distribution, one_position, rule_named
from specworkbench.trace import Trace
from specworkbench.widgets.overlap_twin import playground_html
from specworkbench.widgets.page_style import STYLE
from specworkbench.widgets.picture import pictures
from specworkbench.widgets.tables import distribution_table, strip_rows

_FOLDER = Path(__file__).parent
_SCRIPTS = ("keys.js", "elements.js", "one_position.js", "overlap_figures.js", "overlap_playground.js")
_SHEETS = ("scripted.css", "overlap_playground.css")
_CSS = palette.css_variables() + STYLE + "".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SHEETS)

SIZES = range(4, 9)
"""How many tokens there may be."""

START = {"p": [0.4, 0.3, 0.15, 0.1, 0.05], "q": [0.15, 0.35, 0.1, 0.1, 0.3]}


def _normalised(row: np.ndarray) -> np.ndarray:
    return row / row.sum()


def _falling(size: int) -> np.ndarray:
    return _normalised(0.62 ** np.arange(size))


def _rows(size: int, kind: str) -> dict[str, list[float]]:
    """p and q of a preset over so many tokens."""
    p, first = _falling(size), np.arange(size) < size // 2
    q = {
        "agree": 0.9 * p + 0.1 * p[::-1],
        "sure": _normalised(p**2.5),
        "flat": _normalised(p**0.25),
        "disjoint": _normalised(p * ~first),
        "certain": np.eye(size)[1],
    }[kind]
    return {"p": (_normalised(p * first) if kind == "disjoint" else p).tolist(), "q": q.tolist()}


_LABELS = {
    "agree": "they nearly agree",
    "sure": "the draft is too sure",
    "flat": "the draft is too flat",
    "disjoint": "they have nothing in common",
    "certain": "the guess is certain (n-gram lookup)",
}
PRESETS = [
    {"name": name, "label": label, "rows": {str(size): _rows(size, name) for size in SIZES}}
    for name, label in _LABELS.items()
]
_RULES = [
    {
        "name": name,
        "label": rule.label,
        "kind": rule.kind,
        "says": rule.says,
        "guess": rule.guess,
        "accept": rule.accept,
        "replacement": rule.replacement,
        "settings": list(rule.settings),
    }
    for name, rule in RULES.items()
]
_LIMITS = {name: {"low": s.low, "high": s.high, "step": s.step} for name, s in SETTINGS.items()}


class OverlapPlayground(anywidget.AnyWidget):
    """Bars of p and q to drag (or focus one and press arrow keys); the rest is computed in the browser meanwhile.

    tokens: 4 to 8 names; p, q: their probabilities, as they stand now; rule: a name of `theory.one_position.RULES`;
    settings: the numbers that rules take, by name. All may be read, set and observed; `show` sets p and q of another
    size. `position` is what happens, by the same formulas in Python. Raises `InputError` for what is no distribution.

    >>> playground = OverlapPlayground(p=[0.5, 0.25, 0.125, 0.125], q=[0.25, 0.25, 0.25, 0.25])
    >>> round(playground.position.acceptance, 3)
    0.75
    """

    _esm = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    _css = _CSS

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    p = traitlets.List(traitlets.Float()).tag(sync=True)
    q = traitlets.List(traitlets.Float()).tag(sync=True)
    rule = traitlets.Unicode("token").tag(sync=True)
    settings = traitlets.Dict(per_key_traits={name: traitlets.Float() for name in SETTINGS}).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    start = traitlets.Dict(read_only=True).tag(sync=True)
    presets = traitlets.List(traitlets.Dict(), default_value=PRESETS, read_only=True).tag(sync=True)
    rules = traitlets.List(traitlets.Dict(), default_value=_RULES, read_only=True).tag(sync=True)
    limits = traitlets.Dict(default_value=_LIMITS, read_only=True).tag(sync=True)

    def __init__(
        self,
        p: Sequence[float] | None = None,
        q: Sequence[float] | None = None,
        tokens: Sequence[str] | None = None,
        **traits: Any,
    ):
        settings = {name: setting.default for name, setting in SETTINGS.items()} | traits.pop("settings", {})
        super().__init__(settings=settings, **traits)
        self.show(START["p"] if p is None else p, START["q"] if q is None else q, tokens)
        self.set_trait("start", {name: getattr(self, name) for name in ("tokens", "p", "q", "rule", "settings")})

    @classmethod
    def of(cls, trace: Trace, sequence: int = 0, index: int | None = None, *, top: int = 5, **traits: Any):
        """p and q of a recorded position: the `top` tokens of it, the token itself, and all others together.

        index: place in the strip, by default the first rejected token. Raises `InputError` where nothing was proposed
        or nothing recorded.
        """
        rows = strip_rows(trace, sequence)
        if index is None:
            rejected = rows.index[rows["outcome"] == "rejected"]
            index = int(rejected[0]) if len(rejected) else 0
        if not 0 <= index < len(rows):
            raise InputError(f"there is no token {index}; the sequence has {len(rows)}, counted from 0")
        table = distribution_table(trace, rows.iloc[index], top)
        if table is None:
            raise InputError("the trace holds no distributions; record it with capture='top-k'")
        if table["q"].isna().any():
            raise InputError(f"nothing was proposed at token {index}, so there is no q; choose a proposed token")
        p, q = (_normalised(table[name].to_numpy(dtype=float)).tolist() for name in "pq")
        return cls(p, q, table["label"].tolist(), **traits)

    def show(self, p: Sequence[float], q: Sequence[float], tokens: Sequence[str] | None = None) -> None:
        """Show other distributions, over 4 to 8 tokens. Raises `InputError` for other sizes."""
        p, q = distribution("p", p), distribution("q", q)
        tokens = list("abcdefgh"[: len(p)]) if tokens is None else list(tokens)
        if not len(p) == len(q) == len(tokens):
            raise InputError(f"p has {len(p)} tokens, q {len(q)}, with {len(tokens)} names; give as many of each")
        if len(p) not in SIZES:
            raise InputError(f"p and q have {len(p)} tokens; the playground shows {SIZES[0]} to {SIZES[-1]}")
        with self.hold_trait_notifications():
            self.tokens, self.p, self.q = tokens, p.tolist(), q.tolist()

    @property
    def position(self) -> OnePosition:
        """What happens with these p and q under this rule. Raises `InputError` where p and q differ in size."""
        own = {name: self.settings[name] for name in RULES[self.rule].settings}
        return one_position(self.p, self.q, self.rule, **own)

    @traitlets.validate("p", "q")
    def _is_distribution(self, proposal: Any) -> list[float]:
        return distribution(proposal["trait"].name, proposal["value"]).tolist()

    @traitlets.validate("rule")
    def _is_rule(self, proposal: Any) -> str:
        rule_named(proposal["value"])
        return proposal["value"]

    @traitlets.validate("settings")
    def _are_settings(self, proposal: Any) -> dict[str, float]:
        """All that are not given keep their default."""
        for name, value in proposal["value"].items():
            limits = SETTINGS.get(name)
            if limits is None:
                raise InputError(f"there is no setting {name!r}; choose of {', '.join(SETTINGS)}")
            if not limits.low <= value <= limits.high:
                raise InputError(f"{name} is {value!r}; it must be from {limits.low:g} to {limits.high:g}")
        return {name: setting.default for name, setting in SETTINGS.items()} | proposal["value"]

    def to_html(self) -> str:
        """The figures as they stand, as HTML that needs neither scripts nor a kernel, for exports."""
        shown = playground_html(self.title, self.tokens, RULES[self.rule], self.position)
        return f"<style>{_CSS}</style>" + pictures(shown, _CSS, "swb swb-scripted swb-play")

    def _repr_html_(self) -> str:
        return self.to_html()
