"""`specworkbench samples`: do two files hold draws of the same distribution?"""

from __future__ import annotations

from typing import Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import only_json, printable, screen
from specworkbench.errors import InputError

DIFFER = 1
"""Exit code where the two samples differ."""
LEAST_LEVEL = 1e-4

First = Annotated[str, typer.Argument(help="Samples of one engine, as JSON Lines.", show_default=False)]
Second = Annotated[str, typer.Argument(help="Samples of the other, of the same prompts.", show_default=False)]
Level = Annotated[float, opt.option("--level", help="Probability of a false alarm, all tests together.")]


def samples(first: First, second: Second, level: Level = 1e-3, seed: opt.Seed = 0, as_json: opt.Json = False) -> None:
    """Test whether two engines draw from the same distribution, by their outputs alone.

    A line is {"prompt": NAME, "token_ids": [...]}, an output each; draw at least a few hundred outputs of every prompt,
    with the same settings. Exit code 0 if no difference was found, 1 if there is one.
    """
    with only_json(as_json):
        from specworkbench.equivalence.others import permutations_for, read_samples, two_samples

        if not LEAST_LEVEL <= level < 1.0:
            raise InputError(
                f"--level is {level:g}; samples are compared by permutations, which reach {LEAST_LEVEL:g} to 1"
            )
        a, b = read_samples(first), read_samples(second)
        found = two_samples(
            a.outputs, b.outputs, groups_a=a.groups, groups_b=b.groups, level=level,
            permutations=permutations_for(level), seed=seed,
        )  # fmt: skip
    if as_json:
        from specworkbench.experiments.files import to_json

        print(to_json(found.as_dict()))
    else:
        for test in found.tests:
            shown = f"p = {found.adjusted[test.name]:.2g} after Holm" if test.applies else "does not apply"
            screen().print(printable(f"{test.name}: {shown} ({test.detail})"), soft_wrap=True)
        screen().print(printable(found.sentence), soft_wrap=True)
    if found.differ:
        raise typer.Exit(DIFFER)
