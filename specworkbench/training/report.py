"""What came out: evaluation.json beside the models, and the model card."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from specworkbench.training.corpus import BUCKETS, Corpus
from specworkbench.training.evaluate import bits_per_byte, overlap, xz_bits_per_byte
from specworkbench.training.family import SHAPES, count_parameters
from specworkbench.training.mixture import encode_documents
from specworkbench.training.trainer import Progress, Settings


def evaluate_family(corpus: Corpus, out: Path) -> dict:
    """Bits a byte of every exported model on held-out text, overlap of the drafts with the target, and xz on the same bytes."""
    tokenizer = AutoTokenizer.from_pretrained(out / "target")
    models = {name: AutoModelForCausalLM.from_pretrained(out / name, dtype=torch.float32).eval() for name in SHAPES}
    held = {bucket: corpus.texts(bucket, heldout=True) for bucket in BUCKETS}
    return {
        "heldout_bytes": {bucket: len("".join(texts).encode()) for bucket, texts in held.items()},
        "heldout_tokens": {bucket: len(encode_documents(tokenizer, texts)) for bucket, texts in held.items()},
        "parameters": {name: count_parameters(model) for name, model in models.items()},
        "bits_per_byte": {
            **{name: {b: round(bits_per_byte(model, tokenizer, held[b]), 4) for b in BUCKETS} for name, model in models.items()},
            "xz -9": {bucket: round(xz_bits_per_byte(texts), 4) for bucket, texts in held.items()},
        },
        "overlap_with_target": {
            name: {b: round(overlap(models["target"], models[name], tokenizer, held[b]), 4) for b in BUCKETS}
            for name in SHAPES if name != "target"
        },
    }  # fmt: skip


def training_record(stages: dict[str, tuple[Settings, Progress]], streams: dict[str, np.ndarray]) -> dict:
    """How the family was trained, for evaluation.json and the card."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "training_tokens_in_corpus": {bucket: len(stream) for bucket, stream in streams.items()},
        "stages": {
            name: {
                "settings": vars(settings), "tokens": progress.tokens, "steps": progress.step,
                "minutes": round(progress.seconds / 60, 1),
            }
            for name, (settings, progress) in stages.items()
        },
    }  # fmt: skip


def _table(rows: dict[str, dict[str, float]], first: str) -> str:
    lines = [f"| {first} | " + " | ".join(BUCKETS) + " |", "|---|" + "---:|" * len(BUCKETS)]
    lines += [
        f"| {name} | " + " | ".join(f"{row[bucket]:.3f}" for bucket in BUCKETS) + " |" for name, row in rows.items()
    ]
    return "\n".join(lines)


CARD = """# The embedded models

Three small language models of one family, trained by this project so that speculative decoding can be explored without a
network. They are ordinary Hugging Face folders (Llama architecture, tied embeddings, float16, context {context} tokens) with
one byte-level BPE tokenizer of {vocabulary} tokens; `<|endoftext|>` (id 0) ends a document and is never added by itself.

| folder | parameters | layers | width | trained on |
|---|---:|---:|---:|---|
{models}

## Results on held-out text

Bits per byte (lower is better), every token seen with at least 512 tokens before it where the document stream has them;
`xz -9` compresses the same bytes, one file a bucket.

{bits}

Overlap of a draft with the target, the mean over held-out positions of sum_x min(p(x), q(x)) at temperature 1: the expected
acceptance probability under the token rule on given text.

{overlap}

Held-out bytes: {heldout}. The same numbers are in `embedded/evaluation.json`.

## How they were trained

`python -m specworkbench.training family --out data/models/embedded --minutes {minutes:.0f} --draft-minutes {draft_minutes:.0f}` does all of it: corpus,
tokenizer, target, drafts, export, evaluation, this card. The shipped weights come from Python {python}, torch {torch} on two
CPU cores in float32. How many tokens fit into the minutes depends on the machine, so a rerun gives like weights, not the same.

{stages}

Muon for the hidden matrices (rate {matrix_rate}), AdamW for the embedding and the norms (rate {other_rate}); {batch} tokens a step, windows
of {length} tokens, {long_length} in the last {long_share:.0%} of the time; gradient norm clipped at {clip}; rate flat, then linear to zero; seed {seed}.
The drafts learn the finished target's whole distribution at temperature 1 (weight 0.9) and the text (weight 0.1).

## What they were trained on

- **code**: sources of Python's standard library, with a fifth of its tests and without encoding tables;
- **prose**: its documentation topics (`pydoc_data.topics`) and the docstrings of those sources;
- **structured**: generated JSON, JSON Lines, CSV, tables, logs, INI and TOML from a fixed seed; all names in it are made up.

In the training mix 55 %, 20 % and 25 % of tokens; the corpus has {corpus} tokens. Held out, by a hash of the file's or topic's
name (a module, its twin `_module` and its tests stay together): about 5 % of files and 12 % of topics, with their docstrings,
and {generated} generated documents of another seed. The prompts in `data/prompts/embedded.jsonl` are cut from the held-out part.

## Licence

The weights are under Apache-2.0, as the project is. The standard library's sources and documentation are © Python Software
Foundation and others under the PSF License Version 2 (https://docs.python.org/3/license.html); the models can reproduce
short pieces of it. The generated text is the project's own.

## What they are not good for

Anything but studying decoding. They know a few megabytes of one library's style: they answer no question, follow no
instruction, know no fact, write no code that can be trusted, and speak only English. Speeds measured with them say little
about large models: here a draft's cost is mostly the overhead of a forward, not its arithmetic.
"""


def write_card(evaluation: dict, file: Path) -> None:
    """The model card, from evaluation.json's content alone."""
    training, stages = evaluation["training"], evaluation["training"]["stages"]
    settings = stages["target"]["settings"]
    what = {"target": "text", "draft-m": "the target's distributions", "draft-s": "the target's distributions"}
    file.write_text(CARD.format(
        context=1024, vocabulary=4096, generated=240, python=training["python"], torch=training["torch"],
        models="\n".join(
            f"| `embedded/{name}` | {evaluation['parameters'][name]:,} | {shape['num_hidden_layers']} | {shape['hidden_size']} | {what[name]} |"
            for name, shape in SHAPES.items()
        ),
        bits=_table(evaluation["bits_per_byte"], "model"), overlap=_table(evaluation["overlap_with_target"], "draft"),
        heldout=", ".join(f"{bucket} {size:,}" for bucket, size in evaluation["heldout_bytes"].items()),
        corpus=", ".join(f"{bucket} {size:,}" for bucket, size in training["training_tokens_in_corpus"].items()),
        minutes=settings["minutes"], draft_minutes=stages["drafts"]["settings"]["minutes"],
        stages="\n".join(
            f"- {name}: {stage['tokens']:,} tokens in {stage['steps']:,} steps, {stage['minutes']} minutes"
            for name, stage in stages.items()
        ),
        batch=settings["batch_tokens"],
        **{key: settings[key] for key in ("matrix_rate", "other_rate", "length", "long_length", "long_share", "clip", "seed")},
    ), encoding="utf-8")  # fmt: skip


def write_evaluation(evaluation: dict, out: Path) -> None:
    """evaluation.json in the family's folder and README.md beside the folder."""
    (out / "evaluation.json").write_text(json.dumps(evaluation, indent=2) + "\n", encoding="utf-8")
    write_card(evaluation, out.parent / "README.md")
