"""Suffix decoding: frequencies of what was read, guesses from them, and a memory that stays bounded."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench.engine import SamplingSettings, make_proposer
from specworkbench.engine.proposers.suffix import SuffixTree
from specworkbench.errors import InputError
from tests.engine.test_proposers import chooser, context_of


def guesses(tokens: list[int], gamma: int = 4, **settings) -> list[int]:
    proposer = make_proposer("suffix", **settings)
    return proposer.propose(context_of(tokens, vocab=10), gamma, chooser(gamma)).tokens.tolist()


def strings_of(sequences: list[list[int]], depth: int) -> Counter:
    return Counter(
        tuple(tokens[start:stop])
        for tokens in sequences
        for start in range(len(tokens))
        for stop in range(start + 1, min(start + depth, len(tokens)) + 1)
    )


def counts_in(tree: SuffixTree) -> dict:
    found, open_nodes = {}, [((), tree.find(()))]
    while open_nodes:
        string, node = open_nodes.pop()
        for token, child in node.children.items():
            found[(*string, token)] = child.count
            open_nodes.append(((*string, token), child))
    return found


@given(st.lists(st.lists(st.integers(0, 3), max_size=25), max_size=3), st.integers(1, 5), st.integers(0, 20))
def test_the_tree_counts_every_string_of_what_it_still_remembers(sequences, depth, more):
    tree = SuffixTree(depth, size=depth + 1 + more)
    for tokens in sequences:
        tree.begin()
        for token in tokens:
            tree.read(token)
    forgotten = max(0, sum(map(len, sequences)) - tree.size)
    kept = []
    for tokens in sequences:
        kept.append(tokens[min(forgotten, len(tokens)) :])
        forgotten -= min(forgotten, len(tokens))
    assert counts_in(tree) == strings_of(kept, depth)


def test_the_most_frequent_continuation_wins_and_the_most_recent_among_equals():
    assert guesses([1, 2, 1, 3, 1, 3, 1], gamma=1) == [3]
    assert guesses([1, 2, 1, 3, 1], gamma=1, min_prob=0.5) == [3]


def test_in_greedy_decoding_the_most_recent_counts_once_more():
    tokens = [1, 3, 1, 3, 1, 2, 1]
    greedy = SamplingSettings(temperature=0)
    proposer = make_proposer("suffix", min_prob=0.0)
    assert guesses(tokens, gamma=1) == [3]
    assert proposer.propose(context_of(tokens, greedy, vocab=10), 1, chooser(1)).tokens.tolist() == [2]


def test_a_longer_match_is_believed_before_a_more_frequent_shorter_one():
    assert guesses([5, 1, 2, 6, 1, 3, 7, 1, 3, 5, 1], gamma=1) == [2]


def test_nothing_seen_before_gives_an_empty_proposal():
    assert guesses([1, 2, 3]) == []
    assert guesses([1]) == []


def test_the_length_adapts_to_the_match_and_to_its_certainty():
    repeated = [1, 2, 3, 4, 5, 6, 7, 8]
    assert guesses([*repeated, 1], gamma=6, factor=2.0) == [2, 3]
    assert guesses([*repeated, 1, 2, 3], gamma=6, factor=2.0) == [4, 5, 6, 7, 8, 1]
    split = [1, 2, 4, 9, 1, 2, 5, 9, 1, 2, 6, 9, 1]
    assert guesses(split, gamma=4, min_prob=0.6) == [2]


def test_a_repetition_is_continued_into_the_guesses_themselves():
    assert guesses([5, 6, 5, 6, 5, 6], gamma=5) == [5, 6, 5, 6, 5]


def test_a_corpus_is_kept_between_prompts_only_when_asked_for():
    for corpus, expected in ((False, []), (True, [2, 3])):
        proposer = make_proposer("suffix", corpus=corpus)
        proposer.propose(context_of([1, 2, 3], vocab=10), 2, chooser(2))
        proposer.reset()
        assert proposer.propose(context_of([9, 1], vocab=10), 2, chooser(2)).tokens.tolist() == expected


def test_memory_stays_within_its_size():
    proposer = make_proposer("suffix", max_match=2, size=50, corpus=True)
    for start in range(40):
        proposer.reset()
        proposer.propose(context_of([(start * i) % 10 for i in range(30)], vocab=10), 2, chooser(2))
    assert len(counts_in(proposer._tree)) <= 4 * 50


@pytest.mark.parametrize("setting", [{"max_match": 0}, {"min_prob": 1.5}, {"factor": 0.0}, {"size": 3}])
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        make_proposer("suffix", **setting)
