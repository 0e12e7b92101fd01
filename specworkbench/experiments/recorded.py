"""Traces on disk, joined again by what decoded them. No torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from specworkbench.errors import InputError
from specworkbench.experiments.plan import PLAIN, written
from specworkbench.experiments.rows import join
from specworkbench.trace import Trace, load_trace

__all__ = ["joined", "check_one_run", "runs_of_report", "is_plain", "label_of", "with_plain"]

ONE_RUN = ("proposer", "rule", "gamma", "controller", "sampling", "draft_sampling")
"""What of the manifests must agree (some traces lack some of it), beside the target's name, for parts of one run."""


def joined(paths: Iterable[str | Path]) -> Trace:
    """One trace of all their sequences, in this order; of several, distributions are left out.

    Raises `InputError` for a file that is no trace, and for traces of different targets or settings.

    >>> from specworkbench.paths import traces_dir
    >>> len(joined([traces_dir() / "quickstart.trace"] * 2).sequences)
    12
    """
    files = list(paths)
    traces = [load_trace(path) for path in files]
    check_one_run(traces, files)
    return traces[0] if len(traces) == 1 else join(traces)


def check_one_run(traces: Sequence[Trace], names: Sequence[str | Path]) -> None:
    """Raises `InputError` for traces of different targets or settings; names: what the sentence calls each.

    >>> from specworkbench.paths import traces_dir
    >>> names = [traces_dir() / "quickstart.trace"] * 2
    >>> check_one_run([load_trace(name) for name in names], names)
    """
    for name, trace in zip(names, traces, strict=True):
        differing = [key for key in ONE_RUN if trace.manifest.get(key) != traces[0].manifest.get(key)]
        if trace.manifest["target"]["name"] != traces[0].manifest["target"]["name"]:
            differing.insert(0, "target")
        if differing:
            raise InputError(
                f"{name} is no part of the run of {names[0]}: {', '.join(differing)} differ; give the traces of one "
                "target with one proposer and the same settings"
            )


def runs_of_report(folder: Path) -> list[Trace]:
    """The runs of a report's folder, each joined to one trace, in the order of the report.

    Taken are the traces that report.json names, else all there are. Raises `InputError` where there are none, or one
    cannot be read.

    >>> from shutil import copy
    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.paths import traces_dir
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("quickstart_plain", "quickstart"):
    ...         (Path(folder) / "traces" / name).mkdir(parents=True)
    ...         _ = copy(traces_dir() / f"{name}.trace", Path(folder) / "traces" / name)
    ...     [is_plain(trace) for trace in runs_of_report(Path(folder))]
    [False, True]
    """
    files = _files(folder)
    if not files:
        raise InputError(f"there are no traces of a report in {folder}; name the folder given to report --out")
    parts: dict[Path, list[Path]] = {}
    for file in files:
        parts.setdefault(file.parent, []).append(file)
    return [joined(sorted(parts[part])) for part in sorted(parts)]


def _files(folder: Path) -> list[Path]:
    report = folder / "report.json"
    if not report.is_file():
        return list((folder / "traces").glob("*/*.trace"))
    try:
        return [folder / name for name in json.loads(report.read_text(encoding="utf-8"))["environment"]["traces"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{report} is no report ({error}); name the folder given to report --out") from error


def is_plain(trace: Trace) -> bool:
    """Whether nothing was proposed, by the settings.

    >>> from specworkbench.paths import traces_dir
    >>> is_plain(load_trace(traces_dir() / "quickstart_plain.trace"))
    True
    """
    return trace.manifest["proposer"]["name"] == PLAIN


def label_of(trace: Trace) -> str:
    """What decoded it, in a line: target, proposer with weights and settings, gamma, temperature.

    >>> from specworkbench.paths import traces_dir
    >>> label_of(load_trace(traces_dir() / "quickstart.trace"))
    'embedded draft_model:embedded/draft-m gamma 4 temperature 1'
    """
    manifest = trace.manifest
    speculation = "" if is_plain(trace) else f" gamma {manifest['gamma']}"
    temperature = manifest["sampling"]["temperature"]
    return f"{manifest['target']['name']} {_proposer(manifest['proposer'])}{speculation} temperature {temperature:g}"


def with_plain(runs: list[Trace]) -> list[tuple[Trace, Trace]]:
    """(plain run of the same sampling, speculative run) of every speculative run that has one.

    >>> from specworkbench.paths import traces_dir
    >>> runs = [load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart")]
    >>> [(is_plain(plain), is_plain(speculative)) for plain, speculative in with_plain(runs)]
    [(True, False)]
    """
    plain = [run for run in runs if is_plain(run)]
    return [
        (other, run)
        for run in runs
        if not is_plain(run)
        for other in plain
        if other.manifest["sampling"] == run.manifest["sampling"]
    ]


def _proposer(described: dict[str, Any]) -> str:
    draft = (described.get("draft") or {}).get("name")
    settings = [f"{name}={written(value)}" for name, value in described["settings"].items()]
    return ",".join([described["name"] if draft is None else f"{described['name']}:{draft}", *settings])
