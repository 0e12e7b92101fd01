"""Side by side with transformers' `generate` and assisted generation: same models, prompts, sampling, one run.

    python benchmarks/against_transformers.py
    python benchmarks/against_transformers.py --target ~/models/big --draft ~/models/small --prompts general

Every prompt is decoded by every contender in turn, the order rotating, so that a drift of the machine hits all alike.
Printed are medians over prompts and runs of ms per emitted token, and their ratios. Assisted generation is given a fair
setting: gamma tokens, schedule "constant", confidence threshold 0, and no top-k of its own.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from tqdm import tqdm
from transformers import GenerationConfig

from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, SamplingSettings, load_pair, make_proposer
from specworkbench.engine.run import library_versions
from specworkbench.workloads import load_prompts

Contender = Callable[[str, int], int]
"""Decodes a prompt with a seed and gives the number of new tokens."""


def ours(
    target: LanguageModel, draft: LanguageModel | None, settings: DecodeSettings, capture: str | None
) -> Contender:
    """This workbench: plain without a draft."""

    def run(prompt: str, seed: int) -> int:
        proposer = None if draft is None else make_proposer("draft_model", draft=draft)
        decoder = Decoder(target, proposer, settings=settings, capture=capture, seed=seed)
        return len(decoder.run(prompt).token_ids)

    return run


def theirs(target: LanguageModel, draft: LanguageModel | None, settings: DecodeSettings) -> Contender:
    """transformers: `generate`, with the draft as assistant where there is one."""
    sampling = settings.sampling
    options = {"do_sample": False} if sampling.greedy else {"do_sample": True, "temperature": sampling.temperature}
    config = GenerationConfig(
        max_new_tokens=settings.max_new_tokens, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=None, **options
    )
    assistant = {}
    if draft is not None:
        model = copy.copy(draft.model)
        model.generation_config = GenerationConfig(
            num_assistant_tokens=settings.gamma,
            num_assistant_tokens_schedule="constant",
            assistant_confidence_threshold=0.0,
            pad_token_id=0,
            eos_token_id=None,
        )
        assistant = {"assistant_model": model}

    def run(prompt: str, seed: int) -> int:
        torch.manual_seed(seed)
        ids = torch.tensor([target.encode(prompt)], device=target.device)
        mask = torch.ones_like(ids)
        with torch.inference_mode():
            output = target.model.generate(ids, attention_mask=mask, generation_config=config, **assistant)
        return output.shape[1] - ids.shape[1]

    return run


def measure(contenders: dict[str, Contender], prompts: list[str], runs: int) -> dict[str, np.ndarray]:
    """{name: (prompts x runs,) ms per emitted token}, interleaved; one warm-up of each is not counted."""
    names = list(contenders)
    for name in names:
        contenders[name](prompts[0], 0)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn, (seed, prompt) in enumerate(tqdm([(seed, prompt) for seed in range(runs) for prompt in prompts])):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            started = perf_counter()
            tokens = contenders[name](prompt, seed)
            times[name].append((perf_counter() - started) * 1e3 / tokens)
    return {name: np.array(values) for name, values in times.items()}


def show(times: dict[str, np.ndarray], title: str) -> None:
    """The medians, and the ratios that matter."""
    medians = {name: float(np.median(values)) for name, values in times.items()}
    table = Table("contender", "ms per token (median)", "tokens/s", title=title)
    for name, median in medians.items():
        table.add_row(name, f"{median:.2f}", f"{1e3 / median:.1f}")
    console = Console()
    console.print(table)
    for what, over, under in (
        ("plain: transformers / ours", "transformers generate", "plain"),
        (
            "speculative: transformers assisted / ours, scalars recorded",
            "transformers assisted",
            "speculative, scalars",
        ),
        ("recording scalars: with / without", "speculative, scalars", "speculative, no recording"),
        ("recording top-k: with / without", "speculative, top-k", "speculative, no recording"),
        ("our speedup: plain / speculative", "plain", "speculative, scalars"),
    ):
        console.print(f"{what}: {medians[over] / medians[under]:.3f}", highlight=False)


def main(
    target: str = "embedded",
    draft: str = "embedded/draft-m",
    prompts: str = "embedded",
    per_bucket: int = 4,
    gamma: int = 4,
    temperature: list[float] = typer.Option([0.0, 1.0], help="Repeat for several."),
    max_new_tokens: int = 64,
    runs: int = 3,
) -> None:
    """Print the comparison for each temperature."""
    pair = load_pair(target, draft)
    untouched = load_pair(target, draft, fused=False, products=False)
    texts = [prompt.text for prompt in load_prompts(prompts, per_bucket=per_bucket)]
    for value in temperature:
        settings = DecodeSettings(gamma, max_new_tokens, SamplingSettings(temperature=value), ignore_eos=True)
        contenders = {
            "plain": ours(pair[0], None, settings, None),
            "transformers generate": theirs(untouched[0], None, settings),
            "speculative, no recording": ours(*pair, settings, None),
            "speculative, scalars": ours(*pair, settings, "none"),
            "speculative, top-k": ours(*pair, settings, "top-k"),
            "transformers assisted": theirs(*untouched, settings),
        }
        times = measure(contenders, texts, runs)
        show(times, f"{target} with {draft}, gamma {gamma}, temperature {value:g}, {len(texts)} prompts x {runs} runs")
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    print(f"{versions}; {pair[0].device}, {pair[0].dtype}, {torch.get_num_threads()} threads, {platform.machine()}")


if __name__ == "__main__":
    typer.run(main)
