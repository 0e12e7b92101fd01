"""Writes docs/mutants.md: the wrong implementations, how wrong each is, and which tests must see it.

python docs/make_mutants.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

import pandas as pd

from specworkbench.equivalence.mutants import MUTANTS, NULL_CONTROLS, TESTS, Mutant, tv_table

EXACT = 1e-12


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (columns, ["---"] * len(columns), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def distance(value: float) -> str:
    """A total variation with two digits, 0 where only rounding is left."""
    return "0" if value < EXACT else f"{value:.2g}"


def distances(table: pd.DataFrame) -> str:
    """What each mutant does, and its exact total variations."""
    columns = ["mutant", "part", "meaning", "joint TV", "first-token TV", "first shows"]
    rows = [
        [f"`{name}`", part, meaning, distance(joint), distance(first), shows]
        for name, part, meaning, joint, first, shows in table[columns].itertuples(index=False)
    ]
    return markdown(columns, rows)


def catches() -> str:
    """Mutant by test: x where the test must reject it (X: on every seed), else a letter for why it cannot; the letters,
    in words.
    """
    reasons = list(dict.fromkeys(why for mutant in MUTANTS for why in mutant.blind.values()))
    letter = dict(zip(reasons, ascii_lowercase, strict=False))
    rows = [
        [f"`{mutant.name}`", *(mark(mutant, test) or letter[mutant.blind[test]] for test in TESTS)]
        for mutant in MUTANTS
    ]
    words = "\n".join(f"- {letter[why]}: {why}" for why in reasons)
    return f"{markdown(['mutant', *TESTS], rows)}\n\n{words}"


def mark(mutant: Mutant, test: str) -> str:
    """X, x, or nothing where the test is blind."""
    return "X" if test == mutant.sampled else "x" if test in mutant.caught_by else ""


def page(table: pd.DataFrame) -> str:
    """The page. table: `tv_table()` of all mutants and null controls."""
    names = {mutant.name for mutant in MUTANTS}
    mutants, controls = table[table["mutant"].isin(names)], table[~table["mutant"].isin(names)]
    return f"""# Wrong implementations, and what sees them

Each of these {len(mutants)} mutants exchanges one part of the real code for a faulty one, in a few lines
(`specworkbench/equivalence/mutants`). The {len(controls)} null controls are right and only look odd. This page is
written by `python docs/make_mutants.py`.

## How wrong they are

Total variation between the law of the output and the target's own, by exact enumeration of the real decode loop on toy
models (mean of two seeds, on a bench of the mutant's own: mostly 5 tokens, 3 new ones, gamma 2). The first token is
all that a test of single steps sees.

{distances(mutants)}

The null controls, which no test of the output may reject:

{distances(controls)}

## Which tests must see them

x: the test must reject the mutant; sampled tests must with 50,000 tokens or 20,000 outputs, more often than not. X: the
sampled test that is named for the mutant, which `make test-statistics` runs over 200 seeds: it must reject each of them
(on benches where small faults are larger). A letter: it cannot, for the reason below the table. The tests are explained
in `specworkbench/equivalence/mutants/mutant.py`.

{catches()}
"""


if __name__ == "__main__":
    target = Path(__file__).with_name("mutants.md")
    target.write_text(page(tv_table((*MUTANTS, *NULL_CONTROLS))), encoding="utf-8")
    print(target)
