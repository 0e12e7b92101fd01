"""JupyterLab and Voila on free ports, with settings and kernels of their own, so that the user's stay untouched."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import urlopen

CHROMIUM_VARIABLE = "CHROMIUM"
REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 120

JUPYTER_FOLDERS = (
    "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR",
)  # fmt: skip
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "notebook-extension/tracker": {"scrollPastEnd": False},
}
"""JupyterLab's: nothing is asked of a network, no message covers a notebook, and it ends below its last cell."""


def find_chromium() -> str:
    """The system's Chromium: $CHROMIUM, else from the PATH. Raises `FileNotFoundError` with a sentence for none."""
    given = os.environ.get(CHROMIUM_VARIABLE)
    found = shutil.which(given) if given else shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        where = f"${CHROMIUM_VARIABLE} is {given!r}, no program" if given else "there is no chromium on the PATH"
        raise FileNotFoundError(f"{where}: apt install chromium")
    return found


def chromium_options() -> list[str]:
    """What Chromium has to be told: root may start it without its sandbox alone."""
    return [] if os.geteuid() else ["--no-sandbox"]


@contextmanager
def jupyterlab(notebooks: Path, home: Path) -> Iterator[str]:
    """JupyterLab on a folder; yields its address. home: an empty folder for settings, workspaces and logs."""
    for name, values in SETTINGS.items():
        file = home / "jupyterlab_settings_dir" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(values))
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", "--IdentityProvider.token="]
    options += [f"--ServerApp.root_dir={notebooks}", "--ServerApp.port_retries=0"]
    with _serving("jupyterlab", options, home, "/api/status") as address:
        yield address


@contextmanager
def voila(notebooks: Path, home: Path) -> Iterator[str]:
    """Voila on a folder; yields its address."""
    with _serving("voila", [str(notebooks), "--no-browser", "--token="], home, "/voila/static/voila.js") as address:
        yield address


@contextmanager
def _serving(module: str, options: list[str], home: Path, path: str) -> Iterator[str]:
    """A server as a process, until the block ends; yields its address once it answers at `path`."""
    folders = {name: str(home / name.lower()) for name in JUPYTER_FOLDERS}
    python_path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = home / f"{module}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options, f"--port={port}"],
            env=os.environ | folders | {"PYTHONPATH": python_path}, stdout=output, stderr=subprocess.STDOUT, cwd=home,
        )  # fmt: skip
        try:
            _wait_for_answer(f"http://127.0.0.1:{port}{path}", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()  # it ends its kernels
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for_answer(address: str, process: subprocess.Popen, log: Path) -> None:
    """Raises `RuntimeError` with the server's own last words where it ends, or does not answer in time."""
    end = monotonic() + START_SECONDS
    while process.poll() is None and monotonic() < end:
        try:
            urlopen(address, timeout=5).close()
            return
        except (URLError, OSError):
            sleep(0.2)  # nothing to wait on before it listens
    raise RuntimeError(f"no answer from {address}:\n{log.read_text(errors='replace')[-3000:]}")
