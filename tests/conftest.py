"""What all tests share: no network, real models where there are any, and a closing line that counts."""

import atexit
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub: no test reaches for a network
if "PYTEST_XDIST_WORKER" not in os.environ:  # no test finds what another run left; processes of one run share it
    os.environ["SPECWORKBENCH_CACHE"] = tempfile.mkdtemp(prefix="specworkbench-")
    atexit.register(shutil.rmtree, os.environ["SPECWORKBENCH_CACHE"], ignore_errors=True)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch: toy models are faster on one thread

MODELS_ROOT = Path(os.environ.get("SPECWORKBENCH_MODELS") or Path.home() / ".cache/specworkbench/models")


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], Path]:
    """`real_model("smollm2")` is that model's folder; where it is missing the test is skipped with a sentence."""

    def find(name: str) -> Path:
        folder = MODELS_ROOT / name
        if not (folder / "config.json").exists():
            pytest.skip(f"no real model {name!r} in {MODELS_ROOT} (set SPECWORKBENCH_MODELS to a folder that has it)")
        return folder

    return find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for a real model is marked `real_models`, and skipped where there is none at all."""
    empty = not any(MODELS_ROOT.glob("*/config.json"))
    for item in items:
        if "real_model" in getattr(item, "fixturenames", ()):
            item.add_marker("real_models")
        if empty and item.get_closest_marker("real_models"):
            item.add_marker(pytest.mark.skip(reason=f"no real models in {MODELS_ROOT} (see SPECWORKBENCH_MODELS)"))


def pytest_terminal_summary(terminalreporter) -> None:
    """`412 passed, 0 failed, 3 skipped`, and why each was skipped unless -rs says so anyway."""
    stats = terminalreporter.stats
    counts = [f"{len(stats.get(kind, ()))} {kind}" for kind in ("passed", "failed", "skipped")]
    counts += [f"{len(stats[kind])} {kind}" for kind in ("error", "xfailed", "deselected") if stats.get(kind)]
    terminalreporter.section("tests")
    terminalreporter.write_line(", ".join(counts))
    if not terminalreporter.hasopt("skipped"):
        reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in stats.get("skipped", ()))
        for reason, number in reasons.most_common():
            terminalreporter.write_line(f"  {number} skipped: {reason}")
