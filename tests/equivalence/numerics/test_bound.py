"""The sum of row differences bounds the difference of laws; in float64 rounding vanishes and a bias stays."""

import math

import pytest

from specworkbench.equivalence.law import decode_law_memoised, product_law, total_variation
from specworkbench.equivalence.numerics import RowDifference, rerun, sequence_tv_bound, watch
from specworkbench.equivalence.toys import table_setup
from specworkbench.errors import InputError
from tests.equivalence.numerics.cases import FAULTS, embedded_setups, toy_setup


def bound_of(setup, sequences=60, every=1):
    return sequence_tv_bound(watch(setup, RowDifference(setup.target, setup.settings.sampling, every), 0, sequences))


@pytest.mark.parametrize("name", ["rejected_token_stays", "penalties_frozen", "rows_shifted"])
def test_it_bounds_the_exact_distance_of_a_fault_of_rows(name):
    _, fault, sampling = FAULTS[name]
    setup = table_setup(1, vocab=4, sampling=sampling, prompt=(0, 0))
    faulty = fault(setup)
    distance = total_variation(decode_law_memoised(faulty), product_law(setup.target, setup.prompt, setup.settings))
    bound = bound_of(faulty)
    assert 1e-3 < distance < bound.upper and bound.estimate < bound.upper
    assert bound_of(setup).upper < 1e-12


def test_it_is_the_mean_over_sequences_of_the_sum_of_differences():
    _, fault, sampling = FAULTS["penalties_frozen"]
    setup = fault(toy_setup(sampling, vocab=20))
    difference = watch(setup, RowDifference(setup.target, sampling), 0, 3)
    sums = difference.frame().groupby("sequence")["d"].sum()
    assert sequence_tv_bound(difference).estimate == pytest.approx(sums.mean())


def test_rounds_left_out_are_made_up_for():
    _, fault, sampling = FAULTS["penalties_frozen"]
    setup = fault(toy_setup(sampling, vocab=20))
    some, every = (bound_of(setup, 12, every).estimate for every in (3, 1))
    assert some == pytest.approx(every, rel=0.5) and some != every


def test_one_sequence_has_no_upper_limit_below_one():
    assert bound_of(toy_setup(), 1).upper == 1.0


def test_nothing_measured_has_no_bound():
    with pytest.raises(InputError, match="at least one round"):
        sequence_tv_bound(RowDifference(toy_setup().target))


def test_in_float64_rounding_vanishes_and_a_bias_stays():
    _, fault, _ = FAULTS["rejected_token_stays"]
    right = rerun(lambda dtype: embedded_setups(1, dtype)).set_index("dtype")
    wrong = rerun(lambda dtype: [fault(s) for s in embedded_setups(1, dtype)]).set_index("dtype")
    assert right["d_mean"]["float64"] < 1e-6 * right["d_mean"]["float32"] and right["d_mean"]["float32"] < 1e-4
    assert list(right["verdict"]) == ["rounding"] * 2 and list(wrong["verdict"]) == ["cache"] * 2
    assert math.isclose(*wrong["d_mean"], rel_tol=0.5) and wrong["d_mean"].min() > 0.01


def test_no_prompt_is_refused():
    with pytest.raises(InputError, match="no prompt"):
        rerun(lambda dtype: [])


def test_on_a_real_model_rounding_is_small_and_vanishes_in_float64(real_model):
    from specworkbench.engine import load_model
    from specworkbench.engine.proposers import NgramProposer
    from tests.equivalence.numerics.cases import setup_of

    folder = str(real_model("smollm2"))

    def setups(dtype):
        target = load_model(folder, dtype=dtype, device="cpu")
        setup = setup_of(target, target, target.encode("1, 2, 3, 4, 1, 2, 3, 4, 1, 2,"), gamma=3, length=10)
        return [setup.but(proposer=NgramProposer(1, 3))]

    found = rerun(setups).set_index("dtype")
    assert found["d_mean"]["float32"] < 1e-3 and found["d_mean"]["float64"] < 1e-3 * found["d_mean"]["float32"]
    assert list(found["verdict"]) == ["rounding"] * 2
