"""A study from its file: TOML, or Python that defines `study`."""

from __future__ import annotations

import os
import runpy
import tomllib
import traceback
from dataclasses import replace
from pathlib import Path

from specworkbench.errors import InputError
from specworkbench.experiments.plan import PLAIN, ProposerSpec
from specworkbench.experiments.study.grid import DEFAULT, Study


def load_study(path: str | os.PathLike) -> Study:
    """The study that a file describes: a TOML file of its keys, or a Python file with `study = Study(...)`.

    Proposers are written as in a report. Raises `InputError`, naming the file, for one that cannot be read or run, an
    unknown key, a value of another type or out of range, an unknown proposer, rule or setting.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.toml"
    ...     _ = path.write_text('proposer = ["ngram", "suffix,min_prob=0"]')
    ...     load_study(path).proposer
    ('ngram', 'suffix,min_prob=0')
    """
    path = Path(path).expanduser()
    if path.suffix not in (".toml", ".py"):
        raise InputError(f"{path} is no file of a study; it ends in .toml or .py (specworkbench study example)")
    try:
        return checked(_from_toml(path) if path.suffix == ".toml" else _from_python(path))
    except FileNotFoundError as error:
        raise InputError(f"there is no study file {path}; specworkbench study example prints one") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8; save it as UTF-8") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def checked(study: Study) -> Study:
    """The study with its proposers as reports write them. Raises `InputError` for a value that no cell can have."""
    from specworkbench.engine.sampling import SamplingSettings
    from specworkbench.engine.verifiers import make_verifier

    specs = [ProposerSpec.parse(text) for text in study.proposer]
    if any(spec.name == PLAIN for spec in specs):
        raise InputError(f"proposer is {PLAIN!r}; plain decoding is the baseline of every cell, leave it out")
    greedy = SamplingSettings(temperature=0.0)
    for rule in study.rule:
        make_verifier(None if rule == DEFAULT else rule, greedy)
    for axis in ("temperature", "top_p"):
        for value in getattr(study, axis):
            SamplingSettings(**{axis: value})
    return replace(study, proposer=tuple(spec.label for spec in specs))


def _from_toml(path: Path) -> Study:
    try:
        return Study.of(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"this is no TOML: {error}") from error


def _from_python(path: Path) -> Study:
    path.stat()
    try:
        found = runpy.run_path(str(path)).get("study")
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = f" (line {where[-1]})" if where else ""
        raise InputError(f"it fails when run: {type(error).__name__}: {error}{line}") from error
    if not isinstance(found, Study):
        said = "does not define study" if found is None else f"has study = {found!r:.60}"
        raise InputError(
            f"it {said}; it must hold study = Study(...), with from specworkbench.experiments.study import Study"
        )
    return found
