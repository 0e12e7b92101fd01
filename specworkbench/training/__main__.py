"""`python -m specworkbench.training family` trains and evaluates the embedded family; `prompts` cuts its prompts."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from pathlib import Path


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m specworkbench.training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    family = commands.add_parser("family", help="train, export and evaluate the target and its drafts")
    family.add_argument("--out", type=Path, default=Path("data/models/embedded"), help="where the model folders go")
    family.add_argument("--work", type=Path, default=Path("train-run"), help="checkpoints; a run resumes from them")
    family.add_argument("--minutes", type=float, default=70, help="minutes for the target")
    family.add_argument("--draft-minutes", type=float, default=18, help="minutes for both drafts")
    family.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads")
    family.add_argument("--seed", type=int, default=0)
    prompts = commands.add_parser("prompts", help="cut the embedded prompts from held-out text")
    prompts.add_argument(
        "--model", type=Path, default=Path("data/models/embedded/target"), help="whose tokenizer counts"
    )
    prompts.add_argument("--out", type=Path, default=Path("data/prompts/embedded.jsonl"))
    options = parser.parse_args(arguments)
    for name in ("minutes", "draft_minutes", "threads"):
        if options.command == "family" and not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be above 0.")
    return options


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks: else tensors of 64 MB cost a fault a page at every step (2.5 times slower)."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX: never mmap a block
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: do not give the top back


def main(arguments: list[str] | None = None) -> int:
    """Run one command; exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if options.command == "prompts":
        return make_prompts_file(options)
    keep_freed_memory()
    import torch

    from specworkbench.training.pipeline import train_family
    from specworkbench.training.trainer import Settings

    torch.set_num_threads(options.threads)
    shared = dict(seed=options.seed)
    evaluation = train_family(
        options.work,
        options.out,
        Settings(minutes=options.minutes, **shared),
        Settings(minutes=options.draft_minutes, **shared),
    )
    for name, row in evaluation["bits_per_byte"].items():
        print(f"{name:10}" + "".join(f"{bucket:>12} {rate:.3f}" for bucket, rate in row.items()))
    return 0


def make_prompts_file(options: argparse.Namespace) -> int:
    """Write the prompts; 2 when there is no tokenizer to count with."""
    from transformers import AutoTokenizer

    from specworkbench.training.corpus import collect
    from specworkbench.training.prompts import make_prompts, write_prompts

    if not (options.model / "tokenizer.json").exists():
        print(
            f"{options.model} has no tokenizer.json; train the family first, or name its folder with --model.",
            file=sys.stderr,
        )
        return 2
    records = make_prompts(collect(), AutoTokenizer.from_pretrained(options.model))
    write_prompts(records, options.out)
    print(f"{len(records)} prompts written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
