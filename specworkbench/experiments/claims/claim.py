"""`Claim`: what people say of speculative decoding, the study that tests it, and the rule of the verdict. No torch.

A claim is said without conditions, and tested in several settings (proposer, temperature, ...): its parts. Each part
has an effect with an interval, and a region in which the effect lies if the claim is right:

- the interval lies wholly inside the region: the part holds; wholly outside: it fails; else it is open;
- a claim about `every` setting holds if all parts hold, and does not hold if one fails; a claim that something happens
  in `some` setting holds if one part holds, and does not hold if all fail; else it is not decidable here.

One part may decide a claim, so the intervals of m parts are of the level 1 - 0.05/m (Bonferroni): a verdict is wrong
with a probability of 5 % at most, as far as the bootstrap is right (over few prompts its intervals are somewhat too
narrow). Between the twelve claims nothing is corrected: twelve verdicts are twelve such chances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from specworkbench.experiments.claims.evidence import Evidence
from specworkbench.experiments.claims.sample import Figure, ends

ERROR = 0.05
LEAST_PROMPTS = 6
"""With fewer prompts a bootstrap says little, and nothing is decided."""

HOLDS, FAILS, OPEN = "holds here", "does not hold here", "not decidable here"
UNMEASURED = "not measured yet"
VERDICTS = (HOLDS, FAILS, OPEN, UNMEASURED)


@dataclass(frozen=True)
class Region:
    """Where the effect lies if the claim is right: above `low` and below `high`."""

    low: float = -math.inf
    high: float = math.inf

    def verdict(self, low: float, high: float) -> str:
        """That of an interval."""
        if self.low < low and high < self.high:
            return HOLDS
        return FAILS if high < self.low or low > self.high else OPEN

    def depth(self, value: float) -> float:
        """How far inside the region a value lies; negative outside."""
        return min(value - self.low, self.high - value)


@dataclass(frozen=True)
class Measured:
    """What a claim's experiment gave.

    figures: the effect in each setting, by name; n: prompts behind each; remark: more sentences; bar: why not all
    settings that matter are among them, where that is so: then what only all of them could decide stays open.
    """

    figures: Mapping[str, Figure]
    n: Mapping[str, int]
    remark: str = ""
    bar: str = ""


@dataclass(frozen=True)
class Part:
    """The effect in one setting; low, high: its interval; n: prompts."""

    name: str
    effect: float
    low: float
    high: float
    n: int
    verdict: str


@dataclass(frozen=True)
class Finding:
    """What came of a claim. effect, low, high, n: of the part that decides it, None where nothing was measured.

    level: of the intervals of all parts.

    >>> Finding("mine", "not decidable here", "Two prompts were too few.").effect is None
    True
    """

    claim: str
    verdict: str
    sentence: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    part: str = ""
    level: float | None = None
    parts: tuple[Part, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True)
class Claim:
    """One claim.

    name: on the command line; statement: as people say it; said: where; studies: the names of those that test it
    (`studies_for`); experiment: what is done; effect: what number is judged, and its unit; region, quantifier (every or
    some): the rule; measure: from the studies' evidence, in the order of `studies`, to the effects; change: what would
    change the verdict.

    >>> from specworkbench.experiments.claims import CLAIMS
    >>> CLAIMS[0].name, CLAIMS[0].region, CLAIMS[0].studies
    ('break-even', Region(low=1.75, high=2.25), ('proposers',))
    """

    name: str
    statement: str
    said: str
    studies: tuple[str, ...]
    experiment: str
    effect: str
    region: Region
    measure: Callable[..., Measured] = field(repr=False)
    change: str = ""
    quantifier: str = "every"
    digits: int = 2

    def judge(self, evidence: Mapping[str, Evidence | None]) -> Finding:
        """The finding on the evidence of the studies, by name; those that are missing have not been measured."""
        missing = [name for name in self.studies if evidence.get(name) is None]
        if missing:
            return Finding(self.name, UNMEASURED, f"The study {missing[0]} has not been run.")
        measured = self.measure(*(evidence[name] for name in self.studies))
        parts, level = parts_of(measured, self.region)
        if not parts:
            said = measured.remark or "No setting of the study can tell."
            return Finding(self.name, OPEN, said)
        unfinished = [name for name in self.studies if not evidence[name].complete]
        bar = f"The study {unfinished[0]} is not finished." if unfinished else measured.bar
        verdict = self._verdict(parts, bar)
        decides = self._decides(parts, verdict)
        sentence = " ".join(filter(None, (self._sentence(parts, decides, verdict, bar), measured.remark)))
        return Finding(
            self.name, verdict, sentence, decides.effect, decides.low, decides.high, decides.n, decides.name, level,
            parts,
        )  # fmt: skip

    def _verdict(self, parts: Sequence[Part], bar: str) -> str:
        some = self.quantifier == "some"
        if any(part.verdict == (HOLDS if some else FAILS) for part in parts):
            verdict = HOLDS if some else FAILS
        elif all(part.verdict == (FAILS if some else HOLDS) for part in parts):
            verdict = FAILS if some else HOLDS
        else:
            return OPEN
        takes_all = FAILS if some else HOLDS
        return OPEN if bar and verdict == takes_all else verdict

    def _decides(self, parts: Sequence[Part], verdict: str) -> Part:
        """The part that the verdict rests on: the clearest of those that decide alone, else the least clear."""
        alone = [part for part in parts if part.verdict == verdict] or parts
        clearest = max if self.quantifier == "some" else min
        return clearest(alone, key=lambda part: self.region.depth(part.effect))

    def _sentence(self, parts: Sequence[Part], decides: Part, verdict: str, bar: str) -> str:
        count = {word: sum(part.verdict == word for part in parts) for word in (HOLDS, FAILS, OPEN)}
        each = f"Of {len(parts)} settings {count[HOLDS]} hold, {count[FAILS]} contradict, {count[OPEN]} are open"
        each = "The only setting" + _alone(parts[0].verdict) if len(parts) == 1 else each
        low, high = (f"{end:.{self.digits}f}" for end in (decides.low, decides.high))
        said = f"{each}; {decides.name}: {decides.effect:.{self.digits}f} ({low} to {high})."
        return f"{said} {bar}" if bar and verdict == OPEN else said


def parts_of(measured: Measured, region: Region) -> tuple[tuple[Part, ...], float]:
    """The parts that have a figure, and the level of their intervals."""
    figures = {name: figure for name, figure in measured.figures.items() if np.isfinite(figure[0])}
    level = 1 - ERROR / max(1, len(figures))
    parts = []
    for name, figure in figures.items():
        low, high = ends(figure, level)
        enough = measured.n[name] >= LEAST_PROMPTS and math.isfinite(low)
        verdict = region.verdict(low, high) if enough else OPEN
        parts.append(Part(name, float(figure[0]), low, high, int(measured.n[name]), verdict))
    return tuple(parts), level


def _alone(verdict: str) -> str:
    return {HOLDS: " holds", FAILS: " contradicts", OPEN: " is open"}[verdict]
