"""Options that commands share mean the same everywhere."""

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments import implementation
from specworkbench.trace import save_trace
from tests.trace.toy import toy_trace

LOADERS = (
    "specworkbench.engine.load_model",
    "specworkbench.experiments.bench.load_model",
    "specworkbench.experiments.implementation.load_model",
    "specworkbench.training.recipe.load_model",
)
COMMANDS = {
    "decode": ("decode", "abc"),
    "report": ("report",),
    "equivalence": ("equivalence",),
    "train": ("train", "draft"),
    "check": ("check", "toy.trace", "--fresh", "--target", "embedded"),
}


@pytest.mark.parametrize("switches, expected", [((), (True, True)), (("--no-fused", "--no-products"), (False, False))])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_its_target_as_the_switches_say(
    refused, tmp_path, monkeypatch, name, switches, expected
):  # fmt: skip
    seen = []

    def load(*_, fused, products, **more):
        seen.append((fused, products))
        raise InputError("that is all we want to know")

    for loader in LOADERS:
        monkeypatch.setattr(loader, load)
    for kept in (implementation._target, implementation._proposer):
        kept.cache_clear()  # what another test has loaded in this process
    monkeypatch.chdir(tmp_path)
    save_trace(toy_trace(), tmp_path / "toy.trace")
    assert "all we want to know" in refused(*COMMANDS[name], *switches)
    assert seen == [expected]
