"""A saved trace comes back exactly, whole or not at all; every bad file is told in a sentence."""

import io
import json
import os
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

from specworkbench.errors import InputError
from specworkbench.trace import Trace, load_trace, save_trace, schema, trace_bytes
from tests.trace.toy import toy_trace


def rewrite(path, changes: dict[str, bytes | None]) -> None:
    """The same zip with members replaced, or left out where None."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | changes).items():
            if content is not None:
                archive.writestr(name, content)


def manifest_of(path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def table_without(path, table: str, column: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        arrow = pq.read_table(io.BytesIO(archive.read(f"{table}.parquet")))
    sink = io.BytesIO()
    pq.write_table(arrow.drop_columns([column]), sink)
    return sink.getvalue()


@pytest.fixture
def saved(tmp_path):
    return save_trace(toy_trace(capture="top-k"), tmp_path / "toy.trace")


@pytest.mark.parametrize(
    "settings", [{"capture": c} for c in schema.CAPTURES] + [{"proposer": "none"}, {"per_bucket": 0}]
)
def test_a_trace_comes_back_exactly(tmp_path, settings):
    trace = toy_trace(**settings)
    loaded = load_trace(save_trace(trace, tmp_path / "toy.trace"))
    assert loaded.manifest == trace.manifest
    for table in ("rounds", "positions"):
        assert_frame_equal(getattr(loaded, table), getattr(trace, table), check_exact=True)
    if trace.distributions is None:
        assert loaded.distributions is None
    else:
        assert_frame_equal(
            loaded.distributions.drop(columns=["tokens", "p", "q"]),
            trace.distributions.drop(columns=["tokens", "p", "q"]),
        )
        for column, dtype in (("tokens", np.int32), ("p", np.float64), ("q", np.float64)):
            for one, other in zip(loaded.distributions[column], trace.distributions[column], strict=True):
                assert (one is None and other is None) or (one.dtype == dtype and np.array_equal(one, other))
    assert (loaded.rows is None) == (trace.rows is None)
    for name in trace.rows or ():
        assert loaded.rows[name].dtype == np.float32
        np.testing.assert_array_equal(loaded.rows[name], trace.rows[name])


@pytest.mark.parametrize("capture", ["top-k", "full"])
def test_distributions_are_found_after_loading(tmp_path, capture):
    trace = toy_trace(capture=capture)
    loaded = load_trace(save_trace(trace, tmp_path / "toy.trace"))
    for row in trace.positions.itertuples():
        one, other = (t.distribution(row.sequence, row.round, row.position) for t in (trace, loaded))
        assert np.array_equal(one.tokens, other.tokens) and np.array_equal(one.p, other.p)
        assert (one.q is None) == (other.q is None) == (row.outcome in ("bonus", "plain"))


def test_the_bytes_of_a_trace_are_those_of_its_file(saved, tmp_path):
    (tmp_path / "sent.trace").write_bytes(trace_bytes(toy_trace(capture="top-k")))
    assert (tmp_path / "sent.trace").read_bytes() == saved.read_bytes()


def test_equal_traces_are_equal_files_and_nothing_in_them_is_pickled(tmp_path):
    one, other = (save_trace(toy_trace(capture="full"), tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        assert set(archive.namelist()) == {
            "manifest.json", "rounds.parquet", "positions.parquet", "distributions.parquet", "rows.safetensors",
        }  # fmt: skip


def test_the_manifest_is_json_without_nan(tmp_path):
    trace = toy_trace()
    trace.manifest |= {"seed": np.int64(3), "strange": float("nan"), "vocabulary": {"7": "\ud83d", "8": "中"}}
    trace.sequences[0]["ms_prefill"] = float("inf")
    path = save_trace(trace, tmp_path / "toy.trace")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"), parse_constant=refuse)
    assert manifest["seed"] == 3 and manifest["strange"] is None and manifest["sequences"][0]["ms_prefill"] is None
    assert load_trace(path).manifest["vocabulary"] == {"7": "\ud83d", "8": "中"}


def test_ten_thousand_tokens_load_in_under_a_second(tmp_path):
    path = save_trace(toy_trace(buckets=("code",), per_bucket=10, max_new_tokens=1000), tmp_path / "long.trace")
    load_trace(path)
    start = time.process_time()
    trace = load_trace(path)
    assert time.process_time() - start < 1
    assert trace.positions["emitted"].sum() == 10_000


def test_a_failed_write_leaves_the_old_trace_and_no_other_file(tmp_path, monkeypatch):
    path = save_trace(toy_trace(), tmp_path / "toy.trace")
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        save_trace(toy_trace(seed=1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_trace_and_no_other_file(tmp_path, monkeypatch):
    path = save_trace(toy_trace(), tmp_path / "toy.trace")
    before = path.read_bytes()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_trace(toy_trace(seed=1), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_folders_on_the_way_are_made(tmp_path):
    assert load_trace(save_trace(toy_trace(), tmp_path / "a" / "b" / "toy.trace"))


def test_a_trace_cannot_be_written_over_a_folder(tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        save_trace(toy_trace(), tmp_path)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="there is no trace at"):
        load_trace(tmp_path / "none.trace")
    with pytest.raises(InputError, match="is a folder"):
        load_trace(tmp_path)


def test_a_trace_cut_short_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 12).astype(int):
        saved.write_bytes(whole[:end])
        with pytest.raises(InputError, match="no trace file, or was cut short"):
            load_trace(saved)


def test_a_byte_changed_anywhere_in_the_tables_is_refused(saved):
    whole = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("positions.parquet")
    changed = whole.copy()
    changed[info.header_offset + 200] ^= 0xFF
    saved.write_bytes(changed)
    with pytest.raises(InputError, match="damaged"):
        load_trace(saved)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"manifest.json": None}, "is a zip file but no trace: it has no manifest.json"),
        ({"manifest.json": b"{"}, "manifest.json cannot be read"),
        ({"manifest.json": b"[]"}, "manifest.json cannot be read"),
        ({"manifest.json": b"{}"}, "manifest.json cannot be read"),
        ({"manifest.json": b'{"schema_version": "x"}'}, "schema_version is 'x'"),
        ({"positions.parquet": None}, "is no whole trace: it has no positions.parquet"),
        ({"rounds.parquet": b"PAR1 and no more"}, "rounds.parquet cannot be read, the file is damaged"),
        ({"rows.safetensors": b"no rows"}, "rows.safetensors cannot be read, the file is damaged"),
    ],
)
def test_a_foreign_or_broken_file_is_told_in_a_sentence(saved, changes, sentence):
    rewrite(saved, changes)
    with pytest.raises(InputError, match=sentence):
        load_trace(saved)


def test_text_is_no_trace(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a trace")
    with pytest.raises(InputError, match="is no trace file, or was cut short"):
        load_trace(path)


def test_a_newer_schema_says_to_upgrade(saved):
    manifest = manifest_of(saved) | {"schema_version": schema.SCHEMA_VERSION + 1}
    rewrite(saved, {"manifest.json": json.dumps(manifest).encode()})
    with pytest.raises(InputError, match=r"written by a newer specworkbench .*upgrade"):
        load_trace(saved)


@pytest.mark.parametrize(("table", "column"), [("rounds", "examined"), ("positions", "u"), ("distributions", "p")])
def test_a_missing_column_is_named(saved, table, column):
    rewrite(saved, {f"{table}.parquet": table_without(saved, table, column)})
    with pytest.raises(InputError, match=f"table '{table}' lacks the columns {column}"):
        load_trace(saved)


def test_a_broken_contract_is_named_with_its_place_and_can_be_overruled(tmp_path):
    trace = toy_trace()
    row = trace.positions.index[(trace.positions["outcome"] == "rejected")][0]
    trace.positions.loc[row, "u"] = 0.0
    at = trace.positions.loc[row]
    path = save_trace(trace, tmp_path / "toy.trace")
    with pytest.raises(InputError, match=f"contract 'decision'.*in sequence {at['sequence']}, round {at['round']}"):
        load_trace(path)
    assert isinstance(load_trace(path, check=False), Trace)


def test_columns_beyond_the_schema_and_a_strange_index_are_not_kept(tmp_path):
    trace = toy_trace()
    positions = trace.positions.assign(extra=1)
    positions.index = pd.RangeIndex(100, 100 + len(positions))
    loaded = load_trace(save_trace(Trace(trace.manifest, trace.rounds, positions), tmp_path / "toy.trace"))
    assert_frame_equal(loaded.positions, trace.positions)


def test_a_path_below_a_file_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot write the trace"):
        save_trace(toy_trace(), tmp_path / "file" / "a.trace")
