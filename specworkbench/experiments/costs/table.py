"""`CostTable`: measured costs, saved as JSON and read back, in the form that the formulas of `theory` take. No torch.

    costs = read_costs("costs.json")
    gamma = costs.gamma("draft_model")
    c, o = costs.c("draft_model"), costs.o("draft_model")
    theory.speedup(0.8, gamma, c, verify_cost=costs.v(gamma + 1), overhead=o)

All are in units of one plain step of the target, its row and rule included, so that they are those of `analysis`:
`draft_cost`, `verify_cost`, `loop_overhead` (to which o adds what no phase of a round's clock covers). The formula
takes plain decoding to be steps alone; plain rounds pay the loop too, costs.o("none") of a step, so that what one
measures is (1 + costs.o("none")) times the formula's speedup.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from specworkbench.errors import InputError
from specworkbench.experiments.files import to_json, write_whole

__all__ = ["CostTable", "read_costs"]

VERSION = 1
KIND = "specworkbench costs"
Row = dict[str, Any]
ROW_KEYS = {
    "forwards": {"context", "rows", "runs", "ms", "verify_cost"},
    "steps": {"context", "rows", "ms", "verify_cost", "ms_rollback", "ms_loop"},
    "proposers": {"proposer", "context", "gamma", "proposed", "c", "overhead", "ms_prefill", "ms_draft_prefill"},
}
"""What a row of each list has at least."""


@dataclass(frozen=True)
class CostTable:
    """What `Costs` measured, JSON-ready.

    target: as in a trace's manifest; forwards: bare forwards by context and rows (`Forwards.rows`); limit: the
    machine's rates, or None; steps: the target's part of real rounds by context and rows (`Rounds.step_rows`);
    proposers: by label and context (`Rounds.run_rows`), plain decoding first; both empty where only forwards were
    timed; memory: {target, proposers: {label: ...}}: weight_bytes and copy_bytes; caches: the target's, by context;
    environment; runs: how often each thing was to be timed; interrupted: whether it was less.

    >>> forwards = [{"context": 64, "rows": rows, "ms": ms} for rows, ms in ((1, 2.0), (5, 3.0))]
    >>> table = CostTable({"name": "mine"}, forwards, None, [], [], memory={}, environment={}, runs=25)
    >>> table.step_ms(rows=3), table.v(rows=5)
    (2.5, 1.5)
    """

    target: Row
    forwards: list[Row]
    limit: Row | None
    steps: list[Row]
    proposers: list[Row]
    memory: Row
    environment: Row
    runs: int
    interrupted: bool = False

    @property
    def contexts(self) -> list[int]:
        """Tokens in the cache, rising, at which anything was timed."""
        return sorted({row["context"] for row in self.forwards})

    @property
    def labels(self) -> list[str]:
        """The proposers, as they were asked for; plain decoding is "none"."""
        return list(dict.fromkeys(row["proposer"] for row in self.proposers))

    def step_ms(self, rows: ArrayLike = 1, context: int | None = None) -> float | np.ndarray:
        """T_target(rows) in ms: of real rounds where those were timed, else of bare forwards.

        Linear between measured numbers of rows and between measured contexts; context: by default the shortest.
        Raises `InputError` outside what was measured.
        """
        table = self.steps or self.forwards
        wanted = np.asarray(rows, dtype=np.float64)
        by_context = []
        for at in self.contexts:
            known = {row["rows"]: row["ms"] for row in table if row["context"] == at}
            self._inside("rows", wanted, sorted(known))
            by_context.append(np.interp(wanted, sorted(known), [known[n] for n in sorted(known)]))
        value = self._at(context, self.contexts, by_context)
        return float(value) if value.ndim == 0 else value

    def v(self, rows: ArrayLike, context: int | None = None) -> float | np.ndarray:
        """v(rows) = T_target(rows) / T_target(1); a verification of gamma guesses has gamma + 1 rows. See `step_ms`."""
        value = np.asarray(self.step_ms(rows, context)) / self.step_ms(1, context)
        return float(value) if value.ndim == 0 else value

    def c(self, proposer: str, context: int | None = None) -> float:
        """The proposer's time per token proposed, in target steps; linear between measured contexts.

        proposer: its label, or its name where only one of that name was timed. Raises `InputError` for an unknown
        proposer, one that proposed nothing there, and a context outside what was measured.
        """
        return self._of(proposer, "c", context)

    def o(self, proposer: str, context: int | None = None) -> float:
        """What a round takes beside proposer, target and rule, in target steps; of "none": a plain round. See `c`."""
        return self._of(proposer, "overhead", context)

    def prefill_ms(self, context: int | None = None, proposer: str | None = None) -> float:
        """ms of the target's prefill of so many tokens, or of a proposer's. See `c`."""
        return self._of(proposer or "none", "ms_draft_prefill" if proposer else "ms_prefill", context)

    def gamma(self, proposer: str) -> int:
        """Tokens it was asked for in a round."""
        return self._rows_of(proposer)[0]["gamma"]

    def save(self, path: str | os.PathLike) -> Path:
        """Write it as JSON, whole or not at all; the path. Raises `InputError` where it cannot be written."""
        return write_whole(Path(path), self.as_json(indent=1) + "\n", "the costs")

    def as_json(self, indent: int | None = None) -> str:
        """One JSON object, as saved."""
        return to_json({"kind": KIND, "version": VERSION, **asdict(self)}, indent=indent)

    def _of(self, proposer: str, name: str, context: int | None) -> float:
        rows = self._rows_of(proposer)
        known = [row for row in rows if row[name] is not None]
        if not known:
            raise InputError(f"{rows[0]['proposer']} has no {name}: it proposed nothing; time it at another context")
        return float(self._at(context, [row["context"] for row in known], [row[name] for row in known]))

    def _rows_of(self, proposer: str) -> list[Row]:
        """Its rows, by context."""
        named = [label for label in self.labels if label == proposer]
        named = named or [label for label in self.labels if label.replace(",", ":").split(":")[0] == proposer]
        if len(named) != 1:
            known = ", ".join(self.labels) or "none; time them with specworkbench costs --proposer"
            which = "several proposers of the name" if named else "no proposer"
            raise InputError(f"the costs hold {which} {proposer!r}; they hold {known}")
        return sorted((row for row in self.proposers if row["proposer"] == named[0]), key=lambda row: row["context"])

    def _at(self, context: int | None, contexts: list[int], values: list[Any]) -> np.ndarray:
        """Values at a context between those measured."""
        at = contexts[0] if context is None else context
        self._inside("context", np.asarray(at), contexts)
        stacked = np.stack([np.asarray(value, dtype=np.float64) for value in values])
        after = min(int(np.searchsorted(contexts, at)), len(contexts) - 1)
        before = max(after - 1, 0) if contexts[after] != at else after
        share = 0.0 if before == after else (at - contexts[before]) / (contexts[after] - contexts[before])
        return (1 - share) * stacked[before] + share * stacked[after]

    @staticmethod
    def _inside(name: str, wanted: np.ndarray, measured: list[int]) -> None:
        if not measured or wanted.min() < measured[0] or wanted.max() > measured[-1]:
            bad = wanted.max() if measured and wanted.max() > measured[-1] else wanted.min()
            limits = f"{measured[0]} to {measured[-1]}" if measured else "nothing"
            raise InputError(f"{name} is {bad:g}, and measured is {limits}; time it with specworkbench costs --{name}")


def read_costs(path: str | os.PathLike) -> CostTable:
    """A saved table. Raises `InputError`, for a file that is missing, foreign or of another version.

    >>> from tempfile import TemporaryDirectory
    >>> forward = {"context": 64, "rows": 1, "runs": 25, "ms": 2.0, "verify_cost": 1.0}
    >>> table = CostTable({"name": "mine"}, [forward], None, [], [], memory={}, environment={}, runs=25)
    >>> with TemporaryDirectory() as folder:
    ...     read_costs(table.save(Path(folder) / "costs.json")) == table
    True
    """
    path = Path(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the costs in {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} holds no costs: it is no JSON; give a file written by costs --out") from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise InputError(f"{path} holds no costs; give a file written by specworkbench costs --out")
    if found.get("version") != VERSION:
        raise InputError(
            f"the costs in {path} are of version {found.get('version')!r}, this program reads {VERSION}; measure anew"
        )
    missing = [field.name for field in fields(CostTable) if field.name not in found]
    if missing:
        raise InputError(f"the costs in {path} have no {', '.join(missing)}; the file is damaged, measure anew")
    table = CostTable(**{field.name: found[field.name] for field in fields(CostTable)})
    for name, keys in ROW_KEYS.items():
        rows = getattr(table, name)
        if not isinstance(rows, list) or not all(isinstance(row, dict) and keys <= row.keys() for row in rows):
            raise InputError(f"the costs in {path} have {name} that lack figures; the file is damaged, measure anew")
    if not table.forwards:
        raise InputError(f"the costs in {path} hold no forward; measure anew")
    return table
