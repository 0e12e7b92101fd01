"""Proposers: whoever guesses the next tokens. Each reports the distribution its guess was really drawn from."""

from __future__ import annotations

from typing import Any

from specworkbench.engine.contracts import Proposer
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.dial import DialProposer, OracleProposer, RandomProposer
from specworkbench.engine.proposers.draft_model import DraftModelProposer
from specworkbench.engine.proposers.draft_tree import TreeDraftProposer
from specworkbench.engine.proposers.eagle import EagleProposer
from specworkbench.engine.proposers.layer_skip import LayerSkipProposer
from specworkbench.engine.proposers.medusa import MedusaProposer
from specworkbench.engine.proposers.mtp import MtpProposer
from specworkbench.engine.proposers.ngram import NgramProposer
from specworkbench.engine.proposers.none import NoProposer
from specworkbench.engine.proposers.other_vocabulary import OtherVocabularyProposer
from specworkbench.engine.proposers.parallel import ParallelProposer
from specworkbench.engine.proposers.suffix import SuffixProposer
from specworkbench.engine.settings import check_settings
from specworkbench.errors import InputError

PROPOSERS: dict[str, type[Proposer]] = {
    proposer.name: proposer
    for proposer in (
        NoProposer,
        DraftModelProposer,
        TreeDraftProposer,
        OtherVocabularyProposer,
        NgramProposer,
        SuffixProposer,
        EagleProposer,
        MedusaProposer,
        MtpProposer,
        DialProposer,
        OracleProposer,
        RandomProposer,
        LayerSkipProposer,
        ParallelProposer,
    )
}


def make_proposer(
    name: str, *, target: LanguageModel | None = None, draft: Any = None, revision: str | None = None, **settings: Any
) -> Proposer:
    """A proposer by name, with its own settings (`min_n`, `max_n` for ngram; `min_prob`, `corpus`, ... for suffix).

    draft: its weights, loaded, or their name (then the target must be given); when None, what it uses by default for
    this target (see `Proposer.default_for`). Raises `InputError` for an unknown name or setting, missing or unfit
    weights, or a setting out of range.

    >>> make_proposer("ngram", min_n=2).name
    'ngram'
    """
    kind = proposer_named(name)
    check_settings(kind, settings)
    if kind.needs_target and target is None:
        raise InputError(f"the proposer {name} works on the target's own layers or rows; give it the target")
    draft = chosen_weights(kind, draft, target.name if target else "")
    if isinstance(draft, str):
        if target is None:
            raise InputError(f"the weights {draft!r} are loaded to fit a target; give it, or give loaded weights")
        draft = kind.load(draft, target, revision)
    return kind.build(target, draft, **settings)


def proposer_named(name: str) -> type[Proposer]:
    """The class of that name. Raises `InputError` for an unknown one."""
    if name not in PROPOSERS:
        raise InputError(f"there is no proposer {name!r}; choose one of {', '.join(PROPOSERS)}")
    return PROPOSERS[name]


def default_weights(kind: type[Proposer], target: str) -> str | None:
    """What a proposer uses for the target of that name when no weights are named."""
    return kind.default_for(target)


def chosen_weights(kind: type[Proposer], draft: Any, target: str) -> Any:
    """The weights given (loaded, or their name), else the default ones; None for a proposer that does without.

    Raises `InputError` where it needs some and has none.
    """
    if not kind.weights:
        return None
    draft = draft or default_weights(kind, target)
    if draft or kind.weights_optional:
        return draft
    such_as = f", for example {kind.default_weights}" if kind.default_weights else ""
    raise InputError(f"the proposer {kind.name} needs a draft, {kind.weights}; name one{such_as}")


__all__ = [
    "DialProposer",
    "DraftModelProposer",
    "EagleProposer",
    "LayerSkipProposer",
    "MedusaProposer",
    "MtpProposer",
    "NgramProposer",
    "NoProposer",
    "OracleProposer",
    "OtherVocabularyProposer",
    "PROPOSERS",
    "ParallelProposer",
    "RandomProposer",
    "SuffixProposer",
    "TreeDraftProposer",
    "chosen_weights",
    "default_weights",
    "make_proposer",
    "proposer_named",
]
