"""Options that commands share or that would crowd a signature: name, meaning, where the help shows it."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _option(*names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


_MODELS, _SAMPLING, _OUTPUT = "Models", "Sampling (of target and draft alike)", "Output"

Json = Annotated[bool, _option("--json", help="One JSON object on standard output, and nothing else.", panel=_OUTPUT)]
Seed = Annotated[int, _option("--seed", help="Seed of all random streams.")]
Chat = Annotated[bool, _option("--chat", help="Put the prompt through the model's chat template.")]

Target = Annotated[str, _option("--target", help="embedded, a hub id, a local folder or a GGUF file.", panel=_MODELS)]
Revision = Annotated[str | None, _option("--revision", help="Commit, tag or branch of the target.", panel=_MODELS)]
Draft = Annotated[
    str | None,
    _option(
        "--draft", help="The draft of draft_model. [default: embedded/draft-s, for the embedded target]", panel=_MODELS
    ),
]
DraftRevision = Annotated[str | None, _option("--draft-revision", help="The same, of the draft.", panel=_MODELS)]
Dtype = Annotated[
    str | None,
    _option(
        "--dtype",
        help="float32, bfloat16, float16, float64. [default: float32 on a CPU, else the checkpoint's own]",
        panel=_MODELS,
    ),
]
Device = Annotated[str | None, _option("--device", help="cuda, mps, cpu. [default: the best there is]", panel=_MODELS)]

Temperature = Annotated[float | None, _option("--temperature", help="0 is greedy. [default: 1]", panel=_SAMPLING)]
TopK = Annotated[int | None, _option("--top-k", help="Keep the k most probable tokens; 0 keeps all.", panel=_SAMPLING)]
TopP = Annotated[
    float | None, _option("--top-p", help="Keep the smallest set of this probability; 1 keeps all.", panel=_SAMPLING)
]
MinP = Annotated[
    float | None,
    _option("--min-p", help="Drop tokens below this share of the largest probability; 0 keeps all.", panel=_SAMPLING),
]
RepetitionPenalty = Annotated[
    float | None,
    _option("--repetition-penalty", help="Penalty on tokens that occurred; 1 is none.", panel=_SAMPLING),
]
DraftTemperature = Annotated[
    float | None,
    _option("--draft-temperature", help="A temperature of the draft's own. [default: the target's]", panel=_SAMPLING),
]
GenerationConfig = Annotated[
    bool,
    _option(
        "--generation-config",
        help="Start from the sampling of the model's own generation_config; options given here still win.",
        panel=_SAMPLING,
    ),
]

_SPECULATION = "Speculation"
Proposer = Annotated[
    str, _option("--proposer", help="draft_model, ngram, suffix, or none (plain decoding).", panel=_SPECULATION)
]
Gamma = Annotated[int, _option("--gamma", help="Tokens proposed per round.", panel=_SPECULATION)]
Rule = Annotated[
    str | None,
    _option("--rule", help="token or greedy. [default: greedy at temperature 0, token otherwise]", panel=_SPECULATION),
]
NgramMin = Annotated[int, _option("--ngram-min", help="Shortest suffix that ngram looks up.", panel=_SPECULATION)]
NgramMax = Annotated[int, _option("--ngram-max", help="Longest suffix that ngram looks up.", panel=_SPECULATION)]

_LENGTH = "Where it stops"
MaxNewTokens = Annotated[int, _option("--max-new-tokens", help="Most tokens to decode.", panel=_LENGTH)]
Stop = Annotated[
    list[str] | None, _option("--stop", help="A string that ends the text; may be given again.", panel=_LENGTH)
]
IgnoreEos = Annotated[bool, _option("--ignore-eos", help="Go on after an end-of-sequence token.", panel=_LENGTH)]

TraceFile = Annotated[str | None, _option("--trace", help="Save the trace to this file.", panel=_OUTPUT)]
Capture = Annotated[
    str | None,
    _option(
        "--capture",
        help="Distributions in the trace: none, top-k, full. [default: top-k with --trace, else none]",
        panel=_OUTPUT,
    ),
]
