"""From rounds to a trace: every scalar is computed from the full rows, on the device, before rows are dropped.

To record a round is to keep it. Rounds wait with their rows until there are enough of them to be measured together;
where it is compiled to measure one, it is measured at once. The numbers wait on the device until those of many rounds
are fetched together; tables are made when they are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Any

import numpy as np
import torch

from specworkbench.engine.compiled.rounds import CompiledRound
from specworkbench.engine.measuring import MEASURED, TOP, WAITING_BYTES, measure, top_entries
from specworkbench.engine.round import Round
from specworkbench.engine.tables import Noted, tables
from specworkbench.errors import InputError
from specworkbench.trace import Trace, TraceBuilder
from specworkbench.trace.schema import CAPTURES

PENDING_ROUNDS = 128
"""Rounds whose measurements may wait on the device before they are fetched together."""
MEASURED_TABLE = "measured"


@dataclass(frozen=True)
class Batch:
    """Rounds that were measured together.

    numbers: on the device, by name: `MEASURED_TABLE`, what `measure` gave of their rows; the parts of `TOP`, if
    captured; what `_uniforms` gives. rows: of capture 'full', float32 on the host.
    """

    noted: list[Noted]
    numbers: dict[str, torch.Tensor]
    rows: dict[str, np.ndarray]

    @classmethod
    def of(
        cls, noted: list[Noted], steps: list[Round], measured: Sequence[torch.Tensor], rows: torch.Tensor | None
    ) -> Batch:
        """measured: the table and the parts of `TOP`; rows: (2, stack, vocab) p and q, to be kept whole, or None."""
        copied = () if rows is None else rows.to("cpu", torch.float32, copy=True).numpy()
        numbers = dict(zip((MEASURED_TABLE, *TOP), measured, strict=False)) | _uniforms(steps)
        return cls(noted, numbers, dict(zip(("rows_p", "rows_q"), copied, strict=False)))

    def shapes(self) -> dict[str, torch.Size]:
        """Of the numbers."""
        return {name: part.shape for name, part in self.numbers.items()}


class TraceRecorder:
    """Receives rounds, gives a trace. capture: none (scalars only), top-k or full rows; see `trace.schema`.

    compiled: what measures rounds one by one, where it has a compiled form for them.

    >>> from specworkbench.engine import Decoder, DecodeSettings, decode_rounds, load_model, make_proposer
    >>> decoder = Decoder(load_model("embedded"), make_proposer("ngram"), settings=DecodeSettings(max_new_tokens=8))
    >>> recorder = TraceRecorder(capture="top-k", top_k=4)
    >>> for one in decode_rounds(decoder.start("a b a b")):
    ...     recorder.record(one)
    """

    def __init__(self, capture: str = "none", top_k: int = 32, compiled: CompiledRound | None = None):
        if capture not in CAPTURES:
            raise InputError(f"capture is {capture!r}; choose one of {', '.join(CAPTURES)}")
        if top_k < 1:
            raise InputError(f"the number of captured tokens is {top_k}; it must be at least 1")
        self.capture, self.top_k = capture, top_k
        self._waiting: list[Round] = []
        self._held = 0  # bytes of their rows
        self._measured: list[Batch] = []
        self._fetched: list[tuple[list[Noted], dict[str, np.ndarray]]] = []
        self._room, self._compiled = torch.empty(0), compiled

    def record(self, step: Round) -> None:
        """Keep a round. Until it is measured with later ones its tensors must not be written to.

        An interrupt leaves it out, or in, as a whole: it is kept last.
        """
        at_once = None if self._compiled is None else self._measured_at_once(step, self._compiled)
        certain = step.proposal.probs is None and self.capture == "none"
        size = step.target_probs.nbytes * (1 if certain else 2)  # with rows of q
        if at_once or self._held + size > WAITING_BYTES:
            self._measure()
            if sum(len(batch.noted) for batch in self._measured) >= PENDING_ROUNDS:
                self._fetch()
        if at_once:
            self._measured = [*self._measured, at_once]
        else:
            self._held += size
            self._waiting.append(step)

    def flush(self) -> None:
        """Measure the rounds that wait, and fetch what waits on the device."""
        self._measure()
        self._fetch()

    def trace(self, manifest: dict[str, Any]) -> Trace:
        """The trace of all rounds so far."""
        self.flush()
        builder, rows = TraceBuilder(), None
        if self._fetched:
            noted, numbers = zip(*self._fetched, strict=True)
            *columns, rows = tables([*chain(*noted)], _joined(numbers))
            builder.add_rounds(*columns)
        return builder.build(manifest, rows)

    @torch.inference_mode()
    def _measure(self) -> None:
        """Both lists change at once: an interrupt leaves every round in just one of them."""
        if self._waiting:
            batch = self._measured_together(self._waiting)
            self._measured, self._waiting, self._held = [*self._measured, batch], [], 0

    def _fetch(self) -> None:
        if self._measured:
            parts = [part.flatten() for batch in self._measured for part in batch.numbers.values()]
            flat = torch.cat(parts).cpu().numpy()
            noted = [note for batch in self._measured for note in batch.noted]
            self._fetched, self._measured = [*self._fetched, (noted, _unfolded(self._measured, flat))], []

    @torch.inference_mode()
    def _measured_at_once(self, step: Round, compiled: CompiledRound) -> Batch | None:
        """The round measured alone; None where it has to wait for others."""
        p, proposal = step.target_probs, step.proposal
        measured = compiled.measured(proposal, p, step.verdict)
        if measured is None:
            return None
        rows = torch.stack([p, torch.cat([proposal.draft_probs(p), p[-1:]])]) if self.capture == "full" else None
        return Batch.of([Noted.of(step, True)], [step], measured, rows)

    def _measured_together(self, steps: list[Round]) -> Batch:
        captures = self.capture != "none"
        certain = not captures and all(step.proposal.probs is None for step in steps)
        noted = [Noted.of(step, captures) for step in steps]
        rows, room = self._stacked(steps, noted, certain)
        tokens, also = _tokens(noted, rows.device)
        measured = measure(rows, tokens, also, room)
        top = top_entries(rows, self.top_k, tokens, also) if self.capture == "top-k" else ()
        return Batch.of(noted, steps, (measured, *top), rows if self.capture == "full" else None)

    def _stacked(self, steps: list[Round], noted: list[Noted], certain: bool) -> torch.Tensor:
        """(2, 1 or 2, stack, vocab): the rows of these rounds as `measure` wants them, and as much room again."""
        of_p, of_q = [], []
        for step, note in zip(steps, noted, strict=True):
            p, proposal, n = step.target_probs, step.proposal, step.proposal.size
            after = step.decision.last + 1 if proposal.is_tree else n
            last = p[after : after + note.rows - n]
            of_p += [p.index_select(0, proposal.parents + 1) if proposal.is_tree else p[:n], last]
            if not certain:
                of_q += [proposal.draft_probs(p), last]
        kinds = [of_p] if certain else [of_p, of_q]
        shape = (2, len(kinds), sum(note.rows for note in noted), p.shape[-1])
        if self._room.numel() < math.prod(shape):
            self._room = p.new_empty(math.prod(shape) * 5 // 4)  # the next batch may be larger by a round
        room = self._room[: math.prod(shape)].view(shape)
        for parts, rows in zip(kinds, room[0], strict=True):
            torch.cat(parts, out=rows)
        return room


def _unfolded(batches: list[Batch], flat: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers of all batches, arrived on the host one batch's after another's, and their rows, by name."""
    found, start = [], 0
    for shapes, group in groupby(batches, key=Batch.shapes):
        alike = list(group)
        ends = [*accumulate(shape.numel() for shape in shapes.values())]
        numbers = flat[start : start + len(alike) * ends[-1]].reshape(len(alike), -1)
        start += numbers.size
        columns = {
            name: part.reshape(len(alike), *shape)
            for (name, shape), part in zip(shapes.items(), np.split(numbers, ends[:-1], axis=1), strict=True)
        }
        table = columns.pop(MEASURED_TABLE).swapaxes(0, 1).reshape(len(MEASURED), -1)
        columns = {name: part.reshape(-1, *part.shape[2:]) for name, part in columns.items()}
        found.append(columns | dict(zip(MEASURED, table, strict=True)) | _joined([batch.rows for batch in alike]))
    return _joined(found)


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _tokens(noted: list[Noted], device: torch.device) -> torch.Tensor:
    """(2, stack): a token of each row, the guess or what was drawn after the last one; and the same, but where a round
    drew its token (of a corrected one, at the first guess refused there) that token."""
    tokens, also = [], []
    for note in noted:
        decision, displaced = note.decision, note.decision.displaced
        at = len(tokens) + (len(decision.proposed) if displaced is None else displaced)
        tokens += (of_round := [*decision.proposed, decision.next_token][: note.rows])
        also += of_round
        also[at] = decision.next_token
    return torch.tensor([tokens, also], device=device)


def _uniforms(steps: list[Round]) -> dict[str, torch.Tensor]:
    """What was compared and drawn with: of the nodes accept_prob, u and, where they were sampled, u_guess; u_drawn, one
    more than nodes for each round.
    """
    sampled = [step for step in steps if step.proposal.probs is not None]
    guesses = [step.uniforms.draft[: step.proposal.size] for step in sampled] or [steps[0].uniforms.draft[:0]]
    return {
        "accept_prob": _cat([step.verdict.accept_probs for step in steps]),
        "u": _cat([step.uniforms.accept for step in steps]),
        "u_guess": _cat(guesses),
        "u_drawn": _cat([step.uniforms.drawn for step in steps]),
    }


def _cat(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
