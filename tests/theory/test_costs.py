"""A round's cost, what a reported speedup implies, and decoding in batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specworkbench import theory
from specworkbench.errors import InputError
from specworkbench.theory.costs import last_gamma, verify_cost_at

COST = st.floats(0, 3)
TIME = st.floats(0.01, 100)


@pytest.mark.parametrize(("speedup", "tokens"), [(1.92, 2.90), (2.01, 3.04), (2.46, 3.72)])
def test_speedups_of_chinchilla_imply_their_block_efficiency(speedup, tokens):
    """Chen et al. 2023: four guesses, 14.1 ms a target step, 1.8 ms a draft step."""
    assert round(theory.implied_tokens(speedup, 4, 1.8 / 14.1), 2) == tokens


@given(st.floats(0, 1), st.integers(0, 20), COST, st.floats(0.5, 4), COST)
def test_implied_tokens_is_the_speedup_read_backwards(alpha, gamma, c, verify_cost, overhead):
    costs = {"verify_cost": verify_cost, "overhead": overhead}
    implied = theory.implied_tokens(theory.speedup(alpha, gamma, c, **costs), gamma, c, **costs)
    assert implied == pytest.approx(theory.expected_tokens(alpha, gamma))


def test_round_cost_adds_up_and_is_one_plain_step_without_guesses():
    assert theory.round_cost(4, 0.1, verify_cost=1.5, overhead=0.2) == pytest.approx(2.1)
    assert theory.round_cost(0, 0.7) == 1


@given(st.floats(1, 9), st.integers(0, 12), TIME, TIME, TIME, TIME, TIME)
def test_a_batch_is_the_cost_aware_form_in_its_own_plain_steps(tokens, gamma, plain, draft, verify, rest, unit):
    times = [plain, draft, verify, rest]
    speedup = theory.batched_speedup(tokens, gamma, *times)
    costs = theory.round_cost(gamma, draft / plain, verify_cost=verify / plain, overhead=rest / plain)
    assert speedup == pytest.approx(tokens / costs)
    assert theory.batched_speedup(tokens, gamma, *(time * unit for time in times)) == pytest.approx(speedup)


def test_a_batch_gains_less_once_verifying_is_no_longer_free():
    """Rows share the weights that are read until arithmetic binds: then gamma + 1 rows cost more than one."""
    batch = np.array([1, 4, 16, 64, 256])
    step = lambda rows: theory.least_time(1e9, 1e12, 2e9 * rows, 1e14)  # noqa: E731
    speedups = theory.batched_speedup(3.0, 4, step(batch), 0.0, step(5 * batch))
    assert speedups[0] == 3 and (np.diff(speedups) <= 0).all() and speedups[-1] == pytest.approx(3 / 5)


def test_the_cost_of_verifying_is_a_number_a_table_or_a_function():
    positions = [[1, 3], [2, 2]]
    assert verify_cost_at(1.5, positions).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert verify_cost_at([1, 1.2, 1.9], positions).tolist() == [[1, 1.9], [1.2, 1.2]]
    assert verify_cost_at(lambda n: 1 + n / 10, positions).tolist() == [[1.1, 1.3], [1.2, 1.2]]


def test_a_table_says_how_far_a_best_gamma_is_looked_for():
    assert (last_gamma([1, 1.2, 1.3], None), last_gamma(1.0, None), last_gamma(len, 5)) == (2, 64, 5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.implied_tokens(0, 4, 0.1), "speedup is 0; it must be more than 0"),
        (lambda: theory.batched_speedup(0.5, 4, 1, 1, 1), "expected_tokens is 0.5; it is in tokens per round"),
        (lambda: theory.batched_speedup(2, 4, 0, 1, 1), "plain_time is 0; it must be more than 0"),
        (lambda: theory.batched_speedup(2, 4, 1, -1, 1), "draft_time is -1; it is a time"),
        (lambda: verify_cost_at([1, 1.2], 4), r"has 2 entries, v\(1\) to v\(2\), and v\(4\) is asked for"),
        (lambda: verify_cost_at([[1, 1.2]], 1), r"verify_costs has shape \(1, 2\)"),
        (lambda: verify_cost_at(lambda n: 0, 1), "verify_costs is 0; it is a cost"),
    ],
)
def test_what_is_outside_its_limits_is_told_in_a_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
