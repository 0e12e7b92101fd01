"""All stages of the family in order: corpus, tokenizer, target, drafts, export, evaluation; each can be resumed."""

from __future__ import annotations

from pathlib import Path

from tqdm import tqdm
from transformers import AutoTokenizer

from specworkbench.training import corpus as corpora
from specworkbench.training.distill import distil_losses
from specworkbench.training.evaluate import bits_per_byte, sample
from specworkbench.training.family import SHAPES, export, make_config, make_model
from specworkbench.training.mixture import Mixture, encode_corpus
from specworkbench.training.report import evaluate_family, training_record, write_evaluation
from specworkbench.training.tokenizer import train_tokenizer
from specworkbench.training.trainer import Settings, Trainer

TOKENIZER_CHARACTERS = {"code": 6_000_000, "prose": 2_000_000, "structured": 3_000_000}
LOOKS = ("def read_", '{\n  "version": 1,\n  "count": 5,\n  "users": [\n', "The ")


def prepare_tokenizer(corpus: corpora.Corpus, work: Path):
    """The tokenizer, learned from training documents once and kept in `work`."""
    folder = work / "tokenizer"
    if not (folder / "tokenizer.json").exists():
        texts = []
        for bucket, most in TOKENIZER_CHARACTERS.items():
            documents, size = corpus.texts(bucket, heldout=False), 0
            for text in sorted(documents, key=corpora.share_of):
                if size < most:
                    texts.append(text)
                    size += len(text)
        train_tokenizer(texts).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def look(trainer: Trainer, corpus: corpora.Corpus, tokenizer) -> None:
    """Print held-out bits per byte on a slice of every bucket, and three samples of the first model."""
    first = next(iter(trainer.models.values())).eval()
    for name, model in trainer.models.items():
        rates = {b: bits_per_byte(model, tokenizer, corpus.texts(b, True), 512, 2048) for b in corpora.BUCKETS}
        shown = ", ".join(f"{bucket} {rate:.3f}" for bucket, rate in rates.items())
        tqdm.write(f"\n== {name} step {trainer.progress.step}, {trainer.progress.tokens} tokens: bits per byte {shown}")
    for prompt in LOOKS:
        tqdm.write(f"--- {prompt}{sample(first, tokenizer, prompt, tokens=60)}")
    first.train()


def train_target(corpus: corpora.Corpus, tokenizer, mixture: Mixture, settings: Settings, work: Path):
    """The target, from the text itself: (model, progress)."""
    model = make_model(make_config(**SHAPES["target"]), seed=settings.seed)
    trainer = Trainer(
        {"target": model}, mixture, settings, work / "target", at_checkpoint=lambda t: look(t, corpus, tokenizer)
    )
    trainer.run()
    return model.eval(), trainer.progress


def prepare(work: Path):
    """(corpus, tokenizer, training mixture)."""
    corpus = corpora.collect()
    tokenizer = prepare_tokenizer(corpus, work)
    return corpus, tokenizer, Mixture(encode_corpus(tokenizer, corpus, heldout=False))


def train_drafts(target, corpus: corpora.Corpus, tokenizer, mixture: Mixture, settings: Settings, work: Path):
    """Both drafts together, from the target's distributions: ({name: model}, progress)."""
    drafts = {n: make_model(make_config(**shape), seed=settings.seed) for n, shape in SHAPES.items() if n != "target"}
    trainer = Trainer(
        drafts, Mixture(mixture.streams, seed=1), settings, work / "drafts",
        loss_of=distil_losses(target), at_checkpoint=lambda t: look(t, corpus, tokenizer),
    )  # fmt: skip
    trainer.run()
    return {name: model.eval() for name, model in drafts.items()}, trainer.progress


def train_family(work: Path, out: Path, target_settings: Settings, draft_settings: Settings) -> dict:
    """Everything: trained, exported to `out`, evaluated and described; returns what evaluation.json says."""
    corpus, tokenizer, mixture = prepare(work)
    target, target_progress = train_target(corpus, tokenizer, mixture, target_settings, work)
    export(target, tokenizer, out / "target")
    drafts, draft_progress = train_drafts(target, corpus, tokenizer, mixture, draft_settings, work)
    for name, model in drafts.items():
        export(model, tokenizer, out / name)
    stages = {"target": (target_settings, target_progress), "drafts": (draft_settings, draft_progress)}
    evaluation = evaluate_family(corpus, out) | {"training": training_record(stages, mixture.streams)}
    write_evaluation(evaluation, out)
    return evaluation
