"""`specworkbench equivalence`: does the output follow the target? Tests of real draws, with their controls."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.equivalence_words import STAGES, as_dict, comparison, show, show_comparison
from specworkbench.cli.questions import prompts_asked_for
from specworkbench.cli.screen import INTERRUPTED, StopOnInterrupt, only_json, quiet_transformers, say
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.experiments.against import Comparison, GreedyComparison
    from specworkbench.experiments.equivalence import Check
    from specworkbench.experiments.implementation import Implementation
    from specworkbench.workloads import Prompt

NOT_SHOWN = 1
"""Exit code where the output was not found to follow the target."""
TERMINAL_SECONDS, LOG_SECONDS = 0.3, 10.0
"""Between two states of the bar, on a terminal and in a file."""

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
Margin = Annotated[
    float, opt.option("--margin", help="A total variation over the declared cells that would not matter.")
]
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
    margin: Margin = 0.05,
    seed: opt.Seed = 0,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    engine: opt.Engine = "eager",
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
    asked = SimpleNamespace(**locals())
    with only_json(as_json):
        wanted, texts = prepare(asked)
        with StopOnInterrupt() as interrupt:
            found, compared = run(wanted, texts, asked, interrupt)
    if as_json:
        from specworkbench.experiments.files import to_json

        more = {} if against is None else {"against": compared and comparison(compared)}
        print(to_json(as_dict(found) | {"interrupted": interrupt.asked} | more))
    else:
        show(found)
        if compared is not None:
            show_comparison(compared)
        elif against is not None:
            print("the comparison was not finished, and is left out")
    if interrupt.asked:
        say("interrupted")
        raise typer.Exit(INTERRUPTED)
    if {found.verdict, "not rejected" if compared is None else compared.verdict} != {"not rejected"}:
        raise typer.Exit(NOT_SHOWN)


def prepare(asked: SimpleNamespace) -> tuple[Implementation, list[Prompt]]:
    """Whom to test and on which prompts; all that can be judged without a model is judged here."""
    from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
    from specworkbench.experiments.implementation import Implementation
    from specworkbench.experiments.plan import ProposerSpec

    quiet_transformers()
    _refuse_numbers(asked)
    own = SamplingSettings(**opt.sampling_given(asked))
    settings = DecodeSettings(
        gamma=asked.gamma,
        max_new_tokens=asked.length,
        sampling=own,
        draft_sampling=opt.draft_sampling(own, asked.draft_temperature),
    )
    make_verifier(asked.rule, own)
    spec = ProposerSpec.parse(asked.proposer).fitted(asked.target)
    wanted = Implementation(
        asked.target, spec, asked.rule, settings, asked.chat, asked.dtype, asked.device, asked.fused, asked.products,
        asked.engine, asked.seed,
    )  # fmt: skip
    return wanted, prompts_asked_for(asked.prompts, asked.target)[1]


def _refuse_numbers(asked: SimpleNamespace) -> None:
    from specworkbench.equivalence.judge import check_numbers
    from specworkbench.experiments.against import ENGINES, refuse_numbers
    from specworkbench.experiments.workers import check_jobs

    check_numbers(asked.tokens, asked.level, asked.margin)
    if asked.length < 1:
        raise InputError(f"--length is {asked.length}; a continuation has at least 1 token")
    if asked.jobs is not None:
        check_jobs(asked.jobs)
    if asked.against not in (None, *ENGINES):
        raise InputError(f"--against is {asked.against!r}; choose one of {', '.join(ENGINES)}")
    if asked.engine_defaults and asked.against != "transformers":
        raise InputError("--engine-defaults says how transformers is used; add --against transformers")
    if asked.against is not None:
        refuse_numbers(asked.outputs, asked.level)


def run(
    wanted: Implementation, prompts: list[Prompt], asked: SimpleNamespace, interrupt: StopOnInterrupt
) -> tuple[Check, Comparison | GreedyComparison | None]:
    """The check, and the comparison if one was asked for and nobody stopped, with a bar on standard error."""
    from specworkbench.experiments.against import compare, few, prepared, short
    from specworkbench.experiments.equivalence import check, refuse_what_does_not_fit
    from specworkbench.experiments.implementation import default_jobs
    from specworkbench.experiments.workers import Workers

    # Whatever does not fit is said before anything is decoded, and before processes are started.
    refuse_what_does_not_fit(wanted, prompts, asked.tokens, asked.level, asked.margin)
    if asked.against is not None:
        prepared(
            short(wanted), asked.against, few(prompts), asked.outputs, asked.level, asked.engine_defaults
        )  # fmt: skip
    with Progress(interrupt) as progress, Workers(asked.jobs or default_jobs(wanted)) as workers:
        found = check(
            wanted, prompts, tokens=asked.tokens, level=asked.level, margin=asked.margin, workers=workers,
            watch=progress,
        )  # fmt: skip
        if asked.against is None or interrupt.asked:
            return found, None
        compared = compare(
            wanted, asked.against, few(prompts), outputs=asked.outputs, level=asked.level,
            defaults=asked.engine_defaults, workers=workers, watch=progress,
        )  # fmt: skip
    return found, compared


class Progress:
    """A bar on standard error for one part of the work after the other; a part goes on while nobody interrupts.

    progress(part, done, total, log_e) is False once Ctrl-C was pressed.
    """

    def __init__(self, interrupt: StopOnInterrupt):
        self._interrupt, self._part = interrupt, ""

    def __enter__(self) -> Progress:
        from tqdm import tqdm

        often = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
        self._bar = tqdm(file=sys.stderr, dynamic_ncols=True, mininterval=often, leave=False, desc="starting")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __call__(self, part: str, done: int, total: int, log_e: float | None = None) -> bool:
        if part != self._part:
            self._part = part
            words, self._bar.unit = STAGES[part]
            self._bar.set_postfix_str("", refresh=False)
            self._bar.set_description(words, refresh=False)
            self._bar.reset(total)
        if log_e is not None:
            self._bar.set_postfix_str(f"log10 E {log_e / math.log(10):.1f}", refresh=False)
        self._bar.update(min(done, total) - self._bar.n)
        return not self._interrupt.asked
