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

CARD = Path(__file__).with_name("card.md")  # the model card with fields to fill in


def evaluate_family(corpus: Corpus, out: Path) -> dict:
    """Bits a byte of every exported model and of xz on held-out text, and the overlap of the drafts with the target."""
    tokenizer = AutoTokenizer.from_pretrained(out / "target")
    models = {name: AutoModelForCausalLM.from_pretrained(out / name, dtype=torch.float32).eval() for name in SHAPES}
    held = {bucket: corpus.texts(bucket, heldout=True) for bucket in BUCKETS}
    return {
        "heldout_bytes": {bucket: len("".join(texts).encode()) for bucket, texts in held.items()},
        "heldout_tokens": {bucket: len(encode_documents(tokenizer, texts)) for bucket, texts in held.items()},
        "parameters": {name: count_parameters(model) for name, model in models.items()},
        "bits_per_byte": {
            **{
                name: {b: round(bits_per_byte(model, tokenizer, held[b]), 4) for b in BUCKETS}
                for name, model in models.items()
            },
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


def write_card(evaluation: dict, file: Path) -> None:
    """The model card, from evaluation.json's content alone."""
    training, stages = evaluation["training"], evaluation["training"]["stages"]
    settings = stages["target"]["settings"]
    what = {"target": "text", "draft-m": "the target's distributions", "draft-s": "the target's distributions"}
    file.write_text(CARD.read_text(encoding="utf-8").format(
        context=1024, vocabulary=4096, generated=240, python=training["python"], torch=training["torch"],
        transformers=training["transformers"],
        models="\n".join(
            f"| `embedded/{name}` | {evaluation['parameters'][name]:,} | {shape['num_hidden_layers']} "
            f"| {shape['hidden_size']} | {what[name]} |"
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
        **{key: settings[key] for key in ("matrix_rate", "other_rate", "length", "long_length")},
        **{key: settings[key] for key in ("long_share", "clip", "seed")},
    ), encoding="utf-8")  # fmt: skip


def write_evaluation(evaluation: dict, out: Path) -> None:
    """evaluation.json in the family's folder and README.md beside the folder."""
    (out / "evaluation.json").write_text(json.dumps(evaluation, indent=2) + "\n", encoding="utf-8")
    write_card(evaluation, out.parent / "README.md")
