"""Side by side with transformers: `generate`, assisted generation and prompt lookup; same models, prompts, sampling.

    python -m benchmarks.against_transformers
    python -m benchmarks.against_transformers --setting smollm2 --runs 5 --json smollm2.json
    python -m benchmarks.against_transformers --target ~/models/big --draft ~/models/small --prompts general --chat

Ours records the scalars of every round in all its contenders. transformers' model is its own, loaded as its users load
it, and its settings are fair: gamma tokens a round, schedule "constant", confidence threshold 0, no top-k of its own,
nothing from the checkpoint's generation config; its prompt lookup matches n-grams of the same lengths as ours.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from benchmarks.common import Contender, Ratio, Results, measure, start
from benchmarks.settings import Setting, ours, parser, setting_of
from specworkbench.engine import DecodeSettings, LanguageModel, check_same_vocabulary, make_proposer
from specworkbench.engine.proposers import NgramProposer
from specworkbench.errors import InputError
from specworkbench.experiments.environment import environment_of
from specworkbench.paths import embedded_folder
from specworkbench.workloads import Prompt

AGAINST = {"generate": "plain", "assisted": "draft_model", "lookup": "ngram"}
"""What of transformers is measured, and what of ours beside it."""


def untouched(ours: LanguageModel, share_weights: bool) -> Any:
    """transformers' own model of that name, in the same dtype and place, without the checkpoint's sampling."""
    folder = embedded_folder(ours.name) or Path(ours.name).expanduser()
    source = str(folder) if folder.is_dir() else ours.name
    model = AutoModelForCausalLM.from_pretrained(source, dtype=ours.dtype).to(ours.device).eval()
    model.generation_config = GenerationConfig()
    if share_weights:
        share(model, ours.model)
    return model


def share(theirs: torch.nn.Module, ours: torch.nn.Module) -> None:
    """Let their parameters lie where ours lie, wherever the two are equal. No value and no shape changes.

    Ours may be a part of one joined weight: a block of its rows, which `linear` reads as it reads a weight of its own.
    """
    there = dict(ours.named_parameters())
    for name, parameter in theirs.named_parameters():
        if name in there and torch.equal(there[name], parameter):
            parameter.data = there[name].data


def theirs(
    target: LanguageModel, model: Any, settings: DecodeSettings, chat: bool, draft: Any = None, lookup: bool = False
) -> Contender:
    """transformers from a prompt's text to token ids on the host; draft: its assistant; lookup: by prompt lookup."""
    sampling = settings.sampling
    options: dict[str, Any] = {"do_sample": False}
    if not sampling.greedy:
        options = {"do_sample": True, "temperature": sampling.temperature, "top_k": 0}
    if lookup:
        options |= {
            "prompt_lookup_num_tokens": settings.gamma,
            "max_matching_ngram_size": NgramProposer.settings()["max_n"],
        }
    if draft is not None:  # how to assist stands in the assistant's config
        draft.generation_config = GenerationConfig(
            num_assistant_tokens=settings.gamma,
            num_assistant_tokens_schedule="constant",
            assistant_confidence_threshold=0.0,
        )
    config = GenerationConfig(max_new_tokens=settings.max_new_tokens, **options)

    def run(prompt: Prompt, seed: int) -> int:
        torch.manual_seed(seed)
        ids = torch.tensor([target.encode(prompt.text, chat)], device=target.device)
        with torch.inference_mode():
            output = model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=config, assistant_model=draft
            )
        return len(output[0].tolist()) - ids.shape[1]

    return run


class Pair:
    """The models of a setting: ours, and transformers' own beside them (target only where there is no draft)."""

    def __init__(self, setting: Setting):
        self.setting = setting
        self.target = setting.load(setting.target)
        self.theirs = untouched(self.target, setting.share_weights)
        self.draft = self.their_draft = None
        if "assisted" in setting.against:
            if setting.draft is None:
                raise InputError("assisted generation needs a draft; name one with --draft, or leave assisted out")
            self.draft = setting.load(setting.draft)
            check_same_vocabulary(self.target, self.draft)
            self.their_draft = untouched(self.draft, setting.share_weights)

    def contenders(self, temperature: float) -> tuple[dict[str, Contender], list[Ratio]]:
        """Plain decoding always; of the rest, what the setting asks for."""
        settings, chat = self.setting.decoding(temperature), self.setting.chat
        made = {"plain": ours(self.target, None, settings, "none", chat)}
        ratios = []
        for kind in self.setting.against:
            own, other = AGAINST[kind], f"transformers {kind}"
            made[other] = theirs(
                self.target, self.theirs, settings, chat,
                draft=self.their_draft if kind == "assisted" else None, lookup=kind == "lookup",
            )  # fmt: skip
            ratios.append(Ratio(f"{other} / our {own}", other, own))
            if own != "plain":
                proposer = make_proposer(own, target=self.target, draft=self.draft)
                made[own] = ours(self.target, proposer, settings, "none", chat)
                ratios.append(Ratio(f"our speedup: plain / {own}", "plain", own))
        return made, ratios


def main() -> None:
    """Print the comparison for each temperature."""
    options = parser(__doc__)
    options.add_argument("--against", nargs="+", choices=AGAINST, help="what of transformers is measured")
    options.add_argument(
        "--share-weights", action="store_true", default=None, help="both sides read the same copy, to save memory"
    )
    arguments = options.parse_args()
    setting = setting_of(arguments)
    pair = Pair(setting)
    prompts = setting.load_prompts()
    models = [model.describe() for model in (pair.target, pair.draft) if model is not None]
    results = Results(environment_of(pair.target), asdict(setting) | {"models": models}, arguments.json)
    for temperature in setting.temperatures:
        contenders, ratios = pair.contenders(temperature)
        times = measure(contenders, prompts, setting.runs, setting.max_new_tokens, setting.warm_up(prompts))
        results.add(setting.title(temperature, len(prompts)), times, ratios)
    results.close()


if __name__ == "__main__":
    start(main)
