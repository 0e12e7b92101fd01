"""`specworkbench equivalence`: does the output follow the target? Tests of real draws, with their controls."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.equivalence_words import PARTS, as_dict, comparison, show, show_comparison
from specworkbench.cli.screen import INTERRUPTED, StopOnInterrupt, only_json, quiet_transformers
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.experiments.against import Comparison
    from specworkbench.experiments.equivalence import Check, Implementation
    from specworkbench.workloads import Prompt

NOT_SHOWN = 1
"""Exit code where the output was not found to follow the target."""
WHOM = PARTS | {"theirs": "the other engine", "plain": "plain decoding"}

Spec = Annotated[
    str,
    opt.option(
        "--proposer",
        metavar="SPEC",
        help="NAME[:WEIGHTS][,SETTING=VALUE...]; specworkbench proposers lists them; none tests plain decoding.",
    ),
]
Tokens = Annotated[int, opt.option("--tokens", help="Most tokens to judge.")]
Level = Annotated[float, opt.option("--level", help="Probability of a false alarm, all tests together.")]
Length = Annotated[int, opt.option("--length", help="Tokens of each continuation.")]
Jobs = Annotated[
    int | None,
    opt.option("--jobs", help="Processes that decode. [default: one a core for the embedded family on a CPU, else 1]"),
]

Against = Annotated[
    str | None,
    opt.option(
        "--against",
        metavar="plain|transformers",
        help="Compare whole outputs too, with our plain decoding or with transformers' assisted generation.",
    ),
]
Outputs = Annotated[int, opt.option("--outputs", help="Outputs of each prompt that --against draws.")]
EngineDefaults = Annotated[
    bool,
    opt.option(
        "--engine-defaults",
        help="Leave to transformers what it does of its own accord: 20 guesses, confidence 0.4, top-k 50.",
    ),
]


def equivalence(
    target: opt.Target = "embedded",
    proposer: Spec = "draft_model",
    rule: opt.Rule = None,
    gamma: opt.Gamma = 4,
    temperature: opt.Temperature = None,
    top_k: opt.TopK = None,
    top_p: opt.TopP = None,
    min_p: opt.MinP = None,
    repetition_penalty: opt.RepetitionPenalty = None,
    draft_temperature: opt.DraftTemperature = None,
    prompts: opt.Prompts = None,
    chat: opt.Chat = False,
    tokens: Tokens = 20_000,
    length: Length = 64,
    level: Level = 1e-3,
    seed: opt.Seed = 0,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    against: Against = None,
    outputs: Outputs = 300,
    engine_defaults: EngineDefaults = False,
    jobs: Jobs = None,
    as_json: opt.Json = False,
) -> None:
    """Test whether speculative decoding follows the target, on real draws.

    A positive control (the same with a fault) must be rejected and a null control (plain decoding) must not be. It
    stops as soon as the e-process has decided. Exit code 0 if nothing speaks against the implementation, 1 otherwise.
    """
    given = {
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
        "repetition_penalty": repetition_penalty,
    }  # fmt: skip
    with only_json(as_json):
        wanted, texts = prepare(locals(), {name: value for name, value in given.items() if value is not None})
        with StopOnInterrupt() as interrupt:
            found, compared = run(wanted, texts, SimpleNamespace(**locals()), interrupt)
    if as_json:
        from specworkbench.experiments.files import to_json

        print(to_json(as_dict(found) | ({} if compared is None else {"against": comparison(compared)})))
    else:
        show(found)
        if compared is not None:
            show_comparison(compared)
    if interrupt.asked:
        raise typer.Exit(INTERRUPTED)
    if {found.verdict, "not rejected" if compared is None else compared.verdict} != {"not rejected"}:
        raise typer.Exit(NOT_SHOWN)


def prepare(asked: dict[str, Any], sampling: dict[str, Any]) -> tuple[Implementation, list[Prompt]]:
    """Whom to test and on which prompts; judged before a model is loaded."""
    from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
    from specworkbench.experiments.against import ENGINES
    from specworkbench.experiments.equivalence import Implementation
    from specworkbench.experiments.plan import ProposerSpec
    from specworkbench.workloads import load_prompts

    quiet_transformers()
    if asked["tokens"] < 1:
        raise InputError(f"tokens is {asked['tokens']}; at least 1 must be judged")
    if asked["against"] not in (None, *ENGINES):
        raise InputError(f"--against is {asked['against']!r}; choose one of {', '.join(ENGINES)}")
    if asked["outputs"] < 1:
        raise InputError(f"outputs is {asked['outputs']}; at least 1 must be drawn from each prompt")
    if not 0.0 < asked["level"] < 1.0:
        raise InputError(f"level is {asked['level']}; it must be between 0 and 1, such as 0.001")
    own = SamplingSettings(**sampling)
    heat = asked["draft_temperature"]
    settings = DecodeSettings(
        gamma=asked["gamma"],
        max_new_tokens=asked["length"],
        sampling=own,
        draft_sampling=None if heat is None else replace(own, temperature=heat),
    )
    make_verifier(asked["rule"], own)
    target = asked["target"]
    wanted = Implementation(
        target,
        ProposerSpec.parse(asked["proposer"]).fitted(target),
        asked["rule"],
        settings,
        asked["chat"],
        asked["dtype"],
        asked["device"],
        asked["seed"],
    )
    source = asked["prompts"] or ("embedded" if target.startswith("embedded") else "general")
    return wanted, load_prompts(source)


def run(
    wanted: Implementation, prompts: list[Prompt], asked: SimpleNamespace, interrupt: StopOnInterrupt
) -> tuple[Check, Comparison | None]:
    """The check, and the comparison if one was asked for, with a progress bar on standard error."""
    from tqdm import tqdm

    from specworkbench.experiments.against import compare, few
    from specworkbench.experiments.equivalence import Workers, check, default_jobs, opened

    opened(wanted)  # says what does not fit before processes are started
    with (
        tqdm(unit="token", file=sys.stderr, dynamic_ncols=True) as bar,
        Workers(asked.jobs or default_jobs(wanted)) as workers,
    ):

        def advance(what: str, done: int, total: int, more: str = "") -> bool:
            bar.set_description(WHOM[what], refresh=False)
            bar.set_postfix_str(more, refresh=False)
            bar.n, bar.total = min(done, total), total
            bar.refresh()
            return not interrupt.asked

        def judged(part: str, done: int, log_e: float) -> bool:
            return advance(part, done, asked.tokens, f"log10 E {log_e / math.log(10):.1f}")

        found = check(wanted, prompts, tokens=asked.tokens, level=asked.level, workers=workers, watch=judged)
        if asked.against is None or interrupt.asked:
            return found, None
        bar.unit = "output"
        compared = compare(
            wanted, asked.against, few(prompts), outputs=asked.outputs, level=asked.level,
            defaults=asked.engine_defaults, workers=workers, watch=advance,
        )  # fmt: skip
    return found, compared
