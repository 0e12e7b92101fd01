"""`specworkbench decode`: one prompt, streamed or as one JSON object, its trace saved when asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specworkbench.cli import options as opt
from specworkbench.cli.screen import (
    INTERRUPTED,
    StopOnInterrupt,
    check_writable,
    figure,
    only_json,
    printable,
    quiet_transformers,
    say,
    screen,
)
from specworkbench.errors import InputError

if TYPE_CHECKING:
    from specworkbench.engine import Decoder, Round
    from specworkbench.experiments.plan import ProposerSpec
    from specworkbench.trace import Trace


def decode(
    prompt: Annotated[str, typer.Argument(help="The text to continue; - reads standard input.")],
    target: opt.Target = "embedded",
    revision: opt.Revision = None,
    proposer: opt.Proposer = "draft_model",
    draft: opt.Draft = None,
    draft_revision: opt.DraftRevision = None,
    setting: opt.Setting = None,
    gamma: opt.Gamma = 4,
    controller: opt.Controller = "constant",
    rule: opt.Rule = None,
    temperature: opt.Temperature = None,
    top_k: opt.TopK = None,
    top_p: opt.TopP = None,
    min_p: opt.MinP = None,
    repetition_penalty: opt.RepetitionPenalty = None,
    draft_temperature: opt.DraftTemperature = None,
    generation_config: opt.GenerationConfig = False,
    chat: opt.Chat = False,
    max_new_tokens: opt.MaxNewTokens = 128,
    min_new_tokens: opt.MinNewTokens = 0,
    stop: opt.Stop = None,
    ignore_eos: opt.IgnoreEos = False,
    seed: opt.Seed = 0,
    dtype: opt.Dtype = None,
    device: opt.Device = None,
    fused: opt.Fused = True,
    products: opt.Products = True,
    engine: opt.Engine = "eager",
    trace: opt.TraceFile = None,
    capture: opt.Capture = None,
    as_json: opt.Json = False,
) -> None:
    """Continue PROMPT, speculatively, and say what became of every guess."""
    asked = SimpleNamespace(**locals())
    asked.prompt = read_prompt(prompt)
    asked.capture = capture or ("none" if trace is None else "top-k")
    if trace is not None:
        check_writable(Path(trace), "the trace")
    with only_json(as_json):
        decoder = prepare(asked)
        warn_if_lossy(decoder)
        with StopOnInterrupt() as interrupt:
            recorded = run(decoder, asked, interrupt)
    finish(recorded, asked, interrupt.asked)


def warn_if_lossy(decoder: Decoder) -> None:
    """A lossy rule is said to be lossy before anything is shown."""
    from specworkbench.trace.rule import lossy_sentence

    if sentence := lossy_sentence(decoder.verifier.describe()):
        say(sentence[0].lower() + sentence[1:].rstrip("."))


def read_prompt(prompt: str) -> str:
    """The prompt as given, or standard input, just as it is, for `-`. Raises `InputError` where there is no text."""
    if prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"standard input is not UTF-8 (byte {error.start} cannot be read)") from error
    if not prompt.strip():
        raise InputError("the prompt is empty; give at least one word to continue from")
    if any(0xD800 <= ord(character) < 0xE000 for character in prompt):
        raise InputError("the prompt is not UTF-8; check the encoding of your terminal")
    return prompt


def prepare(asked: SimpleNamespace) -> Decoder:
    """The decoder that was asked for. What can be judged without the models is, before they are loaded."""
    from specworkbench import engine

    quiet_transformers()
    given = opt.sampling_given(asked)
    settings = engine.DecodeSettings(
        gamma=asked.gamma,
        max_new_tokens=asked.max_new_tokens,
        min_new_tokens=asked.min_new_tokens,
        sampling=engine.SamplingSettings(**given),
        stop=tuple(asked.stop or ()),
        ignore_eos=asked.ignore_eos,
    )
    opt.draft_sampling(settings.sampling, asked.draft_temperature)
    controller = engine.make_controller(asked.controller)
    if not asked.generation_config:
        engine.make_verifier(asked.rule, settings.sampling)
    spec = _proposer_spec(asked)
    target = engine.load_model(
        asked.target, revision=asked.revision, dtype=asked.dtype, device=asked.device,
        fused=asked.fused, products=asked.products, engine=asked.engine,
    )  # fmt: skip
    if asked.generation_config:
        given = target.generation_sampling() | given
    sampling = engine.SamplingSettings(**given)
    drafts = opt.draft_sampling(sampling, asked.draft_temperature)
    settings = replace(settings, sampling=sampling, draft_sampling=drafts)
    proposer = engine.make_proposer(
        spec.name, target=target, draft=spec.weights, revision=asked.draft_revision, **dict(spec.settings)
    )
    return engine.Decoder(
        target,
        proposer,
        rule=asked.rule,
        controller=controller,
        settings=settings,
        seed=asked.seed,
        capture=asked.capture,
        chat=asked.chat,
        generation_config_applied=asked.generation_config,
    )


def _proposer_spec(asked: SimpleNamespace) -> ProposerSpec:
    """The proposer that was asked for, judged before a model is loaded."""
    from specworkbench.experiments.plan import ProposerSpec

    spec = ProposerSpec.of(asked.proposer, asked.draft, asked.setting or ())
    if asked.draft is not None and not spec.kind.weights:
        say(f"--draft {asked.draft} is not used: the proposer {asked.proposer} takes no draft")
    return spec.fitted(asked.target)


def run(decoder: Decoder, asked: SimpleNamespace, interrupt: StopOnInterrupt) -> Trace:
    """Decode, show it as it comes, and save the trace: also of what was done before an interrupt or an error."""
    from specworkbench.cli.stream import Stream
    from specworkbench.trace import save_trace

    stream = None if asked.as_json else Stream(screen(), decoder.target.decode)

    def watch(step: Round) -> bool:
        if stream is not None:
            stream.show(step)
        return not interrupt.asked

    decoder.start(asked.prompt)  # refuses a prompt that does not fit before anything is shown or saved
    try:
        decoder.run(asked.prompt, on_round=watch)
    except KeyboardInterrupt:
        interrupt.asked = True
    finally:
        if stream is not None:
            stream.close()
        trace = decoder.trace()
        if asked.trace is not None:
            save_trace(trace, asked.trace)
    return trace


def finish(trace: Trace, asked: SimpleNamespace, interrupted: bool) -> None:
    """The figures, as one JSON object or as a table."""
    from specworkbench.analysis import summary
    from specworkbench.experiments.files import to_json

    figures = summary(trace)
    if asked.as_json:
        print(to_json(figures))
    else:
        show_figures(figures, packed_bytes(trace.manifest))
    if asked.trace is not None:
        say(f"trace saved to {asked.trace}")
    if interrupted:
        say(f"interrupted after {figures['emitted']} tokens in {figures['rounds']} rounds")
        raise typer.Exit(INTERRUPTED)


def packed_bytes(manifest: dict[str, Any]) -> int:
    """What copies of the weights of target and draft add to the memory (see `engine.products`)."""
    models = manifest["target"], manifest["proposer"].get("draft")
    return sum(model["products"]["packed_bytes"] for model in models if model and model.get("products"))


def show_figures(figures: dict[str, Any], packed: int) -> None:
    """A table of what `decode --json` prints, in words; packed: see `packed_bytes`."""
    from rich.table import Table

    from specworkbench.trace.rule import rule_in_words
    from specworkbench.trace.schema import STOP_REASONS

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    seconds = (figures["ms_total"] or 0.0) / 1e3
    rate = figures["emitted"] / seconds if seconds else None
    positions = " ".join(figure(value, 2) for value in figures["acceptance_by_position"])
    phases = ", ".join(
        f"{name} {figure(figures[f'ms_{name}'], 0)}" for name in ("propose", "verify", "accept", "rollback")
    )
    why = STOP_REASONS.get(figures["stop_reason"], "not ended")
    rows = {
        "rule": printable(rule_in_words(figures["rule"])),
        "tokens": f"{figures['emitted']} in {figures['rounds']} rounds, {why}",
        "proposed": f"{figures['proposed']}, examined {figures['examined']}, accepted {figures['accepted']}",
        "alpha": f"{figure(figures['alpha_counts'])} by counts, {figure(figures['alpha_overlap'])} by overlap",
        "accepted at 1..gamma": positions,
        "block efficiency": f"{figure(figures['block_efficiency'], 2)} tokens per round",
        "time": f"{figure(seconds, 2)} s, {figure(rate, 1)} tokens/s, prefill {figure(figures['ms_prefill'], 0)} ms",
        "ms by phase": phases,
        "forwards": f"{figures['target_forwards']} of the target, {figures['draft_forwards']} of the draft",
    }
    if packed:
        rows["memory"] = f"copies of weights add {packed / 2**20:.0f} MiB (--engine eager --no-products: none)"
    for name, value in rows.items():
        table.add_row(name, value)
    screen().print(table)
