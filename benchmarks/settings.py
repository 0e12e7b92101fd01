"""What is measured: models, prompts and sampling by the name of a setting, each part replaceable by an option."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from pathlib import Path

from benchmarks.common import Contender
from specworkbench.engine import Decoder, DecodeSettings, LanguageModel, Proposer, SamplingSettings, load_model
from specworkbench.paths import models_dir
from specworkbench.workloads import Prompt, load_prompts


@dataclass(frozen=True)
class Setting:
    """One row of a results table. Fields that are options are described in `parser`.

    buckets: of the prompts, all when empty; chat: through the chat template; against: what of transformers is measured.
    """

    target: str = "embedded"
    draft: str | None = "embedded/draft-m"
    prompts: str = "embedded"
    buckets: tuple[str, ...] = ()
    chat: bool = False
    against: tuple[str, ...] = ("generate", "assisted", "lookup")
    share_weights: bool = False
    gamma: int = 4
    temperatures: tuple[float, ...] = (0.0, 1.0)
    max_new_tokens: int = 64
    per_bucket: int = 4
    runs: int = 3
    dtype: str | None = None
    device: str | None = None
    engine: str | None = None

    def decoding(self, temperature: float) -> DecodeSettings:
        """The same for every contender: no top-k, no penalty, EOS ignored."""
        sampling = SamplingSettings(temperature=temperature)
        return DecodeSettings(self.gamma, self.max_new_tokens, sampling, ignore_eos=True)

    def load_prompts(self) -> list[Prompt]:
        return load_prompts(self.prompts, buckets=self.buckets or None, per_bucket=self.per_bucket)

    def warm_up(self, prompts: list[Prompt]) -> list[Prompt]:
        """Decoded before the clock starts: every prompt where compiled, as a larger cache has programs of its own."""
        return prompts if self.engine == "compiled" else prompts[:1]

    def load(self, name: str, engine: str | None = None) -> LanguageModel:
        """A model for our side. engine: instead of the setting's own."""
        return load_model(name, dtype=self.dtype, device=self.device, engine=engine or self.engine or "eager")

    def title(self, temperature: float, count: int) -> str:
        """count: prompts."""
        names = [Path(name).name if Path(name).is_absolute() else name for name in (self.target, self.draft) if name]
        return (
            f"{' with '.join(names)}, gamma {self.gamma}, temperature {temperature:g}, "
            f"{count} prompts x {self.runs} runs, {self.max_new_tokens} tokens each"
        )


_REAL = {"prompts": "general", "buckets": ("coding",), "chat": True}
SETTINGS = {
    "embedded": Setting(),
    "smollm2": Setting(
        str(models_dir() / "smollm2"), None, **_REAL, against=("generate", "lookup"), max_new_tokens=128,
    ),
    "qwen": Setting(
        str(models_dir() / "qwen-1.5b"), str(models_dir() / "qwen-0.5b"), **_REAL, against=("generate", "assisted"),
        share_weights=True, per_bucket=2, runs=2,
    ),
}  # fmt: skip
"""One for each pair of models that the results table has a row for."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all commands share. Those without a default take it from the setting."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--setting", choices=SETTINGS, default="embedded", help="models and prompts [default: embedded]")
    add("--target", help="embedded, a hub id or a local folder")
    add("--draft", help="the draft model, with the target's vocabulary")
    add("--prompts", help="embedded, general or a JSON Lines file")
    add("--bucket", dest="buckets", nargs="+", help="buckets of the prompts")
    add("--per-bucket", type=int, help="prompts of each bucket")
    add("--chat", action=argparse.BooleanOptionalAction, default=None, help="through the chat template")
    add("--gamma", type=int, help="tokens proposed per round")
    add("--temperature", dest="temperatures", type=float, nargs="+")
    add("--max-new-tokens", type=int)
    add("--runs", type=int, help="seeds of each prompt")
    add("--dtype", help="float32, bfloat16, ... [default: float32 on a CPU, else the checkpoint's own]")
    add("--device", help="cuda, mps, cpu [default: the best there is]")
    add("--engine", help="of our own side: eager or compiled [default: eager]")
    add("--json", metavar="FILE", help="write all times, figures and the environment")
    return made


def setting_of(arguments: argparse.Namespace) -> Setting:
    """The setting that was named, with what was given in its place."""
    given = {field.name: getattr(arguments, field.name, None) for field in fields(Setting)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return replace(SETTINGS[arguments.setting], **{name: value for name, value in given.items() if value is not None})


def ours(
    target: LanguageModel, proposer: Proposer | None, settings: DecodeSettings, capture: str | None, chat: bool
) -> Contender:
    """This workbench from a prompt's text to the text that follows; plain without a proposer.

    capture: what is recorded, as in `Decoder`; the time lasts until all of it is on the host.
    """

    def run(prompt: Prompt, seed: int) -> int:
        decoder = Decoder(target, proposer, settings=settings, capture=capture, seed=seed, chat=chat)
        tokens = len(decoder.run(prompt.text).token_ids)
        if hasattr(decoder.recorder, "flush"):  # a recorder that puts work off
            decoder.recorder.flush()
        return tokens

    return run
