"""A part of a trace is a trace: every contract still holds."""

import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.trace import contracts
from tests.trace.toy import toy_trace


@pytest.mark.parametrize("capture", ["none", "top-k", "full"])
@pytest.mark.parametrize("chosen", [[0], [4, 1], [], range(6)])
def test_selected_sequences_keep_every_contract(capture, chosen):
    trace = toy_trace(capture=capture)
    part = analysis.select(trace, chosen)
    assert [s["id"] for s in part.sequences] == [trace.sequences[i]["id"] for i in chosen]
    assert all(finding.status != "fail" for _, finding in contracts.run(part))
    for number, index in enumerate(chosen):
        assert part.output(number)["token"].tolist() == trace.output(index)["token"].tolist()


def test_buckets_share_out_the_rounds():
    trace = toy_trace()
    parts = analysis.by_bucket(trace)
    assert list(parts) == ["code", "prose"]
    assert sum(len(part.rounds) for part in parts.values()) == len(trace.rounds)
    assert {s["bucket"] for s in parts["prose"].sequences} == {"prose"}


def test_a_sequence_that_is_not_there_is_told_in_a_sentence():
    with pytest.raises(InputError, match="there is no sequence 6; the trace has 6"):
        analysis.select(toy_trace(), [6])
