"""What recording costs: the same prompts decoded with nothing recorded, scalars, top-k and full rows, in one run.

    python benchmarks/recording.py
    python benchmarks/recording.py --target ~/models/big --draft ~/models/small --prompts general

Every prompt is decoded by every contender in turn, the order rotating, so that a drift of the machine hits all alike.
The clock stops when the numbers are on the host. A seed gives the same tokens whatever is recorded, so that what
recording adds is seen pair by pair: printed are medians of ms per emitted token, and medians over pairs of the ratio
and of the ms added to a round, with intervals by bootstrap over the pairs. Building the tables is timed apart.
"""

from __future__ import annotations

import platform
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, SamplingSettings, load_pair, make_proposer
from specworkbench.engine.run import library_versions
from specworkbench.workloads import load_prompts

CONTENDERS = {"off": None, "scalars": "none", "top-k": "top-k", "full": "full"}
"""What is recorded, and the capture that does it."""
RESAMPLES = 2000


class Run(NamedTuple):
    """ms until the numbers are on the host, ms to build the tables, and what was decoded in that time."""

    ms: float
    ms_tables: float
    tokens: int
    rounds: int


def decode(
    pair: tuple[LanguageModel, LanguageModel], settings: DecodeSettings, capture: str | None, top_k: int, prompt: str,
    seed: int,
) -> Run:  # fmt: skip
    """One prompt from the beginning."""
    proposer, rounds = make_proposer("draft_model", draft=pair[1]), []
    decoder = Decoder(pair[0], proposer, settings=settings, seed=seed, capture=capture, top_k_captured=top_k)
    started = perf_counter()
    result = decoder.run(prompt, on_round=lambda step: rounds.append(step.index))
    if capture is not None:
        decoder.recorder.flush()
    done = perf_counter()
    if capture is not None:
        decoder.trace()
    return Run((done - started) * 1e3, (perf_counter() - done) * 1e3, len(result.token_ids), len(rounds))


def measure(
    pair: tuple[LanguageModel, LanguageModel], settings: DecodeSettings, top_k: int, prompts: list[str], runs: int
) -> dict[str, list[Run]]:
    """{contender: prompts x runs}, interleaved; one warm-up of each is not counted."""
    names = list(CONTENDERS)
    for name in names:
        decode(pair, settings, CONTENDERS[name], top_k, prompts[0], 0)
    found: dict[str, list[Run]] = {name: [] for name in names}
    for turn, (seed, prompt) in enumerate(tqdm([(seed, prompt) for seed in range(runs) for prompt in prompts])):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(decode(pair, settings, CONTENDERS[name], top_k, prompt, seed))
    return found


def interval(values: np.ndarray) -> str:
    """The median, and where 95 % of the medians of resampled values lie."""
    picked = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(np.median(values[picked], axis=1), [2.5, 97.5])
    return f"{np.median(values):.3f} [{low:.3f}, {high:.3f}]"


def show(found: dict[str, list[Run]], title: str) -> None:
    """One line a contender."""
    table = Table("recorded", "ms per token", "with / without", "ms added to a round", "ms a round to build the tables",
                  title=title)  # fmt: skip
    bare = np.array(found["off"])
    for name, of_pairs in found.items():
        ms, ms_tables, tokens, rounds = np.array(of_pairs).T
        line = [name, f"{np.median(ms / tokens):.3f}"]
        if name != "off":
            added = (ms - bare[:, 0]) / rounds
            line += [interval(ms / bare[:, 0]), interval(added), f"{np.median(ms_tables / rounds):.3f}"]
        table.add_row(*line)
    Console(width=120).print(table)


def main(
    target: str = "embedded",
    draft: str = "embedded/draft-m",
    prompts: str = "embedded",
    per_bucket: int = 4,
    gamma: int = 4,
    temperature: float = 1.0,
    top_k: int = 32,
    engine: str = "eager",
    max_new_tokens: list[int] = typer.Option([64, 256], help="Repeat for several."),
    runs: int = 3,
) -> None:
    """Print the comparison for each length of the output."""
    pair = load_pair(target, draft, engine=engine)
    texts = [prompt.text for prompt in load_prompts(prompts, per_bucket=per_bucket)]
    for limit in max_new_tokens:
        settings = DecodeSettings(gamma, limit, SamplingSettings(temperature=temperature), ignore_eos=True)
        found = measure(pair, settings, top_k, texts, runs)
        ms = np.median([run.ms / run.rounds for run in found["off"]])
        show(found, f"{target} with {draft}, gamma {gamma}, temperature {temperature:g}, {limit} tokens, "
             f"{len(texts)} prompts x {runs} runs; a round takes {ms:.2f} ms")  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    print(f"{versions}; {pair[0].device}, {pair[0].dtype}, {torch.get_num_threads()} threads, {platform.machine()}")


if __name__ == "__main__":
    typer.run(main)
