"""A controller is held against the constant gamma that was best for the same cell, and for no other."""

import pandas as pd
import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import hindsight
from specworkbench.experiments.study.grid import AXES, Study, StudyCell


def table_of(*rows: tuple) -> pd.DataFrame:
    """rows: (bucket, controller, gamma, speedup), and (..., status)."""
    usual = {name: values[0] for name, values in Study(proposer=["ngram"]).axes().items()}
    cells = [
        vars(StudyCell(**usual | {"bucket": bucket, "controller": controller, "gamma": gamma}))
        | {"speedup_measured": speedup, "status": status[0] if status else "finished"}
        for bucket, controller, gamma, speedup, *status in rows
    ]
    return pd.DataFrame(cells)


def test_the_best_constant_is_that_of_the_same_cell():
    found = hindsight(
        table_of(
            ("code", "constant", 1, 1.2), ("code", "constant", 4, 2.0), ("code", "constant", 8, 1.5),
            ("code", "optimal", 8, 1.8), ("prose", "constant", 1, 1.1), ("prose", "constant", 8, 0.5),
            ("prose", "optimal", 8, 1.1), ("prose", "auto_off", 8, 0.88), ("prose", "constant", 4, 9.0, "failed"),
        )
    )  # fmt: skip
    assert found["bucket"].tolist() == ["code", "prose", "prose"]
    assert found["best_gamma"].tolist() == [4, 1, 1] and found["speedup_worst"].tolist() == [1.2, 0.5, 0.5]
    assert found["share"].tolist() == pytest.approx([0.9, 1.0, 0.8])
    assert not set(AXES) - {"bucket", "gamma", "controller"} & set(found.columns)


def test_what_has_no_counterpart_is_refused_in_a_sentence():
    for rows in (
        [("code", "constant", 1, 1.0)],
        [("code", "optimal", 1, 1.0)],
        [("a", "optimal", 1, 1.0), ("b", "constant", 1, 1.0)],
    ):
        with pytest.raises(InputError, match=r"there is no controller to compare.*agree in all else"):
            hindsight(table_of(*rows))


def test_a_cell_is_decoded_with_its_controller():
    from specworkbench.experiments.models import Models
    from specworkbench.experiments.study.grid import Study
    from specworkbench.experiments.study.parts import SPECULATIVE, decoders, target_of
    from specworkbench.experiments.study.task import task_of

    study = Study(proposer=["ngram"], controller=["heuristic,start=2"], gamma=[6], max_new_tokens=[12], per_bucket=1)
    task = task_of(study, study.cells()[0])
    decoder = decoders(Models(target_of(task)), task)[SPECULATIVE]
    decoder.run(task.prompts[0].text)
    trace = decoder.trace()
    assert trace.manifest["controller"]["settings"]["start"] == 2 and trace.rounds["gamma"].iloc[0] == 2
