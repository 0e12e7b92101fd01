"""What the exact tests demand of a law."""

import pytest

from specworkbench.equivalence.law import largest_difference, product_law, total_variation

EXACT = 1e-12


def assert_exact(setup, law):
    """The law is the target's own product law, outcome by outcome and in total."""
    expected = product_law(setup.target, setup.prompt, setup.settings)
    assert sum(law.values()) == pytest.approx(1.0, abs=EXACT)
    assert largest_difference(law, expected) < EXACT
    assert total_variation(law, expected) < EXACT
