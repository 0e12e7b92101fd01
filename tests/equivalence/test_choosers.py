"""The branching chooser walks every way the choices can fall, once, with the right weight."""

import numpy as np
import pytest
import torch

from specworkbench.engine.rng import Streams
from specworkbench.equivalence.choosers import (
    Branches,
    BranchingChooser,
    BranchingStreams,
    WiredStreams,
    enumerate_paths,
)

ROW = (0.1, 0.0, 0.6, 0.3)
UNLIKE = [0.0, 1e-9, 0.3, 1.0]


def rows(*weights):
    return torch.tensor(weights, dtype=torch.float64)


def law_of(run):
    law = {}
    for outcome, weight in enumerate_paths(run):
        law[outcome] = law.get(outcome, 0.0) + weight
    return law


def test_accept_branches_over_all_flags_and_multiplies():
    law = law_of(lambda choose: tuple(choose.accept(rows(0.25, 0.5, 0.9)).tolist()))
    assert len(law) == 8
    assert law[True, False, True] == pytest.approx(0.25 * 0.5 * 0.9, abs=1e-15)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)


def test_draw_branches_over_every_row():
    law = law_of(lambda choose: tuple(choose.draw(rows(ROW, [2.0, 2.0, 0.0, 0.0])).tolist()))
    assert law.keys() == {(i, j) for i in (0, 2, 3) for j in (0, 1)}
    assert law[2, 1] == pytest.approx(0.3, abs=1e-15)


@pytest.mark.parametrize("prob", UNLIKE)
def test_branches_of_weight_zero_are_never_walked(prob):
    flags = [flag for flag, _ in enumerate_paths(lambda choose: bool(choose.accept(rows(prob))))]
    assert set(flags) == ({True, False} if 0 < prob < 1 else {prob == 1.0})


def test_the_paths_of_choices_that_depend_on_each_other_weigh_one():
    """Later decisions are of another number and kind on every path."""

    def run(choose):
        drawn = int(choose.draw(rows(ROW)))
        flags = choose.accept(rows(*[0.5, 0.7, 0.9][:drawn]))
        return drawn, int(flags.sum()), choose.draw(rows(ROW)).item() if flags.all() else None

    law = law_of(run)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)
    assert law[2, 2, 3] == pytest.approx(0.6 * 0.35 * 0.3, abs=1e-15)


def test_draws_at_a_position_and_draws_in_order_read_the_same_uniforms():
    """As in real decoding: the second draw falls as the first, because it reads the first's uniform."""
    law = law_of(lambda choose: (int(choose.draw(rows(ROW))), int(choose.draw(rows(ROW), at=torch.tensor([0])))))
    assert law == pytest.approx({(0, 0): 0.1, (2, 2): 0.6, (3, 3): 0.3}, abs=1e-15)


def test_decisions_that_share_a_uniform_depend_on_each_other():
    shared = lambda branches: BranchingChooser(branches, cell=lambda kind, position: "the only one")  # noqa: E731
    law = law_of(lambda choose: tuple(shared(choose.branches).accept(rows(0.3, 0.8)).tolist()))
    assert law == pytest.approx({(True, True): 0.3, (False, True): 0.5, (False, False): 0.2}, abs=1e-15)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.5, float("nan")), (1.5, -0.5), (float("inf"), 1.0)])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="cannot branch"):
        Branches().decide("cell", weights)


def test_a_run_that_depends_on_more_than_its_choices_is_refused():
    runs = []

    def forgetful(choose):
        runs.append(1)
        return choose.accept(rows(0.5, 0.5)) if len(runs) == 1 else None

    with pytest.raises(RuntimeError, match="do not determine it"):
        list(enumerate_paths(forgetful))


def test_streams_of_different_rounds_sequences_and_names_are_independent():
    def run(choose):
        streams = BranchingStreams(choose)
        first, drafted = streams.for_proposer(0, 0, 1)
        choosers = [first, streams.for_proposer(0, 1, 1)[0], streams.for_proposer(1, 0, 1)[0]]
        choosers.append(streams.for_verifier(0, 0, 1, drafted)[0])
        return tuple(int(chooser.draw(rows([0.5, 0.5]))) for chooser in choosers)

    law = law_of(run)
    assert len(law) == 16
    assert set(law.values()) == {2.0**-4}


def test_correctly_wired_streams_are_the_engines_own():
    device = torch.device("cpu")
    own, wired = Streams(3, device, torch.float64), WiredStreams(3, device, torch.float64)
    _, drafted = own.for_proposer(1, 2, 3)
    for size in (0, 1, 3):
        _, expected = own.for_verifier(1, 2, size, drafted)
        _, found = wired.for_verifier(1, 2, size, drafted)
        assert np.array_equal(found.accept, expected.accept)
        assert np.array_equal(found.drawn, expected.drawn)


def test_a_wiring_may_read_what_a_guess_was_drawn_with():
    streams = WiredStreams(3, torch.device("cpu"), torch.float64, lambda stream, position: ("draft", position))
    _, drafted = streams.for_proposer(1, 2, 3)
    _, used = streams.for_verifier(1, 2, 3, drafted)
    assert torch.equal(used.drawn[:3], drafted.draft)
