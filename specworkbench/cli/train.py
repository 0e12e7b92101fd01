"""`specworkbench train`: a draft or a head for a target, and what it is worth on text it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import INTERRUPTED, check_writable, figure, quiet_transformers, say, screen

if TYPE_CHECKING:
    from specworkbench.trace import Trace

Kind = Annotated[str, typer.Argument(help="What to train: draft, eagle, medusa or mtp.")]
Data = Annotated[
    list[str] | None,
    opt.option("--data", help="embedded, or files and folders of text; may be given again. [default: embedded]"),
]
Out = Annotated[str, opt.option("--out", help="Folder of what is trained.")]
Work = Annotated[
    str, opt.option("--work", help="Folder of features and checkpoints; a run that was stopped goes on from it.")
]
Minutes = Annotated[float, opt.option("--minutes", help="Minutes of training, beside those for the features.")]
Guesses = Annotated[int, opt.option("--guesses", help="Guesses to train for: Medusa's heads, MTP's modules.")]
Windows = Annotated[int, opt.option("--windows", help="Windows of text whose features are kept, at most.")]
Length = Annotated[int, opt.option("--length", help="Tokens in a window.")]
Layers = Annotated[
    str | None,
    opt.option("--layers", help="Hidden states EAGLE reads, such as 2,15,27. [default: three over the depth]"),
]
Vocabulary = Annotated[int, opt.option("--vocabulary", help="Size of EAGLE's own vocabulary; 0: the target's.")]
Width = Annotated[int, opt.option("--width", help="Width of a draft (0: 128) or of an EAGLE head (0: the target's).")]
Depth = Annotated[int, opt.option("--depth", help="Layers of a draft.")]
BatchTokens = Annotated[int, opt.option("--batch-tokens", help="Tokens a step.")]


def train(
    kind: Kind,
    target: opt.Target = "embedded",
    data: Data = None,
    out: Out = "head",
    work: Work = "train-run",
    minutes: Minutes = 20.0,
    guesses: Guesses = 4,
    windows: Windows = 4000,
    length: Length = 512,
    layers: Layers = None,
    vocabulary: Vocabulary = 0,
    width: Width = 0,
    depth: Depth = 1,
    batch_tokens: BatchTokens = 2048,
    seed: opt.Seed = 0,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
) -> None:
    """Train a draft or a head for a target and print its acceptance by position on held-out text.

    Features and the target's rows are cached in --work and serve every kind; Ctrl-C keeps what was done, and the same
    command goes on.
    """
    from specworkbench.cli.report import numbers

    chosen = numbers(layers, int, "layers", "whole numbers") if layers else ()
    check_writable(Path(out) / "config.json", "what is trained")
    from specworkbench.training import recipe

    quiet_transformers()
    asked = recipe.Recipe(
        kind=kind, out=Path(out), work=Path(work), target=target, data=tuple(data or ["embedded"]), minutes=minutes,
        guesses=guesses, windows=windows, length=length, layers=chosen, vocabulary=vocabulary, width=width,
        depth=depth, batch_tokens=batch_tokens, seed=seed, dtype=dtype, device=device,
        fused=fused, products=products,
    )  # fmt: skip
    try:
        traces = recipe.train(asked)
    except KeyboardInterrupt:
        say(f"interrupted; what was done is in {work}, and the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    say(f"{kind} for {target} written to {out}")
    show(traces)


def show(traces: dict[float, Trace]) -> None:
    """Acceptance by position on the held-out text, a line a temperature."""
    from rich.table import Table

    from specworkbench import analysis

    table = Table("temperature", "alpha", "E[N]", "accepted at 1, 2, ...", box=None, padding=(0, 2, 0, 0))
    for temperature, trace in traces.items():
        positions = analysis.acceptance_by_position(trace)["acceptance"]
        table.add_row(
            f"{temperature:g}", figure(analysis.alpha_counts(trace).value),
            figure(analysis.block_efficiency(trace).value, 2), " ".join(figure(value, 2) for value in positions),
        )  # fmt: skip
    screen().print(table)
