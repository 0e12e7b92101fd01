"""The one registry of checks on a trace. Loading runs the cheap ones, `specworkbench check` runs all.

for contract, finding in contracts.run(trace):
    print(finding.status, contract.name, finding.detail)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specworkbench.trace import decisions, draws, formulas, numbers, rows, structure
from specworkbench.trace.trace import Trace
from specworkbench.trace.view import Broken, Finding, View

__all__ = ["Contract", "Finding", "REGISTRY", "run"]


@dataclass(frozen=True)
class Contract:
    """A property that every trace must have. cheap: whether it is held to whenever a trace is loaded."""

    name: str
    meaning: str
    cheap: bool
    check: Callable[[View], Finding]


REGISTRY = tuple(
    Contract(name, meaning, name not in ("distributions", "draws"), check)
    for name, check, meaning in (
        ("manifest", structure.manifest_is_whole, "the manifest says all that is needed to read the tables"),
        ("rounds", structure.rounds_are_numbered, "a sequence's rounds are 0, 1, ... and draw one token each"),
        ("positions", structure.positions_are_numbered, "parents precede their children, depths follow, one is drawn"),
        (
            "prefix",
            structure.outcomes_follow_the_path,
            "one path is accepted, what was tried beside it rejected, the rest discarded; one drawn",
        ),
        ("counts", structure.counts_add_up, "a round's counts are those of its positions"),
        ("order", structure.counts_keep_their_order, "accepted <= examined <= proposed, and depth <= asked <= gamma"),
        (
            "decision",
            decisions.uniforms_decide,
            "an examined token is accepted iff u < accept_prob; under the block rule, iff one not before it passes",
        ),
        ("accept_prob", formulas.accept_prob_is_recomputed, "accept_prob is the rule's own function of p and q"),
        ("uniforms", decisions.uniforms_are_used_once, "uniforms lie in [0, 1) and none is used twice"),
        ("output", structure.output_is_what_was_emitted, "the emitted tokens, in order, are the sequence's output"),
        ("end", structure.nothing_follows_the_end, "no EOS before min_new_tokens, nothing after EOS or max_new_tokens"),
        ("context", structure.contexts_add_up, "context and target cache grow by what was emitted"),
        ("nulls", numbers.nulls_are_where_nothing_was, "what was computed is given, what was not is null"),
        ("probabilities", numbers.probabilities_agree, "p, q and the figures of their rows agree with each other"),
        ("times", numbers.times_add_up, "times are not negative and sum to at most their whole"),
        ("distributions", rows.distributions_agree, "the distributions hold the p and q of the positions"),
        (
            "draws",
            draws.tokens_are_drawn_from_their_rows,
            "every token is what its uniform draws from the row it should come from",
        ),
    )
)
"""In this order they run; only those of the distributions, which grow with what was captured, are not cheap."""


def run(trace: Trace, cheap_only: bool = False) -> list[tuple[Contract, Finding]]:
    """Every contract (or every cheap one) with what it found, in the order of the registry.

    A trace too broken for a check to read fails that check; nothing is raised.
    """
    chosen = [contract for contract in REGISTRY if contract.cheap or not cheap_only]
    view = _found(View, trace)
    if isinstance(view, Finding):
        return [(contract, view) for contract in chosen]
    return [(contract, _found(contract.check, view)) for contract in chosen]


def _found(look: Callable, at: Trace | View) -> Finding | View:
    try:
        return look(at)
    except Broken as broken:
        return broken.args[0]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        return Finding("fail", f"the trace is too broken to check ({type(error).__name__}: {error})")
