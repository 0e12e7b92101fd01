"""All claims judged on a folder of studies. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from specworkbench.errors import InputError
from specworkbench.experiments.claims.claim import Claim, Finding
from specworkbench.experiments.claims.evidence import Evidence, read_evidence
from specworkbench.experiments.claims.registry import CLAIMS
from specworkbench.experiments.files import to_json, write_whole

FINDINGS = "findings.json"
COLUMNS = ("claim", "verdict", "effect", "low", "high", "n", "part", "sentence")


def evidence_in(folder: Path, claims: Iterable[Claim] = CLAIMS) -> dict[str, Evidence | None]:
    """What there is of the studies of these claims in a folder, by their names. Raises `InputError` for no folder.

    >>> from specworkbench.paths import claims_dir
    >>> sorted(evidence_in(claims_dir() / "embedded"))[:3]
    ['gamma', 'long-outputs', 'output-length']
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; specworkbench claims --out DIR makes one")
    names = dict.fromkeys(name for claim in claims for name in claim.studies)
    return {name: read_evidence(folder / name) for name in names}


def judge(evidence: Mapping[str, Evidence | None], claims: Iterable[Claim] = CLAIMS) -> list[Finding]:
    """The findings of these claims on the evidence of their studies.

    >>> from specworkbench.paths import claims_dir
    >>> findings = judge(evidence_in(claims_dir() / "embedded"))
    >>> [finding.claim for finding in findings if finding.verdict == "holds here"]
    ['stronger-slower', 'retrieval', 'acceptance-alone']
    """
    return [claim.judge(evidence) for claim in claims]


def judge_folder(folder: Path, claims: Iterable[Claim] = CLAIMS) -> list[Finding]:
    """The same of a folder of studies.

    >>> from specworkbench.paths import claims_dir
    >>> {finding.claim: finding.verdict for finding in judge_folder(claims_dir() / "embedded")}["retrieval"]
    'holds here'
    """
    chosen = tuple(claims)
    return judge(evidence_in(folder, chosen), chosen)


def table_of(findings: Iterable[Finding]) -> pd.DataFrame:
    """One row a finding: `COLUMNS`; NaN where nothing was measured."""
    rows = [{name: getattr(finding, name) for name in COLUMNS} for finding in findings]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({name: float for name in ("effect", "low", "high")})


def parts_table(finding: Finding) -> pd.DataFrame:
    """One row a part of a finding: part, effect, low, high, n, verdict."""
    rows = [(part.name, part.effect, part.low, part.high, part.n, part.verdict) for part in finding.parts]
    return pd.DataFrame(rows, columns=["part", "effect", "low", "high", "n", "verdict"])


def save(findings: Iterable[Finding], folder: Path) -> Path:
    """Write findings.json; its path."""
    content = {"findings": [finding.as_dict() for finding in findings]}
    return write_whole(folder / FINDINGS, to_json(content, indent=1) + "\n", "the findings")
