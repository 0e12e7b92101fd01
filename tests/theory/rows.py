"""Pairs of rows for properties: p and q over the same few tokens, zeros among them."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def pairs(draw, most=5):
    """p and q over the same 2 to `most` tokens; zeros are common."""
    size = draw(st.integers(2, most))
    weights = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]) | st.floats(0, 1), min_size=size, max_size=size)
    rows = [np.array(draw(weights.filter(lambda row: sum(row) > 0.01))) for _ in range(2)]
    return tuple(row / row.sum() for row in rows)


def random_rows(seed, vocab):
    """Rows of target and proposer that depend on all guesses before, the same for the same seed."""

    def rows(guesses):
        rng = np.random.default_rng([seed, len(guesses), *guesses])
        return rng.dirichlet(np.ones(vocab)), rng.dirichlet(np.ones(vocab))

    return rows
