"""Options that commands share or that would crowd a signature: name, meaning, where the help shows it."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

if TYPE_CHECKING:
    from specworkbench.engine import SamplingSettings


def option(*names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """An option whose help is shown as it is: to rich, a word in brackets would be markup."""
    return typer.Option(*names, help=escape(help), rich_help_panel=panel, **more)


_MODELS, _SAMPLING, _OUTPUT = "Models", "Sampling (of target and draft alike)", "Output"

Json = Annotated[bool, option("--json", help="One JSON object on standard output, and nothing else.", panel=_OUTPUT)]
Seed = Annotated[int, option("--seed", help="Seed of all random streams.")]
Chat = Annotated[bool, option("--chat", help="Put the prompt through the model's chat template.")]

Prompts = Annotated[
    str | None,
    option(
        "--prompts",
        help="A JSON Lines file (this project's, Spec-Bench's, SPEED-Bench's or plain prompts), embedded or general. "
        "[default: what suits the target]",
    ),
]

Target = Annotated[str, option("--target", help="embedded, a hub id, a local folder or a GGUF file.", panel=_MODELS)]
Revision = Annotated[str | None, option("--revision", help="Commit, tag or branch of the target.", panel=_MODELS)]
Draft = Annotated[
    str | None,
    option(
        "--draft",
        help="Weights of the proposer: a model, or a folder with a head. [default: its own, for the embedded target]",
        panel=_MODELS,
    ),
]
DraftRevision = Annotated[
    str | None, option("--draft-revision", help="Commit, tag or branch of the draft.", panel=_MODELS)
]
Dtype = Annotated[
    str | None,
    option(
        "--dtype",
        help="float32, bfloat16, float16, float64. [default: float32 on a CPU, else the checkpoint's own]",
        panel=_MODELS,
    ),
]
Device = Annotated[str | None, option("--device", help="cuda, mps, cpu. [default: the best there is]", panel=_MODELS)]
Fused = Annotated[
    bool,
    option(
        "--fused/--no-fused",
        help="On a CPU, this program's own forward where it knows the architecture, or transformers' for all.",
        panel=_MODELS,
    ),
]
Products = Annotated[
    bool,
    option(
        "--products/--no-products",
        help="On a CPU, products of few rows by the fastest forms, which the first load measures, with packed copies "
        "of weights where they pay, or as torch computes them.",
        panel=_MODELS,
    ),
]
Engine = Annotated[
    str,
    option(
        "--engine",
        help="eager, or compiled: steps of fixed shape as compiled programs (CPU: tens of seconds a model, once, then "
        "kept) or captured graphs (CUDA).",
        panel=_MODELS,
    ),
]

Temperature = Annotated[float | None, option("--temperature", help="0 is greedy. [default: 1]", panel=_SAMPLING)]
TopK = Annotated[int | None, option("--top-k", help="Keep the k most probable tokens; 0 keeps all.", panel=_SAMPLING)]
TopP = Annotated[
    float | None, option("--top-p", help="Keep the smallest set of this probability; 1 keeps all.", panel=_SAMPLING)
]
MinP = Annotated[
    float | None,
    option("--min-p", help="Drop tokens below this share of the largest probability; 0 keeps all.", panel=_SAMPLING),
]
RepetitionPenalty = Annotated[
    float | None,
    option("--repetition-penalty", help="Penalty on tokens that occurred; 1 is none.", panel=_SAMPLING),
]
DraftTemperature = Annotated[
    float | None,
    option("--draft-temperature", help="A temperature of the draft's own. [default: the target's]", panel=_SAMPLING),
]
GenerationConfig = Annotated[
    bool,
    option(
        "--generation-config",
        help="Start from the sampling of the model's own generation_config; options given here still win.",
        panel=_SAMPLING,
    ),
]


def sampling_given(asked: SimpleNamespace) -> dict[str, Any]:
    """The settings of sampling among a command's options, without those that were not given."""
    from specworkbench.engine import SamplingSettings

    values = {setting.name: getattr(asked, setting.name) for setting in fields(SamplingSettings)}
    return {name: value for name, value in values.items() if value is not None}


def draft_sampling(sampling: SamplingSettings, temperature: float | None) -> SamplingSettings | None:
    """The draft's own sampling; None where it has no temperature of its own, and samples as the target does."""
    return None if temperature is None else replace(sampling, temperature=temperature)


_SPECULATION = "Speculation"
Proposer = Annotated[
    str, option("--proposer", help="Who guesses; specworkbench proposers lists them.", panel=_SPECULATION)
]
Setting = Annotated[
    list[str] | None,
    option("--set", help="A setting of the proposer, as NAME=VALUE; may be given again.", panel=_SPECULATION),
]
Gamma = Annotated[int, option("--gamma", help="Tokens proposed per round.", panel=_SPECULATION)]
Controller = Annotated[
    str,
    option(
        "--controller",
        help="NAME[,SETTING=VALUE...]: who chooses gamma round by round, at most --gamma; specworkbench controllers "
        "lists them.",
        panel=_SPECULATION,
    ),
]
Rule = Annotated[
    str | None,
    option(
        "--rule",
        help="NAME[,SETTING=VALUE...]: what decides on guesses; specworkbench rules lists them; trees of guesses take "
        "tree. [default: greedy at temperature 0, token otherwise]",
        panel=_SPECULATION,
    ),
]

_LENGTH = "Where it stops"
MaxNewTokens = Annotated[int, option("--max-new-tokens", help="Most tokens to decode.", panel=_LENGTH)]
MinNewTokens = Annotated[
    int, option("--min-new-tokens", help="No end-of-sequence token before so many tokens; 0: none.", panel=_LENGTH)
]
Stop = Annotated[
    list[str] | None, option("--stop", help="A string that ends the text; may be given again.", panel=_LENGTH)
]
IgnoreEos = Annotated[bool, option("--ignore-eos", help="Go on after an end-of-sequence token.", panel=_LENGTH)]

TraceFile = Annotated[str | None, option("--trace", help="Save the trace to this file.", panel=_OUTPUT)]
Capture = Annotated[
    str | None,
    option(
        "--capture",
        help="Distributions in the trace: none, top-k, full. [default: top-k with --trace, else none]",
        panel=_OUTPUT,
    ),
]
