"""One forward over 1, 2, 5 and 9 tokens: what a verification costs in transformers and here.

    python benchmarks/forward.py
    python benchmarks/forward.py --model ~/models/small --model ~/models/big --runs 15 --out forward.json

Five ways over the same weights, which are held once but for copies of them: transformers' own forward, the same with
its linear layers sped up, the fused forward, the fused forward with torch's own products, and compiled steps. In every
run each of them forwards each number of tokens twice after the same context, in rotating order, so that a drift of the
machine hits all alike; the second counts, which finds in the processor's cache what a decoding model finds there.
Printed are medians of ms, v(n) = T(n) / T(1) over the fastest T(1) of all, and ratios of medians.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from specworkbench.cli.screen import quiet_transformers
from specworkbench.engine import LanguageModel, load_model
from specworkbench.experiments.environment import environment_of

TOKENS = (1, 2, 5, 9)
TRANSFORMERS, COMPILED = "transformers", "compiled"
WAYS = {
    TRANSFORMERS: {"fused": False, "products": False},
    "sped-up": {"fused": False, "products": True},
    "fused": {"fused": True, "products": True},
    "fused-plain": {"fused": True, "products": False},
    COMPILED: {"fused": True, "products": False},
}
"""Options of a language model, by the name of the way."""
Times = dict[tuple[str, int], np.ndarray]
"""{(way, tokens): (runs,) ms}."""


@dataclass(frozen=True)
class Way:
    """One way to compute a model: a forward over n tokens after the context, undone afterwards."""

    model: LanguageModel
    forward: Callable[[int], None]


def ways_of(name: str, dtype: str | None, context: int, names: list[str], tokens: list[int]) -> dict[str, Way]:
    """Ways over one set of weights. The fused ones are made first: they lay weights side by side."""
    loaded = load_model(name, dtype=dtype, device="cpu", **WAYS[TRANSFORMERS])
    ways = {}
    for way in sorted(names, key=lambda way: not WAYS[way]["fused"]):
        parameters = {id(parameter): parameter for parameter in loaded.model.parameters()}
        modules = copy.deepcopy(loaded.model, parameters)  # new modules over the same parameters
        model = LanguageModel(modules, loaded.tokenizer, name, **WAYS[way])
        if way == COMPILED:
            model.compile()
        ways[way] = Way(model, forwarding(model, context, tokens))
    return {way: ways[way] for way in names}


def forwarding(model: LanguageModel, context: int, tokens: list[int]) -> Callable[[int], None]:
    """A forward over n tokens, one of `tokens`, after `context` cached ones."""
    ids = torch.arange(context + max(tokens)) % 1000
    cache = model.new_cache()
    cache.reserve(len(ids))
    for n in tokens:
        model.expect(n, n)
    model.prepare(cache)
    model.forward(ids[:context], cache, rows=1)

    def forward(n: int) -> None:
        model.forward(ids[context : context + n], cache)
        cache.rollback(n)

    return forward


def measure(ways: dict[str, Way], runs: int, tokens: list[int]) -> Times:
    """Interleaved; of two forwards in a row the second is timed."""
    cells = [(way, n) for way in ways for n in tokens]
    times: dict[tuple[str, int], list[float]] = {cell: [] for cell in cells}
    for run in tqdm(range(runs), unit="run", dynamic_ncols=True):
        start = run % len(cells)
        for way, n in cells[start:] + cells[:start]:
            ways[way].forward(n)
            begun = perf_counter()
            ways[way].forward(n)
            times[way, n].append((perf_counter() - begun) * 1e3)
    return {cell: np.array(values) for cell, values in times.items()}


def figures_of(times: Times) -> dict[str, dict[str, dict[int, float]]]:
    """{way: {"ms", "v", "over_transformers": {tokens: value}}}, of medians."""
    medians = {cell: float(np.median(values)) for cell, values in times.items()}
    fastest = min(value for (_, n), value in medians.items() if n == 1)
    tokens = dict.fromkeys(n for _, n in times)
    return {
        way: {
            "ms": {n: medians[way, n] for n in tokens},
            "v": {n: medians[way, n] / fastest for n in tokens},
            "over_transformers": {n: medians[way, n] / medians[TRANSFORMERS, n] for n in tokens},
        }
        for way in dict.fromkeys(way for way, _ in times)
    }


def show(name: str, figures: dict[str, dict[str, dict[int, float]]], ways: dict[str, Way], runs: int) -> None:
    """A table, what forms were used, and what copies of weights add."""
    console = Console(highlight=False)
    heads = ("tokens", "ms", "v", "over transformers'")
    table = Table("", *heads, title=f"{name}: medians of {runs} runs", title_justify="left")
    for way, of_way in figures.items():
        for n in of_way["ms"]:
            ms, v, ratio = (of_way[kind][n] for kind in ("ms", "v", "over_transformers"))
            table.add_row(way if n == 1 else "", str(n), f"{ms:.1f}", f"{v:.2f}", f"{ratio:.2f}")
    console.print(table)
    for name, way in ways.items():
        if used := way.model.describe()["products"]:
            console.print(f"{name}: copies of {used['packed_bytes'] / 2**20:.0f} MiB; {used['forms']}")


def main(
    model: list[str] = typer.Option(["embedded"], help="Repeat for several; one after the other."),
    dtype: str | None = None,
    context: int = typer.Option(64, help="Tokens cached before."),
    tokens: list[int] = typer.Option(list(TOKENS), help="Tokens of a forward; 1 is always among them."),
    runs: int = 15,
    way: list[str] = typer.Option(list(WAYS), help="Fewer ways take less memory; transformers is always among them."),
    out: str | None = typer.Option(None, help="A file for all figures, JSON."),
) -> None:
    """Print the comparison for each model."""
    quiet_transformers()
    results, tokens = [], sorted({1, *tokens})
    for name in model:
        ways = ways_of(name, dtype, context, list(dict.fromkeys([TRANSFORMERS, *way])), tokens)
        times = measure(ways, runs, tokens)
        figures, environment = figures_of(times), environment_of(ways[TRANSFORMERS].model)
        show(name, figures, ways, runs)
        results.append(
            {
                "model": name, "context": context, "runs": runs, "environment": environment, "figures": figures,
                "products": {name: one.model.describe()["products"] for name, one in ways.items()},
                "ms": {f"{name}, {n} tokens": values.tolist() for (name, n), values in times.items()},
            }
        )  # fmt: skip
        del ways
    print(", ".join(f"{key} {value}" for key, value in environment.items()))
    if out is not None:
        Path(out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
