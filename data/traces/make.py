"""Record the traces that the notebooks open on: `python data/traces/make.py`, from anywhere, after the models changed.

quickstart.trace: the embedded target with its larger draft, gamma 4, temperature 1, two prompts of each bucket.
quickstart_plain.trace: plain decoding of the same prompts with the same target and sampling.

Both are decoded in turn, prompt by prompt, so that their times can stand on one clock. The same models give the same
tokens; only the times differ between machines: run it where nothing else runs.
"""

from __future__ import annotations

from pathlib import Path

from specworkbench.engine import Decoder, DecodeSettings, SamplingSettings, load_pair, make_proposer
from specworkbench.trace import Trace, load_trace, save_trace
from specworkbench.workloads import load_prompts

FOLDER = Path(__file__).parent
SETTINGS = DecodeSettings(gamma=4, max_new_tokens=64, sampling=SamplingSettings(temperature=1.0))
TOP_K_CAPTURED = 12
PER_BUCKET = 2


def quickstart() -> dict[str, Trace]:
    """Two held-out prompts of each bucket, decoded with the larger draft and plainly: the traces by their names."""
    target, draft = load_pair("embedded", "embedded/draft-m")
    proposer = make_proposer("draft_model", target=target, draft=draft)
    speculative = Decoder(target, proposer, settings=SETTINGS, capture="top-k", top_k_captured=TOP_K_CAPTURED)
    decoders = {"quickstart": speculative, "quickstart_plain": Decoder(target, settings=SETTINGS)}
    prompts = load_prompts("embedded", per_bucket=PER_BUCKET)
    for decoder in (Decoder(target, proposer, settings=SETTINGS, capture=None), Decoder(target, settings=SETTINGS)):
        decoder.run(prompts[0].text)  # the first run of a process is slower
    for prompt in prompts:
        for decoder in decoders.values():
            decoder.run(prompt.text, id=prompt.id, bucket=prompt.bucket)
    return {name: decoder.trace() for name, decoder in decoders.items()}


def main() -> None:
    """Record, save, read back, and say what came out."""
    for name, trace in quickstart().items():
        path = FOLDER / f"{name}.trace"
        save_trace(trace, path)
        trace = load_trace(path)
        tokens, rounds = int(trace.rounds["emitted"].sum()), len(trace.rounds)
        print(
            f"{path.name}: {len(trace.sequences)} sequences, {tokens} tokens in {rounds} rounds, "
            f"{trace.rounds['ms_total'].sum() / tokens:.2f} ms a token, {path.stat().st_size / 1e3:.0f} kB"
        )


if __name__ == "__main__":
    main()
