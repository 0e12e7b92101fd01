"""Where the data shipped with the package lies, and where real models are kept."""

import os
from pathlib import Path

from specworkbench.errors import InputError

PACKAGE = Path(__file__).resolve().parent
MODELS_VARIABLE = "SPECWORKBENCH_MODELS"


def data_dir() -> Path:
    """The folder with `models`, `prompts` and `traces`: inside an installed wheel, else at the root of a checkout.

    Raises InputError when there is neither.
    """
    installed, checkout = PACKAGE / "_data", PACKAGE.parent / "data"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise InputError(
        f"The data of specworkbench is missing: neither {installed} nor {checkout} is a folder; "
        "install the wheel again, or run from a complete checkout."
    )


def models_dir() -> Path:
    """The folder of the real models: $SPECWORKBENCH_MODELS, else ~/.cache/specworkbench/models. It may not exist."""
    return Path(os.environ.get(MODELS_VARIABLE) or "~/.cache/specworkbench/models").expanduser()


def embedded_dir() -> Path:
    """The folder of the embedded family. Raises InputError when the shipped data is missing."""
    return data_dir() / "models" / "embedded"


def prompts_dir() -> Path:
    """The folder of the shipped prompt files. Raises InputError when the shipped data is missing."""
    return data_dir() / "prompts"
