"""The statistics work on arrays: their modules import neither torch nor the engine."""

import ast
from pathlib import Path

from specworkbench.equivalence import statistics

ALLOWED = ("numpy", "scipy", "pandas", "specworkbench.errors", "specworkbench.equivalence.statistics",
           "specworkbench.equivalence.evidence", "__future__", "collections", "dataclasses", "typing")  # fmt: skip


def test_their_imports_are_numpy_scipy_and_pandas():
    found = set()
    for path in Path(statistics.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module)
    assert "numpy" in found
    assert {name for name in found if not name.startswith(ALLOWED)} == set()
