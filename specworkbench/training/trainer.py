"""The training loop: cross entropy on windows, by the clock or by steps, checkpointed and resumable."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn import functional
from tqdm.auto import tqdm

from specworkbench.files import whole_file
from specworkbench.training.muon import Muon


@dataclass(frozen=True)
class Settings:
    """How a model is trained. Exactly one of `minutes` and `steps` ends the run."""

    minutes: float | None = None  # of training, evaluation and checkpoints included
    steps: int | None = None
    batch_tokens: int = 4096
    length: int = 256  # tokens a sequence
    long_length: int = 1024  # in the last `long_share` of the run
    long_share: float = 0.15
    matrix_rate: float = 0.02
    other_rate: float = 4e-3
    weight_decay: float = 0.01
    warmup: float = 0.02  # share of the run
    flat: float = 0.25  # share of the run before the rate falls linearly to zero
    clip: float = 1.0  # gradient norm
    checkpoint_minutes: float = 3.0
    look_every: int = 4  # checkpoints between two calls of `at_checkpoint`
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.minutes is None) == (self.steps is None):
            raise ValueError(f"minutes is {self.minutes} and steps is {self.steps}: give exactly one of them.")


def rate_factor(progress: float, settings: Settings) -> float:
    """Multiplier of the learning rates at `progress` in [0, 1]: warm-up, flat, linear to zero."""
    rising = (progress + 1e-3) / (settings.warmup + 1e-3)
    falling = (1 - progress) / (1 - settings.flat)
    return max(0.0, min(1.0, rising, falling))


def make_optimizers(model: torch.nn.Module, settings: Settings) -> list[torch.optim.Optimizer]:
    """Muon for hidden matrices, AdamW for embeddings, output matrices and norms; base rates kept as `initial_lr`."""
    named = dict(model.named_parameters())
    matrices = [w for name, w in named.items() if w.ndim == 2 and "embed" not in name and "head" not in name]
    chosen = {id(weight) for weight in matrices}
    others = [w for w in named.values() if id(w) not in chosen]
    made = [
        Muon(matrices, lr=settings.matrix_rate, weight_decay=settings.weight_decay),
        torch.optim.AdamW(others, lr=settings.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return made


def token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy in nats a token. logits: (batch, length, vocab); targets: (batch, length)."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@dataclass
class Progress:
    """Where a run stands; kept in the checkpoint."""

    step: int = 0
    seconds: float = 0.0  # spent training, over all resumed parts
    sequences: dict[str, int] = field(default_factory=lambda: {"short": 0, "long": 0})
    tokens: int = 0


class Source(Protocol):
    """Where batches come from, as a pure function of the number of the first sequence."""

    def batch(self, first: int, count: int, length: int) -> Any:
        """`count` sequences of `length` tokens, from number `first` on."""


class Trainer:
    """Trains `models` together by `loss_of(models, batch) -> {name: loss}`; checkpoints to `folder` and resumes."""

    def __init__(
        self, models: dict[str, torch.nn.Module], source: Source, settings: Settings, folder: Path,
        loss_of: Callable[[dict[str, torch.nn.Module], Any], dict[str, torch.Tensor]] | None = None,
        at_checkpoint: Callable[[Trainer], None] | None = None,
    ) -> None:  # fmt: skip
        self.models, self.source, self.settings = models, source, settings
        self.loss_of = loss_of or plain_losses
        self.at_checkpoint = at_checkpoint
        self.optimizers = {name: make_optimizers(model, settings) for name, model in models.items()}
        self.progress = Progress()
        self.file = Path(folder) / "checkpoint.pt"
        if self.file.exists():
            self._load()

    def share_done(self) -> float:
        """Progress in [0, 1]."""
        if self.settings.steps is not None:
            return min(1.0, self.progress.step / self.settings.steps)
        return min(1.0, self.progress.seconds / (60 * self.settings.minutes))

    def run(self, stop_after: int | None = None) -> None:
        """Train to the end, or for `stop_after` steps; a checkpoint is then written, and when interrupted too."""
        began = time.perf_counter() - self.progress.seconds
        last_step = None if stop_after is None else self.progress.step + stop_after
        try:
            self._advance(began, last_step)
        except KeyboardInterrupt:
            self._save()
            raise
        self._save()

    def _advance(self, began: float, last_step: int | None) -> None:
        """Steps, with a progress bar, until the end or `last_step`. began: the clock when the run would have begun."""
        last_saved, saves = time.perf_counter(), 0
        with tqdm(total=100, initial=int(100 * self.share_done()), unit="%", mininterval=10) as bar:
            while self.share_done() < 1 and self.progress.step != last_step:
                losses = self._step()
                self.progress.seconds = time.perf_counter() - began
                bar.n = round(100 * self.share_done(), 1)
                bar.set_postfix(
                    {"step": self.progress.step, **{k: f"{v:.3f}" for k, v in losses.items()}}, refresh=False
                )
                bar.update(0)
                if time.perf_counter() - last_saved > 60 * self.settings.checkpoint_minutes:
                    self._save()
                    saves += 1
                    if self.at_checkpoint and saves % self.settings.look_every == 1 % self.settings.look_every:
                        self.at_checkpoint(self)
                    last_saved = time.perf_counter()

    def _batch(self) -> Any:
        """The next batch of the source."""
        settings, counts = self.settings, self.progress.sequences
        kind = "long" if self.share_done() >= 1 - settings.long_share else "short"
        length = settings.long_length if kind == "long" else settings.length
        count = max(1, settings.batch_tokens // length)
        batch = self.source.batch(counts[kind], count, length)
        counts[kind] += count
        self.progress.tokens += count * length
        return batch

    def _step(self) -> dict[str, float]:
        """One update of every model: {name: loss in nats a token}."""
        factor = rate_factor(self.share_done(), self.settings)
        losses = self.loss_of(self.models, self._batch())
        for name, loss in losses.items():
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.models[name].parameters(), self.settings.clip)
            for optimizer in self.optimizers[name]:
                for group in optimizer.param_groups:
                    group["lr"] = group["initial_lr"] * factor
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        return {name: loss.item() for name, loss in losses.items()}

    def _save(self) -> None:
        """Weights, optimizers and progress, to a temporary name and renamed."""
        state = {
            "models": {name: model.state_dict() for name, model in self.models.items()},
            "optimizers": {name: [o.state_dict() for o in pair] for name, pair in self.optimizers.items()},
            "progress": vars(self.progress),
        }
        with whole_file(self.file, "the checkpoint") as file:
            torch.save(state, file)

    def _load(self) -> None:
        state = torch.load(self.file, weights_only=True)
        for name, model in self.models.items():
            model.load_state_dict(state["models"][name])
            for optimizer, saved in zip(self.optimizers[name], state["optimizers"][name], strict=True):
                optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])


def plain_losses(models: dict[str, torch.nn.Module], ids: np.ndarray) -> dict[str, torch.Tensor]:
    """Cross entropy with the text itself. ids: (sequences, length + 1)."""
    ids = torch.as_tensor(ids)
    inputs, targets = ids[:, :-1], ids[:, 1:]
    return {
        name: token_loss(model(input_ids=inputs, use_cache=False).logits, targets) for name, model in models.items()
    }
