"""What recording costs: speculative decoding with nothing, the scalars, top-k rows and whole rows recorded.

    python -m benchmarks.recording
    python -m benchmarks.recording --runs 10 --json recording.json

Timed is the decoding itself, in which every round is handed to the recorder; making the trace of what was recorded
comes after it, and is timed apart.
"""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter

from benchmarks.common import Ratio, Results, measure, start
from benchmarks.settings import ours, parser, setting_of
from specworkbench.engine import Decoder, LanguageModel, Proposer, make_proposer
from specworkbench.engine.loop import DecodeSettings
from specworkbench.experiments.environment import environment_of
from specworkbench.workloads import Prompt

CAPTURES = {"off": None, "scalars": "none", "top-k": "top-k", "full": "full"}
"""What is recorded, and its name in `Decoder`."""


def ms_of_trace(
    target: LanguageModel, proposer: Proposer, settings: DecodeSettings, capture: str, prompts: list[Prompt], chat: bool
) -> float:
    """ms per token that making the trace of these prompts takes, after decoding."""
    decoder = Decoder(target, proposer, settings=settings, capture=capture, chat=chat)
    tokens = sum(len(decoder.run(prompt.text).token_ids) for prompt in prompts)
    started = perf_counter()
    decoder.trace()
    return (perf_counter() - started) * 1e3 / tokens


def main() -> None:
    """Print the comparison for each temperature."""
    options = parser(__doc__)
    options.add_argument("--proposer", help="who guesses [default: draft_model with a draft, else ngram]")
    arguments = options.parse_args()
    setting = setting_of(arguments)
    name = arguments.proposer or ("draft_model" if setting.draft else "ngram")
    target = setting.load(setting.target)
    draft = setting.load(setting.draft) if name == "draft_model" and setting.draft else None
    proposer = make_proposer(name, target=target, draft=draft)
    prompts = setting.load_prompts()
    results = Results(environment_of(target), asdict(setting) | {"proposer": name}, arguments.json)
    for temperature in setting.temperatures:
        settings = setting.decoding(temperature)
        contenders = {
            kind: ours(target, proposer, settings, capture, setting.chat) for kind, capture in CAPTURES.items()
        }
        ratios = [Ratio(f"recording {kind}: with / without", kind, "off") for kind in CAPTURES if kind != "off"]
        times = measure(contenders, prompts, setting.runs, setting.max_new_tokens)
        results.add(f"{name}: {setting.title(temperature, len(prompts))}", times, ratios)
        for kind, capture in CAPTURES.items():
            if capture is not None:
                ms = ms_of_trace(target, proposer, settings, capture, prompts, setting.chat)
                key = f"trace {kind}, temperature {temperature:g}"
                results.note(key, ms, f"making the trace afterwards, {kind}: {ms:.2f} ms per token")
    results.close()


if __name__ == "__main__":
    start(main)
