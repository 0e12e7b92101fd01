"""A trace as one file: a zip of JSON, Parquet and safetensors. Nothing is pickled.

    manifest.json             the manifest; numbers that are not finite become null
    rounds.parquet            table `rounds`
    positions.parquet         table `positions`
    distributions.parquet     table `distributions`, unless capture is "none"
    rows.safetensors          float32 `target` and `draft`, when capture is "full"

The members are stored as they are (Parquet compresses its own), so that any zip tool takes them out.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from specworkbench.errors import InputError
from specworkbench.files import whole_file
from specworkbench.trace import contracts, schema
from specworkbench.trace.trace import Trace

MANIFEST = "manifest.json"
ROWS = "rows.safetensors"
ARCHIVE_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error)
UNREADABLE = (*ARCHIVE_ERRORS, pa.ArrowException, SafetensorError, ValueError, KeyError)


def save_trace(trace: Trace, path: str | os.PathLike) -> Path:
    """Write the trace to `path`, whole or not at all, and return the path.

    Folders on the way are made. Raises `InputError` where the file cannot be written.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from specworkbench.paths import traces_dir
    >>> with TemporaryDirectory() as folder:
    ...     path = save_trace(load_trace(traces_dir() / "quickstart.trace"), Path(folder) / "again.trace")
    ...     print(path.name, len(load_trace(path).rounds))
    again.trace 154
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"cannot write a trace to {path}: it is a folder; name a file in it")
    with whole_file(path, "the trace") as file:
        _write(trace, file)
    return path


def trace_bytes(trace: Trace) -> bytes:
    """The file that `save_trace` writes, for whoever sends a trace elsewhere to be saved.

    >>> from specworkbench.paths import traces_dir
    >>> trace_bytes(load_trace(traces_dir() / "quickstart.trace"))[:2]
    b'PK'
    """
    file = io.BytesIO()
    _write(trace, file)
    return file.getvalue()


def load_trace(path: str | os.PathLike, *, check: bool = True) -> Trace:
    """Read a trace and, unless `check` is false, hold it to the cheap contracts.

    Raises `InputError` with a sentence for a file that is missing, truncated, foreign, of a newer schema, without
    columns it must have, or whose trace breaks a contract.

    >>> from specworkbench.paths import traces_dir
    >>> load_trace(traces_dir() / "quickstart.trace").manifest["rule"]["name"]
    'token'
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; a trace is one file, as save_trace writes it")
    if not path.exists():
        raise InputError(f"there is no trace at {path}; check the name, or record one with decode --trace {path}")
    try:
        archive = zipfile.ZipFile(path)
    except ARCHIVE_ERRORS as error:
        raise InputError(f"{path} is no trace file, or was cut short: {error}") from error
    with archive:
        trace = _read(archive, path)
    if check:
        _hold_to_contracts(trace, path)
    return trace


def _write(trace: Trace, file: BinaryIO) -> None:
    manifest = json.dumps(_plain(trace.manifest), allow_nan=False, indent=1)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, MANIFEST, manifest.encode("ascii"))
        _add(archive, "rounds.parquet", _parquet("rounds", trace.rounds))
        _add(archive, "positions.parquet", _parquet("positions", trace.positions))
        if trace.distributions is not None:
            _add(archive, "distributions.parquet", _parquet("distributions", trace.distributions))
        if trace.rows is not None:
            rows = {name: np.ascontiguousarray(row, dtype=np.float32) for name, row in trace.rows.items()}
            _add(archive, ROWS, safetensors.save(rows))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """One member with a fixed date, so that equal traces are equal files."""
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o644 << 16
    archive.writestr(member, content)


def _parquet(table: str, frame: pd.DataFrame) -> bytes:
    frame = schema.conform(table, frame).reset_index(drop=True)
    arrow = pa.Table.from_pandas(frame, schema=_arrow_schema(table), preserve_index=False)
    sink = io.BytesIO()
    pq.write_table(arrow, sink, compression="zstd")
    return sink.getvalue()


def _arrow_schema(table: str) -> pa.Schema:
    """Explicit types, so that a column without any value keeps its own."""
    lists = {"tokens": pa.list_(pa.int32()), "p": pa.list_(pa.float64()), "q": pa.list_(pa.float64())}
    simple = {"str": pa.string(), "bool": pa.bool_(), "boolean": pa.bool_()}

    def arrow(column: schema.Column) -> pa.DataType:
        if column.dtype == "object":
            return lists[column.name]
        return simple.get(column.dtype) or pa.type_for_alias(column.dtype.lower())

    return pa.schema([(column.name, arrow(column)) for column in schema.TABLES[table]])


def _plain(value: Any) -> Any:
    """The value with JSON's own types only; a number that is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _read(archive: zipfile.ZipFile, path: Path) -> Trace:
    members = set(archive.namelist())
    if MANIFEST not in members:
        raise InputError(f"{path} is a zip file but no trace: it has no {MANIFEST}")
    manifest = _read_manifest(archive, path)
    tables = {}
    for table in schema.TABLES:
        member = f"{table}.parquet"
        if member in members:
            tables[table] = _read_table(archive, path, table, tables.get("rounds"))
        elif table != "distributions":
            raise InputError(f"{path} is no whole trace: it has no {member}")
    rows = None
    if ROWS in members:
        try:
            rows = safetensors.load(archive.read(ROWS))
        except UNREADABLE as error:
            raise InputError(f"{path}: {ROWS} cannot be read, the file is damaged ({error})") from error
    return Trace(manifest, tables["rounds"], tables["positions"], tables.get("distributions"), rows)


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        version = manifest["schema_version"]
    except (*UNREADABLE, TypeError) as error:
        raise InputError(f"{path} is no trace file: its {MANIFEST} cannot be read ({error})") from error
    if not isinstance(version, int):
        raise InputError(f"{path} is no trace file: its schema_version is {version!r}, not a number")
    if version > schema.SCHEMA_VERSION:
        raise InputError(
            f"{path} was written by a newer specworkbench (trace schema {version}; this one reads up to "
            f"{schema.SCHEMA_VERSION}); upgrade with pip install --upgrade specworkbench"
        )
    return manifest


def _read_table(archive: zipfile.ZipFile, path: Path, table: str, rounds: pd.DataFrame | None) -> pd.DataFrame:
    try:
        frame = pq.read_table(io.BytesIO(archive.read(f"{table}.parquet"))).to_pandas()
    except UNREADABLE as error:
        raise InputError(f"{path}: {table}.parquet cannot be read, the file is damaged ({error})") from error
    try:
        if table == "distributions":
            frame = schema.with_nodes(frame, rounds)
        return schema.conform(table, frame)
    except KeyError as error:
        raise InputError(f"{path}: {error.args[0]}; it was not written by save_trace") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: table {table!r} holds values of another kind than its schema ({error})") from error


def _hold_to_contracts(trace: Trace, path: Path) -> None:
    for contract, finding in contracts.run(trace, cheap_only=True):
        if finding.status == "fail":
            raise InputError(
                f"{path} breaks the contract {contract.name!r} ({contract.meaning}){finding.where}: {finding.detail}; "
                "load_trace(path, check=False) loads it all the same"
            )
