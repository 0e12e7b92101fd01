"""`specworkbench lab`: JupyterLab on the index of the notebooks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from specworkbench.cli.screen import say
from specworkbench.errors import InputError
from specworkbench.paths import PACKAGE

FIRST = "index.ipynb"
COPY = Path("specworkbench-notebooks")
"""Where the notebooks of an installed wheel are copied to, below the current folder."""


def lab(context: typer.Context) -> None:
    """Open JupyterLab on the index of the notebooks. Further arguments go to JupyterLab, such as --port 8890.

    A wheel's notebooks are copied to ./specworkbench-notebooks first; a file that is there already is left alone.
    """
    if find_spec("jupyterlab") is None:
        raise InputError("JupyterLab is not installed: pip install 'specworkbench[lab]'")
    launch([sys.executable, "-m", "jupyterlab", str(first_notebook()), *context.args])


def first_notebook() -> Path:
    """The checkout's own notebook, or a copy of the wheel's. Raises `InputError` where there is neither."""
    installed, checkout = PACKAGE / "_data" / "notebooks", PACKAGE.parent / "notebooks"
    folder = copied(installed, COPY.absolute()) if installed.is_dir() else checkout
    notebook = folder / FIRST
    if not notebook.exists():
        raise InputError(f"there is no notebook {notebook}; install the wheel again, or use a complete checkout")
    return notebook


def copied(source: Path, destination: Path) -> Path:
    """The files of `source` that `destination` lacks, copied there; whoever has worked in one keeps it."""
    try:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            copy = destination / file.relative_to(source)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    except OSError as error:
        raise InputError(
            f"cannot copy the notebooks to {destination}: {error.strerror}; go to a folder that you may write to"
        ) from error
    say(f"the notebooks are in {destination}")
    return destination


def launch(command: list[str]) -> None:
    """Become that program, so that signals and the exit code are its own; where that cannot be, run it."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    raise typer.Exit(subprocess.call(command))
