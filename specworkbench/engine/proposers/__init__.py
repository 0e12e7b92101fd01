"""Proposers: whoever guesses the next tokens. Each reports the distribution its guess was really drawn from."""

from __future__ import annotations

from typing import Any

from specworkbench.engine.contracts import Proposer
from specworkbench.engine.models import LanguageModel, check_same_vocabulary
from specworkbench.engine.proposers.draft_model import DraftModelProposer
from specworkbench.engine.proposers.ngram import NgramProposer
from specworkbench.engine.proposers.none import NoProposer
from specworkbench.engine.proposers.suffix import SuffixProposer
from specworkbench.errors import InputError

PROPOSERS: dict[str, type[Proposer]] = {
    proposer.name: proposer for proposer in (NoProposer, DraftModelProposer, NgramProposer, SuffixProposer)
}


def make_proposer(
    name: str, *, target: LanguageModel | None = None, draft: LanguageModel | None = None, **settings: Any
) -> Proposer:
    """A proposer by name, with its own settings (`min_n`, `max_n` for ngram; `min_prob`, `corpus`, ... for suffix).

    draft: the model of `draft_model`, whose vocabulary is compared with the target's when that is given. Raises
    `InputError` for an unknown name, a missing draft, another vocabulary, or a setting out of range.
    """
    if name not in PROPOSERS:
        raise InputError(f"there is no proposer {name!r}; choose one of {', '.join(PROPOSERS)}")
    if name != DraftModelProposer.name:
        return PROPOSERS[name](**settings)
    if draft is None:
        raise InputError("the proposer draft_model needs a draft; name one, for example embedded/draft-m")
    if target is not None:
        check_same_vocabulary(target, draft)
    return DraftModelProposer(draft, **settings)


__all__ = ["PROPOSERS", "DraftModelProposer", "NgramProposer", "NoProposer", "SuffixProposer", "make_proposer"]
