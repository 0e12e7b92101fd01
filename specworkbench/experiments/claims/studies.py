"""The studies that test the claims: for the embedded family, or a target with drafts of its own. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from specworkbench.errors import InputError
from specworkbench.experiments.claims.claim import Claim
from specworkbench.experiments.study.grid import Study
from specworkbench.paths import EMBEDDED

DRAFT_M, DRAFT_S = "draft_model:embedded/draft-m", "draft_model:embedded/draft-s"
LAYERS = tuple(f"layer_skip,layers={layers}" for layers in (2, 4, 6))
HEADS = ("eagle", "medusa", "mtp")
LOOK_UP = ("ngram", "suffix")
QUICK_TOKENS = 24


def studies_for(target: str = EMBEDDED, drafts: Sequence[str] = (), quick: bool = False) -> dict[str, Study]:
    """By name. drafts: draft models of a target that is not the embedded one. quick: two prompts a bucket and few
    tokens, to see how it works. Raises `InputError` for drafts beside the embedded target, which has its own.

    >>> studies_for()["gamma"].gamma
    (1, 2, 3, 4, 5, 6, 8)
    """
    if target != EMBEDDED:
        found = _of_pair(target, drafts)
    elif drafts:
        raise InputError(f"the embedded target comes with drafts of its own; leave {', '.join(drafts)} out")
    else:
        found = _of_embedded()
    return {name: _quick(study) for name, study in found.items()} if quick else found


def needed(claims: Iterable[Claim], studies: dict[str, Study]) -> dict[str, Study]:
    """Those studies that these claims rest on."""
    names = {name for claim in claims for name in claim.studies}
    return {name: study for name, study in studies.items() if name in names}


def _of_embedded() -> dict[str, Study]:
    both = {"temperature": (0, 1), "ignore_eos": True}
    some = ("eagle", DRAFT_M, "ngram")
    return {
        "proposers": Study((DRAFT_M, DRAFT_S, *LAYERS, *HEADS, *LOOK_UP), **both),
        "gamma": Study(some, gamma=(1, 2, 3, 4, 5, 6, 8), **both),
        "temperature": Study(("eagle", DRAFT_M), temperature=(0, 0.5, 1, 1.5), ignore_eos=True),
        "top-p": Study(("eagle", DRAFT_M), top_p=(1, 0.9, 0.7, 0.5), ignore_eos=True),
        "long-outputs": Study(("eagle", DRAFT_M), max_new_tokens=512, per_bucket=8, **both),
        "output-length": Study(some, max_new_tokens=(8, 32, 128), **both),
        "prompt-length": Study(some, prompt_length=(32, 128, 768), max_new_tokens=48, per_bucket=8, **both),
        "quantisation": Study(
            some, quantisation=("none", "int8"), temperature=0, per_bucket=4, ignore_eos=True, fused=False,
            products=False,
        ),
    }  # fmt: skip


def _of_pair(target: str, drafts: Sequence[str]) -> dict[str, Study]:
    """Few prompts and short outputs: such targets take seconds a token on a CPU."""
    models = tuple(f"draft_model:{draft}" for draft in drafts)
    some, all_of_them = (*models, "ngram"), (*models, *LOOK_UP)
    both = {"target": target, "temperature": (0, 1), "ignore_eos": True, "per_bucket": 1, "max_new_tokens": 48}
    greedy = both | {"temperature": 0}
    found = {
        "proposers": Study(all_of_them, **both),
        "gamma": Study(some, gamma=(1, 2, 4, 6), **greedy),
        "long-outputs": Study(models or some, **greedy | {"max_new_tokens": 256}),
        "output-length": Study(some, **greedy | {"max_new_tokens": (8, 32, 96)}),
        "prompt-length": Study(some, prompt_length=(32, 256), **greedy | {"per_bucket": 2}),
        "quantisation": Study(some, quantisation=("none", "int8"), fused=False, products=False, **greedy),
    }
    if models:
        found["temperature"] = Study(models, **both | {"temperature": (0, 0.5, 1, 1.5)})
        found["top-p"] = Study(models, top_p=(1, 0.9, 0.7, 0.5), **both | {"temperature": 1})
    return found


def _quick(study: Study) -> Study:
    tokens = tuple(min(tokens, 128 if tokens > 200 else QUICK_TOKENS) for tokens in study.max_new_tokens)
    return replace(study, per_bucket=min(study.per_bucket or 2, 2), max_new_tokens=tokens)
