"""Our own engines beside each other: eager and compiled, plain and speculative.

    python -m benchmarks.engines
    python -m benchmarks.engines --setting smollm2 --json engines.json

Every contender decodes every prompt once before it is timed. What the compiled ones took longer there is compiling, or
reading what an earlier process has compiled.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from benchmarks.common import Contender, Ratio, Results, Times, measure, start
from benchmarks.settings import Setting, ours, parser, setting_of
from specworkbench.engine import make_proposer
from specworkbench.errors import InputError
from specworkbench.experiments.environment import environment_of

ENGINES = ("eager", "compiled")


def contenders_of(setting: Setting, models: dict[str, tuple], temperature: float) -> dict[str, Contender]:
    """Each proposer on each engine. models: {engine: (target, draft or None)}."""
    settings = setting.decoding(temperature)
    made = {}
    for name in ("plain", "draft_model", "ngram") if setting.draft else ("plain", "ngram"):
        for engine, (target, draft) in models.items():
            proposer = None if name == "plain" else make_proposer(name, target=target, draft=draft)
            made[f"{name}, {engine}"] = ours(target, proposer, settings, "none", setting.chat)
    return made


def compile_seconds(times: Times, name: str) -> float:
    """What a contender's runs before the measurement took beyond as many later ones."""
    return float(np.sum(times.warm_up[name] - np.median(times.seconds[name])))


def main() -> None:
    """Print the comparison for each temperature."""
    arguments = parser(__doc__).parse_args()
    setting = setting_of(arguments)
    if setting.engine is not None:
        raise InputError(f"both engines are measured here; leave --engine {setting.engine} out")
    models = {
        engine: (setting.load(setting.target, engine), setting.load(setting.draft, engine) if setting.draft else None)
        for engine in ENGINES
    }
    prompts = setting.load_prompts()
    described = {engine: [model.describe() for model in pair if model is not None] for engine, pair in models.items()}
    results = Results(environment_of(models["eager"][0]), asdict(setting) | {"models": described}, arguments.json)
    for temperature in setting.temperatures:
        contenders = contenders_of(setting, models, temperature)
        names = dict.fromkeys(name.partition(",")[0] for name in contenders)
        ratios = [Ratio(f"{name}: eager / compiled", f"{name}, eager", f"{name}, compiled") for name in names]
        times = measure(contenders, prompts, setting.runs, setting.max_new_tokens, warm_up=prompts)
        results.add(setting.title(temperature, len(prompts)), times, ratios)
        for name in names:
            seconds = compile_seconds(times, f"{name}, compiled")
            key = f"compiling {name}, temperature {temperature:g}"
            results.note(key, seconds, f"compiling or reading what was compiled, {name}: {seconds:.1f} s")
    results.close()


if __name__ == "__main__":
    start(main)
