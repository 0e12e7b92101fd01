"""The loop's own time: what a round takes beyond the forwards of its models, as a share of these.

    python -m benchmarks.loop
    python -m benchmarks.loop --setting smollm2 --engine compiled

Own is all of a round but the forwards: rows from logits, draws, the rule, the synchronisation, both caches' rollback,
and recording the scalars until they are on the host. Rounds that the budget shortened do not count. Plain rounds and
those of the draft model (n-grams, where there is none) are decoded in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import start
from benchmarks.settings import parser, setting_of
from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, Proposer, decode_rounds, make_proposer
from specworkbench.experiments.environment import environment_of
from specworkbench.experiments.files import to_json, write_whole
from specworkbench.workloads import Prompt


class Forwards:
    """How long the forwards of some models take: their `forward` is replaced by one that is timed."""

    def __init__(self, *models: LanguageModel):
        self.seconds = 0.0
        for model in models:
            model.forward = self._timed(model.forward)

    def _timed(self, forward: Any) -> Any:
        def timed(*args: Any, **options: Any) -> Any:
            started = perf_counter()
            result = forward(*args, **options)
            self.seconds += perf_counter() - started
            return result

        return timed


def rounds(
    target: LanguageModel, proposer: Proposer | None, settings: DecodeSettings, prompt: Prompt, chat: bool, seed: int,
    forwards: Forwards,
) -> Iterator[tuple[float, float]]:  # fmt: skip
    """Seconds in the forwards and beyond them, of each round that nothing shortened; what is recorded is fetched at the
    end, and each round bears its part of that."""
    decoder = Decoder(target, proposer, settings=settings, seed=seed, chat=chat)
    found, before = [], None
    for step in decode_rounds(decoder.start(prompt.text)):
        decoder.recorder.record(step)
        now = perf_counter(), forwards.seconds
        if before is not None and not step.shortened:
            inside = now[1] - before[1]
            found.append((inside, now[0] - before[0] - inside))
        before = now
    started = perf_counter()
    decoder.recorder.flush()
    fetched = (perf_counter() - started) / (step.index + 1)
    yield from ((inside, own + fetched) for inside, own in found)


def main() -> None:
    """Print the shares for each temperature."""
    arguments = parser(__doc__).parse_args()
    setting = setting_of(arguments)
    target = setting.load(setting.target)
    draft = setting.load(setting.draft) if setting.draft else None
    name = "draft_model" if draft else "ngram"
    weights = {"draft": draft} if draft else {}
    proposers = {"plain": None, name: make_proposer(name, target=target, **weights)}
    forwards = Forwards(*(model for model in (target, draft) if model is not None))
    found: dict[str, Any] = {"environment": environment_of(target), "settings": asdict(setting), "parts": []}
    for temperature in setting.temperatures:
        settings, table = setting.decoding(temperature), Table("rounds", "forwards ms", "own ms", "own / forwards", "n")
        times: dict[str, list[tuple[float, float]]] = {what: [] for what in proposers}
        for run in range(-1, setting.runs):  # the first is a warm-up
            for prompt in setting.load_prompts():
                for what, proposer in proposers.items():
                    timed = list(rounds(target, proposer, settings, prompt, setting.chat, run + 1, forwards))
                    times[what] += timed if run >= 0 else []
        for what, pairs in times.items():
            inside, own = (np.median(column) * 1e3 for column in np.array(pairs).T)
            table.add_row(what, f"{inside:.3f}", f"{own:.3f}", f"{own / inside:.1%}", str(len(pairs)))
            part = {"rounds": what, "temperature": temperature, "forwards_ms": inside, "own_ms": own, "n": len(pairs)}
            found["parts"].append(part)
        console = Console(highlight=False)
        console.print(setting.title(temperature, len(setting.load_prompts())))
        console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in found["environment"].items()))
    if arguments.json:
        write_whole(Path(arguments.json), to_json(found, indent=1) + "\n")


if __name__ == "__main__":
    start(main)
