"""Every public function and class has an example in its docstring, and every example runs and prints what it says."""

import doctest
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import specworkbench

PACKAGES = (
    "analysis", "engine", "equivalence", "equivalence.mutants", "equivalence.numerics", "equivalence.others",
    "equivalence.statistics", "experiments.claims", "experiments.study", "plots", "theory", "trace", "widgets",
    "workloads",
)  # fmt: skip
ROOT = Path(specworkbench.__file__).parent
UNOPENED = ("experiments", "experiments.costs", "training")
"""Packages that import nothing: what is public is said by each of their modules."""
TRAINING_COMMAND = ("training.__main__", "training.pipeline", "training.report")
"""The stages of `python -m specworkbench.training`, which takes an hour; none of them is called from elsewhere."""
MODULES = [
    f"{package}.{path.stem}"
    for package in UNOPENED
    for path in sorted((ROOT / package.replace(".", "/")).glob("*.py"))
    if path.stem != "__init__" and f"{package}.{path.stem}" not in TRAINING_COMMAND
]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if "\n    >>> " in path.read_text(encoding="utf-8")
)


def public(package):
    """(name, object) of the functions and classes that a package or module names as its own; constants are none.

    Of a function that is wrapped, as a cached one is, the function itself.
    """
    module = import_module(f"specworkbench.{package}")
    found = [(name, inspect.unwrap(getattr(module, name))) for name in module.__all__]
    return [(name, value) for name, value in found if inspect.isroutine(value) or inspect.isclass(value)]


@cache
def with_examples(module):
    """The names in a module whose examples are found, and so run, by `doctest.testmod`."""
    tests = doctest.DocTestFinder().find(import_module(module))
    return {test.name.removeprefix(f"{module}.") for test in tests if test.examples}


@pytest.mark.parametrize("package", [*PACKAGES, "errors", "files", "paths", *MODULES])
def test_every_public_function_and_class_has_an_example(package):
    names = public(package)
    assert names
    assert [name for name, value in names if value.__name__ not in with_examples(value.__module__)] == []


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_print_what_they_say(name):
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


def test_an_example_that_says_something_else_is_noticed():
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(example, out=lambda text: None).failed == 1
