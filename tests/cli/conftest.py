import pytest

from specworkbench.cli import run
from tests.experiments.toys import save_toys


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """The folder of the toy models."""
    return save_toys(tmp_path_factory.mktemp("toys"))


@pytest.fixture
def pair(toys):
    """The options that name a toy target and its draft."""
    return "--target", toys / "target", "--draft", toys / "draft"


@pytest.fixture
def command(capfd):
    """`command("decode", "abc")`: exit code, standard output, standard error, as a shell would see them."""

    def call(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def refused(command):
    """The sentence of a command that must refuse its input: exit code 2, nothing on standard output, one line."""

    def call(*arguments):
        code, out, err = command(*arguments)
        sentences = [line for line in err.splitlines() if line.startswith("specworkbench: ")]
        assert (code, out) == (2, ""), err
        assert len(sentences) == 1 and "Traceback" not in err
        return sentences[0]

    return call
