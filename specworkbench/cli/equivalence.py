"""`specworkbench equivalence`: does the output follow the target? Tests of real draws, with their controls."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import INTERRUPTED, StopOnInterrupt, only_json, printable, quiet_transformers, screen
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.equivalence.judge import Judgement
    from specworkbench.experiments.equivalence import Check, Implementation
    from specworkbench.workloads import Prompt

NOT_SHOWN = 1
"""Exit code where the output was not found to follow the target."""
PARTS = {"subject": "the implementation", "positive": "positive control", "null": "null control"}

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
            found = run(wanted, texts, tokens, level, jobs, interrupt)
    if as_json:
        from specworkbench.experiments.files import to_json

        print(to_json(as_dict(found)))
    else:
        show(found)
    if interrupt.asked:
        raise typer.Exit(INTERRUPTED)
    if found.verdict != "not rejected":
        raise typer.Exit(NOT_SHOWN)


def prepare(asked: dict[str, Any], sampling: dict[str, Any]) -> tuple[Implementation, list[Prompt]]:
    """Whom to test and on which prompts; judged before a model is loaded."""
    from specworkbench.engine import DecodeSettings, SamplingSettings, make_verifier
    from specworkbench.experiments.equivalence import Implementation
    from specworkbench.experiments.plan import ProposerSpec
    from specworkbench.workloads import load_prompts

    quiet_transformers()
    if asked["tokens"] < 1:
        raise InputError(f"tokens is {asked['tokens']}; at least 1 must be judged")
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
    wanted: Implementation, prompts: list[Prompt], tokens: int, level: float, jobs: int | None,
    interrupt: StopOnInterrupt,
) -> Check:  # fmt: skip
    """The check, with a progress bar on standard error."""
    from tqdm import tqdm

    from specworkbench.experiments.equivalence import Workers, check, default_jobs, opened

    opened(wanted)  # says what does not fit before processes are started
    with tqdm(unit="token", file=sys.stderr, dynamic_ncols=True) as bar:

        def watch(part: str, done: int, log_e: float) -> bool:
            bar.set_description(PARTS[part], refresh=False)
            bar.set_postfix_str(f"log10 E {log_e / math.log(10):.1f}", refresh=False)
            bar.n = done
            bar.refresh()
            return not interrupt.asked

        with Workers(jobs or default_jobs(wanted)) as workers:
            return check(wanted, prompts, tokens=tokens, level=level, workers=workers, watch=watch)


def as_dict(found: Check) -> dict[str, Any]:
    """All of it as one JSON object."""
    from specworkbench.experiments.equivalence import described

    return {
        "verdict": found.verdict,
        "sentence": sentence(found),
        "implementation": described(found.implementation),
        "lossless": found.lossless,
        **{part: judgement(getattr(found, part)) for part in PARTS},
    }


def judgement(found: Judgement) -> dict[str, Any]:
    """One judgement as plain values; an infinite E-value (a token outside the support) as null."""
    return {
        "rejected": found.rejected,
        "rejected_by": found.rejected_by,
        "level": found.level,
        "tokens": found.tokens,
        "decided_at": found.decided_at,
        "e_value": math.exp(found.log_e) if found.log_e < 700 else None,
        "log10_e": found.log_e / math.log(10) if math.isfinite(found.log_e) else None,
        "tests": {
            name: {
                "statistic": outcome.statistic, "p_value": outcome.p_value, "adjusted": found.adjusted.get(name),
                "tokens": outcome.tokens, "detail": outcome.detail,
            }
            for name, outcome in found.outcomes.items()
        },
        "tv": found.tv,
        "tv_bound": found.tv_bound,
        "detectable_tv": found.detectable_tv,
        "slots": found.slots.to_dict("records"),
    }  # fmt: skip


def sentence(found: Check) -> str:
    """The verdict in words."""
    subject, positive = found.subject, found.positive
    if found.null.rejected:
        return "undecided: plain decoding itself was rejected, so something is wrong with the tests or the model's rows"
    if not positive.rejected:
        return (
            f"undecided: the positive control was not rejected within {positive.tokens} tokens; "
            "judge more of them, or propose more often"
        )
    if subject.rejected:
        first = f" after {subject.decided_at} tokens" if subject.decided_at else f" on {subject.tokens} tokens"
        said = "as it must be, for the rule is lossy" if not found.lossless else "the output does not follow the target"
        return f"rejected{first} by {', '.join(subject.rejected_by)}: {said}"
    short = f" ({subject.wanted} were asked for)" if subject.tokens < subject.wanted else ""
    return (
        f"not rejected on {subject.tokens} tokens{short}: a total variation of {subject.detectable_tv:.3f} over the "
        f"declared cells would have shown; what is left over them is at most {subject.tv_bound['cells']:.3f}"
    )


def show(found: Check) -> None:
    """The tests as a table, the slots of a rejected implementation, and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    console = screen()
    names = list(found.subject.outcomes)
    table = Table("", "tokens", "decided at", *names, "TV bound", "detectable TV", "rejected", box=SIMPLE_HEAD)
    for part, words in PARTS.items():
        judged: Judgement = getattr(found, part)
        table.add_row(
            words,
            str(judged.tokens),
            "" if judged.decided_at is None else str(judged.decided_at),
            *(_p_value(judged.adjusted.get(name)) for name in names),
            f"{judged.tv_bound['cells']:.3f}",
            f"{judged.detectable_tv:.3f}",
            "yes" if judged.rejected else "no",
        )
    console.print(table)
    console.print(f"p-values after Holm, level {found.subject.level:g}; – where a test does not apply")
    if found.subject.rejected:
        slots = Table("position", "", "tokens", "log10 E", "strongest alternative", box=SIMPLE_HEAD)
        for row in found.subject.slots.to_dict("records"):
            kind = "judged" if row["guided"] else "bonus or plain"
            slots.add_row(
                str(row["slot"]), kind, str(row["tokens"]), f"{row['log_e'] / math.log(10):.1f}", str(row["best"])
            )  # fmt: skip
        console.print(slots)
    console.print(printable(sentence(found)))


def _p_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
