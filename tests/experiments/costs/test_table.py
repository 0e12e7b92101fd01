"""A table of costs is saved and read back as it was, and gives the formulas what they take, between what was timed."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from specworkbench import theory
from specworkbench.errors import InputError
from specworkbench.experiments.costs.table import CostTable, read_costs


def timed(context, rows, ms):
    figures = {"runs": 6, "ms": ms, "ms_low": ms, "ms_high": ms, "verify_cost": 1.0}
    return {"context": context, "rows": rows, **figures, "ms_rollback": 0.1, "ms_loop": 0.1}


def of_proposer(label, context, gamma, c, overhead, own):
    return {
        "proposer": label, "context": context, "gamma": gamma, "proposed": 0 if c is None else 4.0, "c": c,
        "overhead": overhead, "ms_prefill": float(context), "ms_draft_prefill": own,
    }  # fmt: skip


DRAFT = "draft_model:embedded/draft-m"
TABLE = CostTable(
    target={"name": "toy"},
    forwards=[timed(context, n, 9.0) for context in (64, 128) for n in (1, 5)],
    limit=None,
    steps=[timed(64, 1, 10.0), timed(64, 3, 12.0), timed(64, 5, 20.0), timed(128, 1, 20.0), timed(128, 5, 30.0)],
    proposers=[
        of_proposer("none", 64, None, None, 0.05, 0.0),
        of_proposer("none", 128, None, None, 0.07, 0.0),
        of_proposer(DRAFT, 64, 4, 0.1, 0.02, 6.0),
        of_proposer(DRAFT, 128, 4, 0.3, 0.04, 8.0),
        of_proposer("ngram", 64, 4, None, 0.02, 0.0),
        of_proposer("suffix,min_prob=0", 64, 4, 0.01, 0.02, 0.0),
        of_proposer("suffix,min_prob=1", 64, 4, 0.01, 0.02, 0.0),
    ],
    memory={},
    environment={"cpu": "x"},
    runs=6,
)  # fmt: skip


def test_a_saved_table_is_read_back_as_it_was(tmp_path):
    assert read_costs(TABLE.save(tmp_path / "new" / "costs.json")) == TABLE


def test_v_is_linear_between_measured_rows_and_contexts():
    assert TABLE.v(1) == 1.0 and TABLE.v(3) == 1.2 and TABLE.v(4) == pytest.approx(1.6)
    assert TABLE.v(5, 128) == 1.5 and TABLE.step_ms(1, 96) == 15.0
    assert TABLE.v(5, 96) == pytest.approx(25 / 15)
    np.testing.assert_allclose(TABLE.v(np.array([[1, 2], [3, 5]])), [[1, 1.1], [1.2, 2]])
    assert isinstance(TABLE.v(3), float)


def test_v_is_of_bare_forwards_where_no_round_was_timed():
    assert dataclasses.replace(TABLE, steps=[]).step_ms(1) == 9.0


def test_c_o_and_prefills_are_by_proposer_and_context():
    assert TABLE.c("draft_model") == TABLE.c(DRAFT) == 0.1 and TABLE.c(DRAFT, 96) == pytest.approx(0.2)
    assert TABLE.o("none") == 0.05 and TABLE.o("draft_model", 128) == 0.04
    assert TABLE.prefill_ms(128) == 128.0 and TABLE.prefill_ms(64, "draft_model") == 6.0
    assert TABLE.gamma("draft_model") == 4 and TABLE.contexts == [64, 128]
    assert TABLE.labels[:2] == ["none", DRAFT]


def test_the_formulas_take_them():
    gamma = TABLE.gamma("draft_model")
    c, o = TABLE.c("draft_model"), TABLE.o("draft_model")
    found = theory.speedup(0.8, gamma, c, verify_cost=TABLE.v(gamma + 1), overhead=o)
    assert found == pytest.approx(theory.expected_tokens(0.8, 4) / (4 * 0.1 + 2.0 + 0.02))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda table: table.v(6), "rows is 6, and measured is 1 to 5; time it with specworkbench costs --rows"),
        (lambda table: table.v(0), "rows is 0, and measured is 1 to 5"),
        (lambda table: table.v(1, 256), "context is 256, and measured is 64 to 128"),
        (lambda table: table.c("eagle"), f"no proposer 'eagle'; they hold none, {DRAFT}"),
        (lambda table: table.c("suffix"), "several proposers of the name 'suffix'"),
        (lambda table: table.c("ngram"), "ngram has no c: it proposed nothing"),
        (lambda table: table.c("none"), "none has no c"),
        (lambda table: dataclasses.replace(table, proposers=[]).o("none"), "they hold none; time them with"),
    ],
)
def test_what_was_not_measured_is_told(ask, said):
    with pytest.raises(InputError) as caught:
        ask(TABLE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is no JSON"),
        ("[]", "holds no costs"),
        ('{"rows": []}', "holds no costs"),
        ('{"kind": "specworkbench costs", "version": 7}', "of version 7, this program reads 1"),
        ('{"kind": "specworkbench costs", "version": 1, "target": {}}', "have no forwards, limit"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, text, said):
    path = tmp_path / "costs.json"
    with pytest.raises(InputError, match="cannot read the costs"):
        read_costs(path)
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_costs(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(("name", "rows"), [("steps", [{}]), ("forwards", []), ("proposers", None), ("steps", ["x"])])
def test_a_damaged_table_is_refused(tmp_path, name, rows):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(json.loads(TABLE.as_json()) | {name: rows}))
    with pytest.raises(InputError, match="measure anew"):
        read_costs(path)


def test_a_table_is_read_without_torch(tmp_path):
    path = TABLE.save(tmp_path / "costs.json")
    code = "import sys; from specworkbench.experiments.costs.table import read_costs; read_costs(sys.argv[1]); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
