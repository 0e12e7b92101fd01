"""Exact laws of outputs: of the target by itself, and of speculative decoding by enumeration of the real code."""

from __future__ import annotations

from functools import cache, partial

import torch

from specworkbench.engine.loop import DecodeSettings
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.sampling import Sampler, SamplingSettings
from specworkbench.equivalence.choosers import BranchingChooser, BranchingStreams, enumerate_paths
from specworkbench.equivalence.setup import Setup, run

Law = dict[tuple[int, ...], float]
"""Output tokens to their probability."""


def product_law(target: LanguageModel, prompt: tuple[int, ...], settings: DecodeSettings) -> Law:
    """The law of the target by itself: the product of its rows, each from a fresh forward over the whole prefix.

    It shares the model and the sampler with the engine, and nothing of the decode loop, the caches or the rules.

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(vocab=2, length=2)
    >>> law = product_law(setup.target, setup.prompt, setup.settings)
    >>> {output: round(share, 3) for output, share in sorted(law.items())}
    {(0, 0): 0.016, (0, 1): 0.339, (1, 0): 0.136, (1, 1): 0.509}
    """
    law: Law = {}
    unfinished = {(): 1.0}
    while unfinished:
        output, weight = unfinished.popitem()
        row = fresh_row(target, (*prompt, *output), settings.sampling, too_early(target, len(output), settings))
        for token, probability in enumerate(row.tolist()):
            if probability > 0.0:
                longer = (*output, token)
                into = law if ends(target, prompt, longer, settings) else unfinished
                into[longer] = weight * probability
    return law


def fresh_row(
    model: LanguageModel, tokens: tuple[int, ...], sampling: SamplingSettings, banned: tuple[int, ...] = ()
) -> torch.Tensor:
    """(vocab,) probabilities after `tokens`, by a forward over all of them with an empty cache; `banned` have none."""
    ids = torch.tensor(tokens, device=model.device)
    logits = model.forward(ids, model.new_cache()).logits[-1:].clone()
    logits[:, list(banned)] = -torch.inf
    seen = torch.zeros(model.vocab_size, dtype=torch.bool, device=model.device)
    seen[ids] = True
    return Sampler(sampling, model.device)(logits, seen).squeeze(0)


def too_early(target: LanguageModel, emitted: int, settings: DecodeSettings) -> tuple[int, ...]:
    """The tokens that a minimum length forbids after so many new ones: EOS, until there are `min_new_tokens`."""
    if settings.ignore_eos or emitted >= settings.min_new_tokens:
        return ()
    return tuple(token for token in target.eos_ids if token < target.vocab_size)


def ends(target: LanguageModel, prompt: tuple[int, ...], output: tuple[int, ...], settings: DecodeSettings) -> bool:
    """Whether a sequence ends with the last token of this output."""
    full = len(output) == settings.max_new_tokens or len(prompt) + len(output) == target.max_context
    eos = output[-1] in target.eos_ids and not settings.ignore_eos
    return full or eos or any(text in target.decode(output) for text in settings.stop)


def decode_law(setup: Setup) -> Law:
    """The law of the whole real decode loop with the real caches: one run for every way its choices can fall.

    >>> from specworkbench.equivalence import MUTANTS, table_setup
    >>> right = table_setup(vocab=3)
    >>> wrong = MUTANTS[0].apply(right)  # accepts every guess
    >>> expected = product_law(right.target, right.prompt, right.settings)
    >>> [round(total_variation(decode_law(setup), expected), 3) for setup in (right, wrong)]
    [0.0, 0.194]
    """
    law: Law = {}
    for output, weight in enumerate_paths(lambda root: run(setup, BranchingStreams(root, setup.wiring))):
        law[output] = law.get(output, 0.0) + weight
    return law


