"""Every public function and class has an example in its docstring, and every example runs and prints what it says."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import specworkbench

PACKAGES = ("analysis", "engine", "experiments.claims", "plots", "theory", "trace", "workloads")
ROOT = Path(specworkbench.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if path.name != "__init__.py" and "\n    >>> " in path.read_text(encoding="utf-8")
)


def public(package):
    """(name, object) of the functions and classes that a package names as its own; constants and modules are none."""
    module = import_module(f"specworkbench.{package}")
    found = [(name, getattr(module, name)) for name in module.__all__]
    return [(name, value) for name, value in found if inspect.isfunction(value) or inspect.isclass(value)]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_function_and_class_has_an_example(package):
    names = public(package)
    assert names and [name for name, value in names if ">>>" not in (value.__doc__ or "")] == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_print_what_they_say(name):
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


def test_an_example_that_says_something_else_is_noticed():
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(example, out=lambda text: None).failed == 1
