"""`train`: from a target and text to a draft or a head on disk, and what it is worth on text it has not seen."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import LlamaForCausalLM

from specworkbench import analysis
from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, SamplingSettings, load_model, make_proposer
from specworkbench.engine.heads.files import save_head
from specworkbench.engine.run import library_versions
from specworkbench.errors import InputError
from specworkbench.files import whole_file
from specworkbench.trace import Trace
from specworkbench.training.family import export, make_model
from specworkbench.training.features import Batch, FeatureStore, StoreSettings
from specworkbench.training.heads import head_losses, overlaps, rank_acceptance, row_loss
from specworkbench.training.make_heads import draft_config, make_eagle, make_medusa, make_mtp, reduced_vocabulary
from specworkbench.training.text import Text, read_text
from specworkbench.training.trainer import Progress, Settings, Trainer

__all__ = ["Recipe", "default_layers"]

KINDS = ("draft", "eagle", "medusa", "mtp")
PROMPT_TOKENS, NEW_TOKENS = 96, 64
"""Of a held-out window: how much is given, and how much is decoded."""


@dataclass(frozen=True)
class Recipe:
    """What to train, on what, for how long.

    kind: of KINDS; data: 'embedded' or files; guesses: how many the head is unrolled for (heads of Medusa, modules of
    MTP); windows, length: text in the store, windows of `length` tokens; layers: hidden states an EAGLE head reads, by
    default three over the depth and the last; vocabulary: size of EAGLE's own, 0 for the target's; width: of an
    EAGLE head (0: the target's) or a draft (0: 128); depth: of a draft; fused, products: see
    `load_model`. Raises `InputError` for values out of range.

    >>> Recipe("eagle", Path("head"), Path("work"), minutes=5.0).guesses
    4
    """

    kind: str
    out: Path
    work: Path
    target: str = "embedded"
    data: tuple[str, ...] = ("embedded",)
    minutes: float = 20.0
    guesses: int = 4
    windows: int = 4000
    length: int = 512
    layers: tuple[int, ...] = ()
    vocabulary: int = 0
    width: int = 0
    depth: int = 1
    batch_tokens: int = 2048
    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    fused: bool = True
    products: bool = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"there is nothing to train called {self.kind!r}; choose one of {', '.join(KINDS)}")
        least = {"minutes": 0, "guesses": 0, "windows": 0, "length": 31, "depth": 0, "batch_tokens": 0}
        for name, limit in least.items():
            if not getattr(self, name) > limit:
                raise InputError(f"{name} is {getattr(self, name)}; it must be above {limit}")
        if self.width % 32:
            raise InputError(f"width is {self.width}; it must be a multiple of 32, the width of an attention head")


def train(recipe: Recipe) -> dict[float, Trace]:
    """Fill the stores, train, write to `recipe.out`; traces of decoding held-out text with it, by temperature.

    Every stage goes on where a run that was stopped had come to. The stores in `recipe.work` serve every kind.
    """
    target = load_model(
        recipe.target, dtype=recipe.dtype, device=recipe.device, fused=recipe.fused, products=recipe.products
    )
    target.model.requires_grad_(False)
    text = read_text(list(recipe.data), target, recipe.length)
    layers = recipe.layers or default_layers(target)
    train_store, heldout = stores(recipe, target, text, layers)
    ids = _frequent(recipe, target, train_store)
    model = _model(recipe, target, layers, ids)
    trainer = Trainer(
        {recipe.kind: model}, train_store, _settings(recipe), recipe.work / recipe.kind,
        loss_of=_loss(recipe, target, ids), at_checkpoint=lambda trainer: _look(trainer, recipe, target, heldout, ids),
    )  # fmt: skip
    trainer.run()
    if recipe.kind == "medusa":
        windows = heldout.batch(0, heldout.settings.windows, recipe.length)
        model.shape = replace(model.shape, ranks=rank_acceptance(model, windows))
    if recipe.kind == "draft":
        export(model, target.tokenizer, recipe.out)
    else:
        save_head(model, recipe.out, target, recipe.kind)
    traces = heldout_traces(recipe, target, text)
    with whole_file(recipe.out / "training.json", "the record of the training") as file:
        file.write((json.dumps(record(recipe, trainer.progress, traces), indent=1) + "\n").encode())
    return traces


def record(recipe: Recipe, progress: Progress, traces: dict[float, Trace]) -> dict[str, Any]:
    """How it was trained and what it is worth on held-out text: null where nothing was examined."""
    settings = {name: value for name, value in asdict(recipe).items() if name not in ("out", "work", "device")}
    heldout = {
        f"temperature {temperature:g}": {
            "alpha_counts": analysis.alpha_counts(trace).value,
            "block_efficiency": analysis.block_efficiency(trace).value,
            "acceptance_by_position": [
                None if math.isnan(value) else round(value, 4)
                for value in analysis.acceptance_by_position(trace)["acceptance"]
            ],
        }
        for temperature, trace in traces.items()
    }
    return {
        "recipe": settings, "steps": progress.step, "tokens": progress.tokens,
        "minutes": round(progress.seconds / 60, 1), "versions": library_versions(), "heldout": heldout,
    }  # fmt: skip


def stores(
    recipe: Recipe, target: LanguageModel, text: Text, layers: tuple[int, ...]
) -> tuple[FeatureStore, FeatureStore]:
    """What to learn from, and what to look at meanwhile; filled. Every kind has the same, so that all share them."""
    count = max(1, min(recipe.windows, text.windows(recipe.length)))
    made = []
    for name, mixture, windows in (("features", text.train, count), ("heldout", text.heldout, 16)):
        settings = StoreSettings(recipe.target, target.revision, text.source, layers, windows, recipe.length)
        store = FeatureStore(recipe.work / name, settings, target)
        store.fill(target, lambda window, source=mixture: source.batch(window, 1, recipe.length)[0, : recipe.length])
        made.append(store)
    return made[0], made[1]


def default_layers(target: LanguageModel) -> tuple[int, ...]:
    """Hidden states at three and at six eighths of the depth, and the last, after the norm.

    >>> from specworkbench.engine import load_model
    >>> default_layers(load_model("embedded"))
    (3, 6, -1)
    """
    depth = target.model.config.get_text_config().num_hidden_layers
    return max(1, 3 * depth // 8), max(1, 3 * depth // 4), -1


def heldout_traces(recipe: Recipe, target: LanguageModel, text: Text, prompts: int = 12) -> dict[float, Trace]:
    """Decode the beginnings of held-out windows with what was trained, at temperature 0 and 1."""
    name = "draft_model" if recipe.kind == "draft" else recipe.kind
    proposer = make_proposer(name, target=target, draft=str(recipe.out))
    traces = {}
    for temperature in (0.0, 1.0):
        settings = DecodeSettings(recipe.guesses, NEW_TOKENS, SamplingSettings(temperature=temperature))
        decoder = Decoder(target, proposer, settings=settings, seed=recipe.seed)
        for number in tqdm(range(prompts), unit="prompt", desc=f"held out, temperature {temperature:g}"):
            ids = text.heldout.batch(number, 1, min(PROMPT_TOKENS, recipe.length))[0]
            decoder.run(target.tokenizer.decode(ids), id=f"heldout-{number}")
        traces[temperature] = decoder.trace()
    return traces


def _settings(recipe: Recipe) -> Settings:
    return Settings(
        minutes=recipe.minutes, batch_tokens=recipe.batch_tokens, length=recipe.length, long_length=recipe.length,
        long_share=0.0, other_rate=2e-3, seed=recipe.seed,
    )  # fmt: skip


def _frequent(recipe: Recipe, target: LanguageModel, store: FeatureStore) -> torch.Tensor | None:
    """The tokens of EAGLE's reduced vocabulary, those the target gives most; None where it has the whole one."""
    if recipe.kind != "eagle" or not 0 < recipe.vocabulary < target.vocab_size:
        return None
    return reduced_vocabulary(store.token_counts(target.vocab_size), recipe.vocabulary)


def _model(recipe: Recipe, target: LanguageModel, layers: tuple[int, ...], ids: torch.Tensor | None) -> Any:
    if recipe.kind == "draft":
        return make_model(draft_config(target, recipe.width or 128, recipe.depth), seed=recipe.seed)
    if recipe.kind == "eagle":
        return make_eagle(target, layers, ids, recipe.width, seed=recipe.seed)
    make = {"mtp": make_mtp, "medusa": make_medusa}[recipe.kind]
    return make(target, recipe.guesses, seed=recipe.seed)


def _loss(recipe: Recipe, target: LanguageModel, ids: torch.Tensor | None):
    if recipe.kind == "draft":
        return _draft_losses
    return head_losses(recipe.guesses, _places(target, ids))


def _places(target: LanguageModel, ids: torch.Tensor | None) -> torch.Tensor | None:
    if ids is None:
        return None
    return torch.full((target.vocab_size,), -1).index_copy_(0, ids, torch.arange(len(ids)))


def _draft_losses(models: dict[str, LlamaForCausalLM], batch: Batch) -> dict[str, torch.Tensor]:
    """Cross entropy of a draft's rows with the target's."""
    return {
        name: row_loss(model(input_ids=batch.ids, use_cache=False).logits, batch.top, batch.probs, None)
        for name, model in models.items()
    }


@torch.no_grad()
def _look(
    trainer: Trainer, recipe: Recipe, target: LanguageModel, heldout: FeatureStore, ids: torch.Tensor | None
) -> None:
    """Print the overlap with the target's rows, guess by guess, on held-out windows."""
    model, batch = trainer.models[recipe.kind], heldout.batch(0, 8, recipe.length)
    if recipe.kind == "draft":
        found = [float(_draft_losses(trainer.models, batch)["draft"])]
        what = "held-out loss"
    else:
        found, what = overlaps(model, batch, recipe.guesses, _places(target, ids)), "held-out overlap by guess"
    shown = " ".join(f"{value:.3f}" for value in found)
    tqdm.write(f"{recipe.kind} step {trainer.progress.step}, {trainer.progress.tokens} tokens: {what} {shown}")

