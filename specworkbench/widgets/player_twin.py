"""The round player's picture as HTML without scripts: one round in full, and the lanes around it."""

from __future__ import annotations

from html import escape
from itertools import accumulate, pairwise
from typing import Any

from specworkbench.plots import palette
from specworkbench.widgets.page_style import unstyled
from specworkbench.widgets.player_lanes import PHASES
from specworkbench.widgets.player_words import counted, ms

EMPTY = "No rounds yet: open a trace or decode a prompt, and its rounds are played here."
PHASE_WORDS = dict(zip(PHASES, ("propose", "verify", "decide", "roll back", "other"), strict=True))
NEAR = 3.5
"""Rounds that the lanes show."""
SEEN = 0.005
"""ms, below which a time is not told."""
_COMMA = unstyled(", ")


def player_html(played: dict[str, Any], step: int, message: str = "") -> str:
    """The round of a step with all its steps done. played: as `player_rounds` prepares it; empty for nothing."""
    told = f'<p class="swbp-message" role="alert">{escape(message)}</p>' if message else ""
    if not played.get("steps"):
        return f'<div class="swb swb-scripted swb-player">{told or f"<p class=swb-empty>{EMPTY}</p>"}</div>'
    number = played["steps"][step]["round"]
    round_ = played["rounds"][number]
    steps = "".join(f"<li>{escape(own['text'])}</li>" for own in played["steps"] if own["round"] == number)
    return (
        f'<div class="swb swb-scripted swb-player"><div class="swb-title">{escape(played["title"])}</div>{told}'
        f'<ol class="swbp-told">{steps}</ol>{_positions(round_)}{_cache(round_)}{_lanes(played, number)}'
        f'<p class="swbp-note">{escape(played["plain_note"])}</p></div>'
    )


def _positions(round_: dict[str, Any]) -> str:
    """The tokens of the round in columns by position."""
    deepest = max(token["position"] for token in round_["tokens"])
    columns = []
    for position in range(1, deepest + 1):
        cards = "".join(_card(round_, token) for token in round_["tokens"] if token["position"] == position)
        columns.append(f'<div class="swbp-column"><span class="swbp-label">position {position}</span>{cards}</div>')
    context = escape("".join(round_["context"]))
    return (
        f'<div class="swbp-context"><span class="swbp-label">context </span><code class="swbp-code">…{context}</code>'
        f'</div><div class="swbp-columns">{"".join(columns)}</div>'
    )


def _card(round_: dict[str, Any], token: dict[str, Any]) -> str:
    glyph = palette.OUTCOMES[token["outcome"]].glyph + (palette.CUT.glyph if token["cut"] else "")
    before = round_["context"][-1:] if token["parent"] < 0 else [round_["tokens"][token["parent"]]["text"]]
    after = f'<span class="swbp-after"> after {escape("".join(before))}</span>' if round_["tree"] else ""
    fate = ", ".join(filter(None, [token["outcome"], token["origin"], "cut off by the end" if token["cut"] else ""]))
    q = "" if token["q"] is None or token["node"] < 0 else _meter("q", token["q"], token["q_text"])
    p = _meter("p", token["p"], token["p_text"])
    return (
        f'<div class="swbp-card" data-judged="true" data-outcome="{token["outcome"]}"'
        f' data-cut="{str(token["cut"]).lower()}"><span class="swbp-chip"><span class="swbp-glyph">{glyph} </span>'
        f"{_token(token)}</span>{after}{q}{p}{_decision(token)}{_COMMA}"
        f'<span class="swbp-fate">{fate}</span></div>'
    )


def _token(token: dict[str, Any]) -> str:
    code = f'<code class="swbp-token">{escape(token["text"])}</code>'
    return f"<s>{code}</s>" if token["outcome"] == "rejected" else code


def _meter(name: str, value: float, text: str) -> str:
    fill = f'<span class="swbp-fill" style="width: {100 * value:.3f}%"></span>'
    return (
        f'{_COMMA}<span class="swbp-meter" data-of="{name}"><span class="swbp-name">{name} </span>'
        f'<span class="swbp-bar">{fill}</span><span class="swbp-value">{text}</span></span>'
    )


