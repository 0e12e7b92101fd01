"""Widgets' scripts in node, beside a page of `page.mjs`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest


def node_runner(folder, script, prelude=""):
    """`run(code, **values)`: what the code returns as JSON; it sees the script as `it`, a page, and the prelude.

    Without node the test is skipped. Timers that the code leaves are not waited for.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the widget's script is tested in it")
    (folder / "it.mjs").write_text(script, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("page.mjs"), folder)

    def run(code, **values):
        lines = [
            f"import * as it from {json.dumps((folder / 'it.mjs').as_uri())};",
            f"import {{ page, Model }} from {json.dumps((folder / 'page.mjs').as_uri())};",
            f"const {{ {', '.join(values)} }} = {json.dumps(values)};",
            prelude,
            f"const found = JSON.stringify((() => {{ {code} }})());",
            "process.stdout.write(found, () => process.exit(0));",
        ]
        file = folder / "run.mjs"
        file.write_text("\n".join(lines), encoding="utf-8")
        done = subprocess.run([node, str(file)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
