"""Record the traces that the notebooks open on: `python data/traces/make.py`, from anywhere, after the models changed.

quickstart.trace: the embedded target with its larger draft, gamma 4, temperature 1, two prompts of each bucket.
The same models give the same tokens; only the times differ between machines.
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


def quickstart() -> Trace:
    """Two held-out prompts of each bucket, decoded with the larger draft."""
    target, draft = load_pair("embedded", "embedded/draft-m")
    proposer = make_proposer("draft_model", target=target, draft=draft)
    decoder = Decoder(target, proposer, settings=SETTINGS, capture="top-k", top_k_captured=TOP_K_CAPTURED)
    for prompt in load_prompts("embedded", per_bucket=PER_BUCKET):
        decoder.run(prompt.text, id=prompt.id, bucket=prompt.bucket)
    return decoder.trace()


def main() -> None:
    """Record, save, read back, and say what came out."""
    path = FOLDER / "quickstart.trace"
    save_trace(quickstart(), path)
    trace = load_trace(path)
    tokens = int(trace.rounds["emitted"].sum())
    print(f"{path.name}: {len(trace.sequences)} sequences, {tokens} tokens, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