def _decision(token: dict[str, Any]) -> str:
    if token["decided"] < 0:
        return ""
    if token["u"] is None:
        return f'{_COMMA}<span class="swbp-decision"><span class="swbp-value">compared, no u</span></span>'
    sign = "&lt;" if token["u"] < token["accept_prob"] else "≥"
    return (
        f'{_COMMA}<span class="swbp-decision"><span class="swbp-bar swbp-judge">'
        f'<span class="swbp-accept" style="width: {100 * min(1.0, token["accept_prob"]):.3f}%"></span>'
        f'<span class="swbp-needle" style="left: {100 * token["u"]:.3f}%"></span></span>'
        f'<span class="swbp-value">u {token["u_text"]} {sign} {token["accept_text"]}</span></span>'
    )


def _cache(round_: dict[str, Any]) -> str:
    """The target's cache at the round's end: what it held, what its forward added and what of it stayed."""
    before, _, after = round_["cache"]
    room = after - before - 1
    cells = [("".join(round_["context"][-1:]), True)]
    for token in round_["tokens"]:
        if token["node"] >= 0:
            stays = token["outcome"] == "accepted" and room > 0
            room -= stays
            cells.append((token["text"], stays))
    shown = " ".join(
        f'<span class="swbp-cell" data-state="{"kept" if stays else "dropped"}">{_cell(text, stays)}</span>'
        for text, stays in cells
    )
    return (
        f'<div class="swbp-cache"><span class="swbp-label">KV cache </span><span class="swbp-cached">{before} tokens'
        f"</span> {shown}{unstyled(' =')}<strong> {after}</strong></div>"
    )


def _cell(text: str, stays: bool) -> str:
    code = f"<code>{escape(text)}</code>"
    return code if stays else f"<s>{code}</s>"


def _lanes(played: dict[str, Any], number: int) -> str:
    """Both lanes around the round, on one clock."""
    rounds = played["rounds"]
    last = rounds[-1]["start"] + sum(rounds[-1]["phases"])
    span = NEAR * (last - rounds[0]["start"]) / len(rounds)
    start = max(0.0, rounds[number]["start"] - span / 5)
    lanes = [lane for lane in played["lanes"].values() if lane]
    tracks = "".join(_lane(lane, start, start + span, None if at else number) for at, lane in enumerate(lanes))
    legend = _COMMA.join(
        f'<span class="swbp-time"><span class="swbp-key" data-phase="{phase}"></span>{word} {ms(time)}</span>'
        for (phase, word), time in zip(PHASE_WORDS.items(), rounds[number]["phases"], strict=True)
        if time >= SEEN
    )
    times = f'<p class="swbp-times"><span class="swbp-label">round {rounds[number]["round"]}: </span>{legend}</p>'
    return f'{tracks}<p class="swbp-note">from {ms(start)} to {ms(start + span)} after the start</p>{times}'


def _lane(lane: dict[str, Any], start: float, end: float, current: int | None) -> str:
    """The blocks of a lane within a window (ms)."""
    ends = accumulate((sum(block["phases"]) for block in lane["blocks"]), initial=lane["prefill"])
    parts = [f'<span class="swbp-prefill" style="{_across(0, lane["prefill"], start, end)}"></span>']
    for index, (block, (left, right)) in enumerate(zip(lane["blocks"], pairwise(ends), strict=True)):
        if right <= start or left >= end:
            continue
        inside = max(left, start), min(right, end)
        edges = pairwise(accumulate(block["phases"], initial=left))
        phases = "".join(
            f'<span class="swbp-phase" data-phase="{phase}" style="{_across(*edge, *inside)}"></span>'
            for phase, edge in zip(PHASES, edges, strict=True)
            if edge[1] > edge[0]
        )
        text = escape("".join(block["texts"]))
        code = f'<code class="swbp-text">{text}</code>' if text else ""
        number = f'<span class="swbp-number">{index}</span>{unstyled(": ")}' if lane["measured"] else ""
        parts.append(
            f'<span class="swbp-block" data-current="{str(index == current).lower()}"'
            f' style="{_across(left, right, start, end)}">{phases}{number}{code}</span> '
        )
    total = sum(len(block["texts"]) for block in lane["blocks"])
    return (
        f'<div class="swbp-lane-head"><strong>{escape(lane["name"])}</strong> {counted(total, "token")} in all</div>'
        f'<div class="swbp-track" data-measured="{str(lane["measured"]).lower()}">{"".join(parts)}</div>'
    )


def _across(left: float, right: float, start: float, end: float) -> str:
    """Place and width of a part of the clock within a window, in percent."""
    left, right = (100 * (min(max(value, start), end) - start) / (end - start) for value in (left, right))
    return f"left: {left:.3f}%; width: {right - left:.3f}%"
