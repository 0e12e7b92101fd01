"""The prompts of a command: those that suit the target, and a word on turns that are left out."""

import json

import pytest

from specworkbench.cli.questions import prompts_asked_for


def test_the_shipped_prompts_suit_the_target(capsys):
    assert prompts_asked_for(None, "embedded")[0] == "embedded"
    assert prompts_asked_for(None, "embedded/target", 1)[0] == "embedded"
    source, prompts = prompts_asked_for(None, "somebody/model", 1)
    assert source == "general" and len(prompts) == 7
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("later", "said"), [(2, "of 1 of 2 prompts the first turn alone"), (0, "")])
def test_turns_that_are_left_out_are_counted_aloud(tmp_path, capsys, later, said):
    rows = [{"question_id": n, "category": "qa", "turns": ["a"] + ["b"] * (later if n else 0)} for n in (0, 1)]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    prompts_asked_for(str(path), "embedded")
    err = capsys.readouterr().err
    assert said in err and ("2 later turns" in err) == bool(later)