def decode_law_memoised(setup: Setup) -> Law:
    """The same law for a `TableModel`, one real round at a time: what follows a state is enumerated once.

    The state is what was emitted and what the target's cache holds. The draft's cache is filled anew each round; what
    is in it can change the draft only (`decode_law` has the real one).

    >>> from specworkbench.equivalence import table_setup
    >>> setup = table_setup(vocab=3)
    >>> round(total_variation(decode_law_memoised(setup), decode_law(setup)), 9)
    0.0
    """

    @cache
    def law_from(emitted: tuple[int, ...], cached: tuple[int, ...]) -> Law:
        law: Law = {}
        for (output, content, ended), weight in enumerate_paths(lambda root: one_round(setup, root, emitted, cached)):
            for whole, share in ({output: 1.0} if ended else law_from(output, content)).items():
                law[whole] = law.get(whole, 0.0) + weight * share
        return law

    return law_from((), setup.prompt[:-1])


def one_round(
    setup: Setup, root: BranchingChooser, emitted: tuple[int, ...], cached: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """One real round of a `TableModel` from a state; returns the state after it, and whether the sequence ended."""
    sequence = setup.start(BranchingStreams(root, setup.wiring))
    sequence.context.tokens.extend(emitted)
    sequence.prefill()
    sequence.cache.restore(cached)
    step = sequence.round()
    return tuple(sequence.output), sequence.cache.content, step.stop_reason is not None


def accepted_law(setup: Setup) -> list[float]:
    """Probability of each accepted length 0..gamma in the first round, by enumeration of the real code.

    >>> from specworkbench.equivalence import table_setup
    >>> [round(share, 3) for share in accepted_law(table_setup(gamma=2))]
    [0.2, 0.208, 0.592]
    """

    def first_round(root: BranchingChooser) -> int:
        sequence = setup.start(BranchingStreams(root, setup.wiring))
        sequence.prefill()
        return sequence.round().decision.accepted

    law = [0.0] * (setup.settings.gamma + 1)
    for accepted, weight in enumerate_paths(first_round):
        law[accepted] += weight
    return law


def slot_law(setup: Setup) -> dict[tuple[tuple[int, ...], int], dict[int, float]]:
    """By enumeration of the real rounds of a `TableModel`: {(output before, slot): {token: probability}}.

    A slot 1..gamma + 1 is a place in a round; it counts where its token reaches the output. The probabilities are those
    of the joint event, so that over one key they sum to the probability that the slot is reached with this output.

    >>> from specworkbench.equivalence import table_setup
    >>> law = slot_law(table_setup(vocab=2, length=2, gamma=1))
    >>> {key: round(sum(tokens.values()), 3) for key, tokens in sorted(law.items())}
    {((), 1): 1.0, ((0,), 2): 0.355, ((1,), 1): 0.244, ((1,), 2): 0.401}
    """
    found: dict[tuple[tuple[int, ...], int], dict[int, float]] = {}
    states = {((), setup.prompt[:-1]): 1.0}
    while states:
        state = min(states, key=lambda state: len(state[0]))  # no round leads back to it
        (emitted, cached), before = state, states.pop(state)
        one_round_on = partial(one_round, setup, emitted=emitted, cached=cached)
        for (output, content, ended), weight in enumerate_paths(one_round_on):
            for at in range(len(emitted), len(output)):
                tokens = found.setdefault((output[:at], at - len(emitted) + 1), {})
                tokens[output[at]] = tokens.get(output[at], 0.0) + before * weight
            if not ended:
                states[output, content] = states.get((output, content), 0.0) + before * weight
    return found


def total_variation(one: Law, other: Law) -> float:
    """Half the sum of |difference|: the most by which two laws can disagree about any event.

    >>> total_variation({(0,): 0.5, (1,): 0.5}, {(0,): 0.25, (1,): 0.25, (2,): 0.25, (3,): 0.25})
    0.5
    """
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()) / 2


def largest_difference(one: Law, other: Law) -> float:
    """The largest |difference| at a single output.

    >>> largest_difference({(0,): 0.5, (1,): 0.5}, {(0,): 0.25, (1,): 0.25, (2,): 0.25, (3,): 0.25})
    0.25
    """
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys())


def first_tokens(law: Law) -> Law:
    """The law of the first token alone.

    >>> first_tokens({(0, 1): 0.25, (0, 2): 0.25, (1, 0): 0.5})
    {(0,): 0.5, (1,): 0.5}
    """
    first: Law = {}
    for output, weight in law.items():
        first[output[:1]] = first.get(output[:1], 0.0) + weight
    return first
