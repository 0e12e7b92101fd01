"""Evidence: what is kept of the traces agrees with them, survives without them, and is made but once."""

import shutil

import pandas as pd
import pytest

from specworkbench import analysis
from specworkbench.errors import InputError
from specworkbench.experiments.claims.evidence import (
    PLACE_TOKENS,
    PLACES,
    PROMPTS,
    by_place,
    by_prompt,
    read_evidence,
    repeated,
    update,
)
from specworkbench.experiments.claims.sample import Sample
from specworkbench.experiments.study import Study, run_study
from specworkbench.trace import load_trace

STUDY = Study(
    ("ngram", "draft_model:embedded/draft-s"), temperature=0, per_bucket=1, max_new_tokens=2 * PLACE_TOKENS,
    ignore_eos=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    """A small study of the embedded target, with its traces."""
    folder = tmp_path_factory.mktemp("claims") / "study"
    run_study(STUDY, folder)
    return folder


@pytest.fixture
def folder(decoded, tmp_path):
    shutil.copytree(decoded, tmp_path / "study")
    return tmp_path / "study"


def traces(folder, row):
    return [load_trace(folder / "cells" / row["id"] / f"{side}.trace") for side in ("plain", "speculative")]


def test_totals_give_the_figures_of_the_study(folder):
    found = read_evidence(folder)
    sample = Sample(found)
    for row in found.cells.to_dict("records"):
        cell = next(cell for cell in sample.cells if cell["cell"] == row["id"])
        assert sample.alpha(cell)[0] == pytest.approx(row["alpha_overlap"])
        assert sample.speedup(cell)[0] == pytest.approx(row["speedup_measured"])
        assert sample.speedup(cell, prefill=False)[0] == pytest.approx(row["speedup_rounds"])
        accepted = sample.total(cell, "accepted")[0] / sample.total(cell, "examined")[0]
        assert accepted == pytest.approx(row["alpha_counts"])
        balance = sample.tokens_per_round(cell)[0] / sample.round_cost(cell)[0]
        assert balance == pytest.approx(row["speedup_rounds"])  # break-even is where tokens a round equal its cost


def test_places_add_up_to_the_whole_and_agree_with_the_analysis(folder):
    row = read_evidence(folder).cells.iloc[0]
    _, speculative = traces(folder, row)
    places = by_place(speculative)
    assert places["examined"].sum() == analysis.alpha_counts(speculative).n
    bins = analysis.acceptance_by(speculative, "output_index", bins=[0, PLACE_TOKENS, 2 * PLACE_TOKENS])
    by_bin = places[places["place"] < 2 * PLACE_TOKENS].groupby("place")[["examined", "accepted"]].sum()
    assert by_bin["examined"].tolist() == bins["examined"].tolist()
    assert by_bin["accepted"].tolist() == bins["accepted"].tolist()


def test_the_traces_may_go_and_nothing_changes(folder):
    before = read_evidence(folder)
    update(folder, before.cells["id"], traces=False)
    assert not list(folder.rglob("*.trace"))
    after = read_evidence(folder)
    pd.testing.assert_frame_equal(before.prompts, after.prompts, check_dtype=False)
    pd.testing.assert_frame_equal(before.places, after.places, check_dtype=False)


def test_what_is_kept_is_not_made_again_and_what_is_new_is_added(folder):
    first, second = read_evidence(folder).cells["id"]
    for name in (PROMPTS, PLACES):
        (folder / name).unlink()
    update(folder, [first])
    kept = pd.read_parquet(folder / PROMPTS)
    assert set(kept["cell"]) == {first}
    for path in (folder / "cells" / first).glob("*.trace"):
        path.unlink()
    assert set(update(folder, [first, second])[0]["cell"]) == {first, second}


def test_a_study_is_complete_once_every_cell_is_there(folder):
    assert read_evidence(folder).complete
    shutil.rmtree(next((folder / "cells").iterdir()))
    assert not read_evidence(folder).complete


def test_a_folder_without_a_study_has_none_and_a_damaged_file_is_told(folder, tmp_path):
    assert read_evidence(tmp_path) is None
    (folder / PROMPTS).write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"prompts\.parquet"):
        read_evidence(folder)


def test_a_model_has_its_size_and_a_look_up_none(folder):
    sample = Sample(read_evidence(folder))
    sizes = {cell["proposer"]: sample.size(cell) for cell in sample.cells}
    assert sizes["draft_model:embedded/draft-s"] == pytest.approx(163116 / 6557952)
    assert pd.isna(sizes["ngram"])


def test_repeated_counts_what_a_look_up_would_have_known():
    sequence = {"prompt_tokens": [1, 2, 3, 4], "token_ids": [1, 2, 3, 4, 1, 9]}
    assert repeated(sequence) == 2  # 4 after 1 2 3, 1 after 2 3 4; then 9 where 2 was due
    assert repeated({"prompt_tokens": [1], "token_ids": [2, 3, 4]}) == 0


def test_prompts_of_both_sides_stand_in_one_row(folder):
    plain, speculative = traces(folder, read_evidence(folder).cells.iloc[0])
    table = by_prompt(plain, speculative)
    assert len(table) == len(plain.sequences) and table["plain_tokens"].eq(2 * PLACE_TOKENS).all()
    assert (table["ms_rounds"] <= table["ms"]).all()
