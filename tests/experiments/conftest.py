import pytest

from tests.experiments.toys import save_toys


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """The folder of the toy models."""
    return save_toys(tmp_path_factory.mktemp("toys"))
