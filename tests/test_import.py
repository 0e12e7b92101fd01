"""Importing is light: what teaches from a recorded trace loads no torch, and works where there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

import specworkbench

REPOSITORY = Path(__file__).parents[1]
TORCH_FREE = ("trace", "theory", "workloads", "analysis", "plots", "widgets")


def loaded_after(code: str) -> set[str]:
    """Top-level modules that a fresh Python has loaded after `code`."""
    script = f"import sys\n{code}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_package_alone_loads_nothing_heavy():
    heavy = {"torch", "transformers", "numpy", "pandas", "pyarrow", "plotly", "ipywidgets"}
    assert not heavy & loaded_after("import specworkbench; dir(specworkbench)")


@pytest.mark.parametrize("module", TORCH_FREE)
def test_module_does_not_load_torch(module):
    assert not {"torch", "transformers"} & loaded_after(f"import specworkbench.{module}")


WITHOUT_TORCH = """
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
"""
"""Absent by a finder that fails as an import of a missing package does."""


def test_all_of_them_import_where_torch_is_not_installed():
    loaded_after(f"{WITHOUT_TORCH}\nimport {', '.join(f'specworkbench.{module}' for module in TORCH_FREE)}")


def test_engine_without_torch_is_refused_with_the_remedy():
    code = f"""{WITHOUT_TORCH}
import specworkbench
try:
    specworkbench.decode
except ModuleNotFoundError as error:
    assert "specworkbench[engine]" in str(error), error
else:
    raise AssertionError("decode was found without torch")
"""
    loaded_after(code)


@pytest.mark.parametrize("name", specworkbench.__all__)
def test_every_public_name_resolves(name):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    assert name in dir(specworkbench)
    assert getattr(specworkbench, name) is not None


def test_decode_is_the_function_and_not_its_module():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")
    assert callable(specworkbench.decode)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        specworkbench.no_such_name  # noqa: B018
