"""All mutants and null controls, and how far from the target's law each is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd

from specworkbench.equivalence.law import decode_law_memoised, first_tokens, product_law, total_variation
from specworkbench.equivalence.mutants.controls import NULL_CONTROLS
from specworkbench.equivalence.mutants.loops import LOOPS
from specworkbench.equivalence.mutants.mutant import Mutant
from specworkbench.equivalence.mutants.proposals import PROPOSALS
from specworkbench.equivalence.mutants.rules import RULES
from specworkbench.equivalence.mutants.trees import TREES
from specworkbench.equivalence.mutants.uniforms import UNIFORMS

MUTANTS = (*RULES, *PROPOSALS, *LOOPS, *UNIFORMS, *TREES)


@cache
def exact_tv(mutant: Mutant, seed: int = 0) -> tuple[float, float]:
    """Total variation between the law of its output and the target's own: joint, and of the first token alone.

    By enumeration, on its bench with this seed. Raises `ArithmeticError` where the probabilities do not sum to 1.

    >>> from specworkbench.equivalence import NULL_CONTROLS
    >>> [(mutant.name, round(exact_tv(mutant)[0], 3)) for mutant in (MUTANTS[0], NULL_CONTROLS[0])]
    [('accept_always', 0.297), ('equality', 0.0)]
    """
    setup = mutant.bench(seed)
    expected, law = product_law(setup.target, setup.prompt, setup.settings), decode_law_memoised(mutant.apply(setup))
    if abs(sum(law.values()) - 1.0) > 1e-12:
        raise ArithmeticError(f"the outputs of {mutant.name} have probability {sum(law.values())!r} in all, not 1")
    return total_variation(law, expected), total_variation(first_tokens(law), first_tokens(expected))


def tv_table(mutants: Sequence[Mutant] = (*MUTANTS, *NULL_CONTROLS), seeds: Sequence[int] = (0, 1)) -> pd.DataFrame:
    """One row a mutant: its exact total variations, means over the seeds, and which tests must see it or cannot.

    >>> table = tv_table([MUTANTS[0], NULL_CONTROLS[0]], seeds=[0])
    >>> table[["mutant", "part", "joint TV", "first-token TV"]].round(3)
              mutant  part  joint TV  first-token TV
    0  accept_always  rule     0.297             0.2
    1       equality  rule     0.000             0.0
    """
    rows = []
    for mutant in mutants:
        found = [exact_tv(mutant, seed) for seed in seeds]
        joint, first = (sum(column) / len(seeds) for column in zip(*found, strict=True))
        rows.append(
            {
                "mutant": mutant.name,
                "part": mutant.part,
                "meaning": mutant.meaning,
                "joint TV": joint,
                "first-token TV": first,
                "first shows": mutant.shows,
                "caught by": ", ".join(mutant.caught_by),
                "cannot see, and why": "; ".join(f"{test}: {why}" for test, why in mutant.blind.items()),
            }
        )
    return pd.DataFrame(rows)
