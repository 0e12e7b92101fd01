"""The corpus: one side for every name, no text on both, structured text that parses."""

from __future__ import annotations

import configparser
import csv
import io
import json
import tomllib

from specworkbench.training import corpus, structured


def of_kind(kind: str, split: str = "heldout", count: int = 40) -> list[str]:
    return [text for found, text in (structured.document(split, i) for i in range(count)) if found == kind]


def test_split_depends_on_the_name_alone_and_keeps_twins_together():
    assert corpus.split_key("_pydecimal.py") == corpus.split_key("test/test_decimal.py") == "decimal"
    assert corpus.split_key("json/__init__.py") == corpus.split_key("test/test_json/__init__.py") == "json"
    assert [corpus.is_heldout(name) for name in ("shutil.py", "test/test_shutil.py", "os.py")] == [True, True, False]


def test_only_heldout_gives_the_same_documents_as_the_whole():
    names = {doc.name for doc in corpus.library_documents(only_heldout=True)}
    assert {"shutil.py", "shutil.py docstrings", "topic strings"} <= names
    assert not any(name.startswith("os.py") for name in names)


def test_heldout_documents_made_of_training_lines_are_dropped():
    line = "    return compute_everything_there_is_to_compute(value)\n"
    fresh = "    raise NotImplementedError('nothing like it in the training half')\n"
    documents = [
        corpus.Document("a", "code", line, heldout=False),
        corpus.Document("copy", "code", line * 3, heldout=True),
        corpus.Document("own", "code", fresh, heldout=True),
    ]
    assert [doc.name for doc in corpus.without_shared_lines(documents)] == ["a", "own"]


def test_docstrings_carry_the_name_of_what_they_describe():
    text = "Give back the value that was put in, and nothing else than this value, whatever it was before."
    assert corpus.docstrings(f'def same(x):\n    """{text}"""\n    return x\n') == [f"same: {text}"]
    assert corpus.docstrings("def broken(:\n") == []


def test_generated_documents_are_the_same_every_time_and_differ_between_splits():
    first = [structured.document("train", i) for i in range(20)]
    assert first == [structured.document("train", i) for i in range(20)]
    assert not {text for _, text in first} & {structured.document("heldout", i)[1] for i in range(20)}


def test_generated_json_parses():
    for text in of_kind("json"):
        assert json.loads(text)
    for text in of_kind("jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
        assert len({tuple(row) for row in rows}) == 1


def test_generated_csv_has_the_header_s_columns_in_every_row():
    for text in of_kind("csv"):
        delimiter = ";" if ";" in text.splitlines()[0] else ","
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
        assert len(rows) > 3
        assert len({len(row) for row in rows}) == 1


def test_generated_tables_are_aligned():
    for text in of_kind("markdown"):
        table = [line for line in text.splitlines() if line.startswith("|")]
        assert len({len(line) for line in table}) == 1


def test_generated_configuration_parses_and_its_ports_count_up():
    for text in of_kind("ini"):
        parser = configparser.ConfigParser()
        parser.read_string(text)
        ports = [parser.getint(section, "port") for section in parser.sections()]
        assert ports == list(range(ports[0], ports[0] + len(ports)))
    for text in of_kind("toml"):
        assert tomllib.loads(text)["project"]["name"]


def test_totals_are_products_of_quantity_and_price():
    import random

    for row in structured.orders(random.Random(0), 20):
        assert row["total"] == round(row["quantity"] * row["unit_price"], 2)
