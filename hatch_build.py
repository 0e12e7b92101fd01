"""Build hook: the wheel carries the models, prompts, traces, results of claims and notebooks as specworkbench/_data.

An editable install reads them from the repository itself, so nothing is copied there.
"""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARRIED = {
    "data/models": "specworkbench/_data/models",
    "data/prompts": "specworkbench/_data/prompts",
    "data/traces": "specworkbench/_data/traces",
    "data/claims": "specworkbench/_data/claims",
    "notebooks": "specworkbench/_data/notebooks",
}


def visible_files(folder: Path) -> list[Path]:
    """The data under `folder`, relative to it, without hidden files, caches and the scripts that make the data."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".py")
    return sorted(path for path in files if not any(part.startswith((".", "__pycache__")) for part in path.parts))


class CarryData(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        if version == "editable":
            return
        for source, destination in CARRIED.items():
            folder = Path(self.root, source)
            files = visible_files(folder)
            if not files:
                raise FileNotFoundError(
                    f"The wheel carries {source}, but {folder} is missing or empty: "
                    "build from a complete checkout or from the source distribution."
                )
            for file in files:
                build_data["force_include"][str(folder / file)] = f"{destination}/{file.as_posix()}"
