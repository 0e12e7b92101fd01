"""Configurations read back beside plain decoding, from where commands write traces. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from specworkbench.analysis.speedup import SAME
from specworkbench.errors import InputError
from specworkbench.experiments.recorded import check_one_run, is_plain, joined, runs_of_report
from specworkbench.trace import Trace, load_trace

__all__ = ["Compared", "read_traces", "traces_of", "read_report"]

ENDING = ".trace"


class Compared(NamedTuple):
    """A configuration in words, and its trace beside the plain one.

    >>> from specworkbench.paths import traces_dir
    >>> plain, trace = (load_trace(traces_dir() / f"{name}.trace") for name in ("quickstart_plain", "quickstart"))
    >>> Compared("draft-m", plain, trace).name
    'draft-m'
    """

    name: str
    plain: Trace
    speculative: Trace


def read_traces(path: Path) -> Trace:
    """The trace of a file, or of all files `*.trace` in a folder, which must be of one configuration, joined.

    Raises `InputError` for a path that is not there, a folder without traces or with those of several configurations,
    and for what `load_trace` refuses.

    >>> from specworkbench.paths import traces_dir
    >>> len(read_traces(traces_dir() / "quickstart.trace").sequences)
    6
    """
    return joined(_files_of(path)) if path.is_dir() else load_trace(path)


def traces_of(source: Trace | str | PathLike | Iterable[Trace | str | PathLike]) -> list[Trace]:
    """The traces of one configuration one by one, with all that they hold.

    source: a trace, a file, a folder of files `*.trace`, or several of these. Raises `InputError` as `read_traces`
    does.

    >>> from specworkbench.paths import traces_dir
    >>> [len(trace.sequences) for trace in traces_of(traces_dir() / "quickstart.trace")]
    [6]
    """
    parts = [source] if isinstance(source, Trace | str | PathLike) else list(source)
    named: list[tuple[str, Trace]] = []
    for number, part in enumerate(parts, start=1):
        if isinstance(part, Trace):
            named.append((f"trace {number}", part))
        else:
            path = Path(part).expanduser()
            files = _files_of(path) if path.is_dir() else [path]
            named += [(str(file), load_trace(file)) for file in files]
    traces = [trace for _, trace in named]
    check_one_run(traces, [name for name, _ in named])
    return traces


def _files_of(folder: Path) -> list[Path]:
    files = sorted(folder.glob(f"*{ENDING}"))
    if not files:
        raise InputError(f"there are no traces in {folder}; name a file, or a folder with files *{ENDING}")
    return files


def read_report(folder: Path) -> list[Compared]:
    """Every configuration of a folder that `specworkbench report --out` wrote, beside the plain decoding of its kind.

    Raises `InputError` where the folder is not there or is none of a report, has no plain traces that a configuration
    could be compared with, and for what `load_trace` refuses.

    >>> from shutil import copy
    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.paths import traces_dir
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("quickstart_plain", "quickstart"):
    ...         (Path(folder) / "traces" / name).mkdir(parents=True)
    ...         _ = copy(traces_dir() / f"{name}.trace", Path(folder) / "traces" / name)
    ...     [found.name for found in read_report(Path(folder))]
    ['draft_model:embedded/draft-m gamma 4 temperature 1']
    """
    if not folder.exists():
        raise InputError(f"there is no folder {folder}; specworkbench report --out {folder} writes one")
    if not folder.is_dir():
        raise InputError(f"{folder} is one file; give two traces, a plain and a speculative one, or a report's folder")
    found = runs_of_report(folder)
    plain = [trace for trace in found if is_plain(trace)]
    speculative = [trace for trace in found if not is_plain(trace)]
    if not speculative:
        raise InputError(f"{folder} holds no traces of a proposer; specworkbench report --out {folder} writes some")
    return [
        Compared(name, _beside(trace, plain, folder), trace)
        for name, trace in zip(_names(speculative), speculative, strict=True)
    ]


def _beside(trace: Trace, plain: list[Trace], folder: Path) -> Trace:
    """The plain trace of the same target, sampling and device."""
    for other in plain:
        if all(other.manifest[key] == trace.manifest[key] for key in SAME):
            return other
    raise InputError(
        f"{folder} holds no plain decoding to compare {_name(trace)} with: same target, sampling and device; "
        "specworkbench report writes one in every run"
    )


def _names(traces: list[Trace]) -> list[str]:
    """Names of configurations; where some would be alike, with those settings of the proposer in which they differ."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for trace in traces:
        alike.setdefault(_name(trace), []).append(trace.manifest["proposer"]["settings"])
    return [_told_apart(_name(trace), trace.manifest["proposer"]["settings"], alike[_name(trace)]) for trace in traces]


def _told_apart(name: str, settings: dict[str, Any], alike: list[dict[str, Any]]) -> str:
    differ = [key for key, value in settings.items() if any(other.get(key) != value for other in alike)]
    return ", ".join([name, *(f"{key}={settings[key]}" for key in differ)])


def _name(trace: Trace) -> str:
    """Such as draft_model:embedded/draft-m gamma 4 temperature 0, as a report calls it."""
    manifest = trace.manifest
    draft = manifest["proposer"].get("draft")
    label = manifest["proposer"]["name"] + (f":{draft['name']}" if draft else "")
    return f"{label} gamma {manifest['gamma']} temperature {manifest['sampling']['temperature']:g}"
