"""Studies: a grid over models, proposers, rules, sampling and lengths, decoded cell by cell, kept and read back.

    grid       `Study`: the axes and what all cells share
    reading    a study from a TOML or a Python file
    task       one cell with all that decoding it needs
    parts      its target, its decoders, its prompts as token ids
    outline    what cannot be, found without weights before anything runs
    worker     decodes cells; models stay loaded
    figures    the figures of a cell, with intervals
    executors  this process, or one a GPU;  cluster: Ray
    dispatch   cells to workers and outcomes back
    forecast   how long it will take
    store      the folder
    runner     from the plan to the folder
    table      the folder read back;  hindsight: controllers against the best constant gamma

    from specworkbench.experiments.study import Study, run_study, read_study
    table = run_study(Study(proposer=["ngram", "suffix"], gamma=[2, 4], per_bucket=1), "my-study")
"""

from __future__ import annotations

from typing import Any

from specworkbench.experiments.study.grid import Study, StudyCell
from specworkbench.experiments.study.hindsight import hindsight
from specworkbench.experiments.study.reading import load_study
from specworkbench.experiments.study.table import medians, read_study

__all__ = ["Study", "StudyCell", "hindsight", "load_study", "medians", "read_study", "run_study"]


def run_study(*arguments: Any, **options: Any) -> Any:
    """See `runner.run_study`, which needs torch.

    >>> from tempfile import TemporaryDirectory
    >>> study = Study(proposer="ngram", gamma=2, bucket="code", per_bucket=1, max_new_tokens=4)
    >>> with TemporaryDirectory() as folder:
    ...     run_study(study, folder)[["proposer", "gamma", "status", "lossless"]]
      proposer  gamma    status  lossless
    0    ngram      2  finished      True
    """
    from specworkbench.experiments.study.runner import run_study

    return run_study(*arguments, **options)
