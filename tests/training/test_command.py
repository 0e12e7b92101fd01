"""`python -m specworkbench.training`: bad input gets a sentence and exit code 2."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="transformers is not installed (the extra 'engine')")

from specworkbench.training.__main__ import main


def test_minutes_of_zero_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["family", "--minutes", "0"])
    assert stopped.value.code == 2
    assert "must be above 0" in capsys.readouterr().err


def test_prompts_without_a_tokenizer_are_refused(capsys, tmp_path):
    assert main(["prompts", "--model", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]) == 2
    assert "has no tokenizer.json" in capsys.readouterr().err
