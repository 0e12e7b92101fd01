"""The rows of question files, told apart by their keys: our own, Spec-Bench's, SPEED-Bench's, and plain ones.

    own           id, bucket, prompt and, if wanted, language
    Spec-Bench    question_id, category, turns (MT-bench's own file has such rows too)
    SPEED-Bench   question_id, category, sub_category, turns; once prepared, question_id, category, messages
    plain         prompt, text or messages; the id is the number of the line, the bucket the name of the file

Other keys are ignored. A category becomes the bucket. Of several turns the first is the prompt: the later ones are
asked with the model's own answers before them, which no file can hold; how many there are is kept.

Formats: hemingkx/Spec-Bench, data/spec_bench/question.jsonl and evaluation/eval.py; the dataset nvidia/SPEED-Bench, and
what its specdec_bench prepares of it, as read by ai-dynamo/aiperf, dataset/loader/speed_bench.py.
"""

from __future__ import annotations

from typing import Any

from specworkbench.errors import InputError

OWN, SPEC_BENCH, SPEED_BENCH, PLAIN = "of this project", "of Spec-Bench", "of SPEED-Bench", "plain"
KNOWN = (
    "known are {id, bucket, prompt}, Spec-Bench's {question_id, category, turns}, SPEED-Bench's {question_id, "
    "category, sub_category, turns} or {question_id, category, messages}, and plain {prompt}, {text} or {messages}"
)
UNPREPARED = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"
"""What stands in SPEED-Bench's dataset where the text may not be handed on."""


def kind_of(row: dict[str, Any], where: str) -> str:
    """The format of a row. Raises `InputError` for one that is of none; where: the line, in words."""
    if "question_id" in row or "turns" in row:
        return SPEED_BENCH if "sub_category" in row or "messages" in row else SPEC_BENCH
    if "id" in row or "bucket" in row:
        return OWN
    if {"prompt", "text", "messages"} & row.keys():
        return PLAIN
    keys = ", ".join(map(repr, row)) or "none"
    raise InputError(f"{where} is no question of a known format: its keys are {keys:.200}; {KNOWN}.")


def fields_of(row: dict[str, Any], kind: str, where: str, number: int, file: str) -> dict[str, Any]:
    """The fields of the `Prompt` of a row. number: of its line; file: the name of the file, without its ending.

    Raises `InputError` for a key that is missing, or holds what it should not.
    """
    if kind == OWN:
        return _own(row, where)
    if kind == PLAIN:
        key = next(key for key in ("messages", "prompt", "text") if key in row)
        text, later = _first_message(row[key], where) if key == "messages" else (_text(row, key, where), 0)
        return {"id": str(number), "bucket": file or "all", "text": text, "language": "", "later_turns": later}
    turns = "messages" if "messages" in row else "turns"
    _require(row, ("question_id", "category", turns), where, kind)
    text, later = (_first_message if turns == "messages" else _first_turn)(row[turns], where)
    if text.strip() == UNPREPARED:
        raise InputError(
            f"{where} holds no question but SPEED-Bench's note that its text is to be fetched from the source: "
            "prepare the file with NVIDIA's specdec_bench (prepare_data.py) first."
        )
    sub_category = row.get("sub_category")
    return {
        "id": _id(row["question_id"], where),
        "bucket": _text(row, "category", where),
        "text": text,
        "language": "",
        "sub_category": "" if sub_category is None else _text(row, "sub_category", where),
        "later_turns": later,
    }


def _own(row: dict[str, Any], where: str) -> dict[str, Any]:
    _require(row, ("id", "bucket", "prompt"), where, OWN)
    fields = {key: _text(row, key, where) for key in ("id", "bucket", "prompt", "language") if key in row}
    return {"text": fields.pop("prompt"), **fields}


def _require(row: dict[str, Any], keys: tuple[str, ...], where: str, kind: str) -> None:
    missing = [key for key in keys if key not in row]
    if missing:
        *first, last = keys
        needed = f"{', '.join(first)} and {last}"
        raise InputError(f"{where} has no {' and no '.join(missing)}: every line {kind} needs {needed}.")


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise InputError(f"{where} has the {key} {value!r:.40}, which is no text: put it in quotation marks.")
    if not value.strip():
        raise InputError(f"{where} has an empty {key}: write some text, or take the line out.")
    return value


def _id(value: Any, where: str) -> str:
    """Spec-Bench numbers its questions, SPEED-Bench names them."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text({"question_id": value}, "question_id", where)


def _first_turn(turns: Any, where: str) -> tuple[str, int]:
    """The first turn, and how many come after it."""
    if not isinstance(turns, list) or not turns:
        raise InputError(f"{where} has the turns {turns!r:.40}: write a list of texts, the first question first.")
    return _text({"first turn": turns[0]}, "first turn", where), len(turns) - 1


def _first_message(messages: Any, where: str) -> tuple[str, int]:
    """What the user says first, and how often the user speaks again."""
    shaped = isinstance(messages, list) and messages and all(isinstance(message, dict) for message in messages)
    if not shaped or not all({"role", "content"} <= message.keys() for message in messages):
        raise InputError(f'{where} has messages that are no list of {{"role": ..., "content": ...}}: write them so.')
    if messages[0]["role"] != "user":
        raise InputError(
            f"{where} begins with a message of the role {messages[0]['role']!r:.40}, and a prompt is what the user "
            "says: put its text in front of the user's first message."
        )
    later = sum(message["role"] == "user" for message in messages[1:])
    return _text({"first message": messages[0]["content"]}, "first message", where), later
