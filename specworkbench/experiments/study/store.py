"""The folder of a study: what was wanted, and one folder a finished cell. No torch.

    study.json                  the study, its prompts' digests, which cells cannot be, when it was begun
    cells/ID/plain.trace        of all prompts of the cell, and
    cells/ID/speculative.trace
    cells/ID/row.json           its axes, figures and environment; written last: a cell with a row is a finished one
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import specworkbench
from specworkbench.errors import InputError
from specworkbench.experiments.files import to_json, write_whole
from specworkbench.experiments.study.grid import AXES, Study, shown
from specworkbench.files import whole_file

VERSION = 1
STUDY, CELLS, ROW, LOCK = "study.json", "cells", "row.json", ".lock"
SETTLED = ("finished", "failed")


class Store:
    """A study's folder. Raises `InputError` where something else lies there, or it cannot be written."""

    def __init__(self, folder: Path):
        self.folder = folder

    def check(self, study: Study, prompts: Mapping[str, str]) -> None:
        """Raises `InputError`, naming the difference, where another study is kept here, or something else.

        prompts: digest by source. A study may be continued with more values of its axes; its settings, its prompts and
        the values that were there stay.
        """
        if (self.folder / STUDY).exists():
            self._check_same(study, prompts, self.description())
        elif self.folder.is_dir() and any(path.name != LOCK for path in self.folder.iterdir()):
            raise InputError(f"{self.folder} is not empty and holds no study; name a new folder with --out")

    def begin(self, study: Study, prompts: Mapping[str, str], left_out: list[dict[str, str]]) -> None:
        """Write down what is wanted, and which cells cannot be ({name, why}), after a `check`."""
        before = self.description() if (self.folder / STUDY).exists() else {}
        description = {
            "version": VERSION,
            "specworkbench": specworkbench.__version__,
            "created": before.get("created") or datetime.now(UTC).isoformat(timespec="seconds"),
            "study": asdict(study),
            "prompts": before.get("prompts", {}) | dict(prompts),
            "left_out": left_out,
        }
        write_whole(self.folder / STUDY, to_json(description, indent=1) + "\n", "the study")

    def description(self) -> dict[str, Any]:
        """study.json. Raises `InputError` where there is none, or it was written by something else."""
        path = self.folder / STUDY
        if not path.exists():
            raise InputError(f"there is no study in {self.folder}; specworkbench study run FILE --out DIR makes one")
        found = _json(path)
        if not isinstance(found, dict) or not isinstance(found.get("version"), int) or "study" not in found:
            raise InputError(f"{path} was not written by a study, or is damaged; name another folder")
        if found["version"] > VERSION:
            raise InputError(
                f"{path} was written by a newer specworkbench (version {found['version']} of the folder; this one "
                f"reads up to {VERSION}); upgrade with pip install --upgrade specworkbench"
            )
        return found

    def study(self) -> Study:
        """The study that is kept here."""
        return Study.of(self.description()["study"])

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of all settled cells, finished or failed, by id; a row that is not whole is none."""
        found = {}
        for path in sorted(self.folder.glob(f"{CELLS}/*/{ROW}")):
            row = _json(path)
            if isinstance(row, dict) and row.get("id") == path.parent.name and row.get("status") in SETTLED:
                found[row["id"]] = row
        return found

    def trace_path(self, id: str, side: str = "speculative") -> Path:
        """Where a cell's trace lies, where its study keeps traces. side: plain or speculative."""
        return self.folder / CELLS / id / f"{side}.trace"

    def write(self, row: Mapping[str, Any], traces: Mapping[str, bytes]) -> None:
        """Keep a cell: its traces first, its row last, each whole or not at all."""
        folder = self.folder / CELLS / row["id"]
        for name, content in traces.items():
            with whole_file(folder / name, "the trace") as file:
                file.write(content)
        write_whole(folder / ROW, to_json(row, indent=1) + "\n", "a cell")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While it lasts no other process runs a study in this folder; what a killed one had half written is removed.
        A folder in which nothing was begun is not left behind.

        Raises `InputError` where one does.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / LOCK, "w")  # noqa: SIM115 - held until the end
        except OSError as error:
            raise InputError(f"cannot write a study to {self.folder}: {error.strerror}") from error
        with lock:
            _hold(lock.fileno(), self.folder)
            for half in self.folder.glob(f"{CELLS}/*/.*.tmp"):
                half.unlink(missing_ok=True)
            try:
                yield
            finally:
                self._leave_nothing_empty()

    def _leave_nothing_empty(self) -> None:
        if not (self.folder / STUDY).exists():
            (self.folder / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def _check_same(self, study: Study, prompts: Mapping[str, str], before: dict[str, Any]) -> None:
        there, remedy = Study.of(before["study"]), "put it back, or name another folder with --out"
        for name, value in there.settings().items():
            if study.settings()[name] != value:
                raise InputError(
                    f"{self.folder} holds a study with {name} = {value!r}, and this one has "
                    f"{study.settings()[name]!r}; {remedy}"
                )
        for name in AXES:
            gone = [value for value in getattr(there, name) if value not in getattr(study, name)]
            if gone:
                raise InputError(
                    f"{self.folder} holds a study whose {name} is also {', '.join(map(shown, gone))}; {remedy} (values "
                    "may be added to a study, not taken away)"
                )
        for source, digest in before.get("prompts", {}).items():
            if prompts.get(source, digest) != digest:
                raise InputError(f"{self.folder} holds a study of other prompts in {source}; {remedy}")


def _hold(descriptor: int, folder: Path) -> None:
    """Lock the file; on a file system without locks, go on without."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(f"another process is running a study in {folder}; wait for it, or stop it") from error
    except OSError:
        return


def _json(path: Path) -> Any:
    """What the file holds; None where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
